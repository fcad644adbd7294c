// Where a note's text is written, with a count. The count warns and nothing more: the rule is the server's.

import { useId, type KeyboardEvent, type Ref } from "react";
import { BODY_LENGTH_MAX } from "./schema.js";

interface Props {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onChange: (value: string) => void;
  readonly ref?: Ref<HTMLTextAreaElement>;
}

export function BodyField({ label, value, placeholder, onChange, ref }: Props) {
  const id = useId();
  // As the server counts: characters, not UTF-16 units.
  const length = [...value.trim()].length;
  const submitOnEnter = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea
        id={id} ref={ref} rows={3} value={value} placeholder={placeholder} aria-describedby={`${id}-count`} name="body"
        onChange={(event) => onChange(event.target.value)} onKeyDown={submitOnEnter}
      />
      <span id={`${id}-count`} className="count" data-over={length > BODY_LENGTH_MAX}>{length} of {BODY_LENGTH_MAX} characters</span>
    </div>
  );
}
