// Where a note's text is written, with a count. The count warns and nothing more: the rule is the server's. Only a text
// that is not there yet is asked for at once.

import { useId, useImperativeHandle, useLayoutEffect, useRef, useState, type KeyboardEvent, type Ref } from "react";
import { BODY_LENGTH_MAX } from "./schema.js";

interface Props {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly onChange: (value: string) => void;
  readonly ref?: Ref<HTMLTextAreaElement>;
}

const EMPTY = "Write a text first.";

export function BodyField({ label, value, placeholder, onChange, ref }: Props) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  useImperativeHandle(ref, () => field.current!);
  const isEmpty = value.trim() === "";
  /** Whether it was to be sent without a text. */
  const [isMissing, setIsMissing] = useState(false);
  useLayoutEffect(() => field.current?.setCustomValidity(isEmpty ? EMPTY : ""), [isEmpty]);
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
        id={id} ref={field} rows={3} value={value} placeholder={placeholder} name="body"
        aria-describedby={`${id}-missing ${id}-count`} aria-invalid={isMissing && isEmpty}
        onChange={(event) => {
          setIsMissing(false);
          onChange(event.target.value);
        }}
        onInvalid={(event) => {
          event.preventDefault(); // said below the field instead of above the page
          event.currentTarget.focus();
          setIsMissing(true);
        }}
        onKeyDown={submitOnEnter}
      />
      <span id={`${id}-missing`} className="missing" role="alert">{isMissing && isEmpty && EMPTY}</span>
      <span id={`${id}-count`} className="count" data-over={length > BODY_LENGTH_MAX}>{length} of {BODY_LENGTH_MAX} characters</span>
    </div>
  );
}
