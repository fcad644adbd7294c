// The change of a note that is not there any more: somebody deleted it meanwhile. What was written is not lost.

import { useTidegate } from "@tidegate/react";
import { useEffect, useRef, type FormEvent } from "react";
import { BodyField } from "./body_field.js";
import type { Mutators } from "./client.js";
import { refusals } from "./refusals.js";
import { newId, rememberedName, visitor } from "./visitor.js";

interface Props {
  readonly flightId: number;
  readonly draft: string;
  readonly setDraft: (draft: string | null) => void;
  /** It is settled: the focus needs another place. */
  readonly onDone: () => void;
}

export function LostChange({ flightId, draft, setDraft, onDone }: Props) {
  const { mutate } = useTidegate<Mutators>();
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    // The field that was written in is gone, with the focus; where that is elsewhere, it stays there.
    if (document.activeElement === document.body) field.current?.focus();
  }, []);
  const done = (): void => {
    setDraft(null);
    refusals.settle(flightId);
    onDone();
  };
  const add = (event: FormEvent): void => {
    event.preventDefault();
    mutate.addNote({ id: newId(), flight_id: flightId, visitor, author: rememberedName(), body: draft.trim(), at: new Date().toISOString() });
    done();
  };
  return (
    <form className="note-form lost" onSubmit={add}>
      <p role="alert">The note that you were changing has been deleted in another window. Your text is still here.</p>
      <BodyField label="Your text" value={draft} onChange={setDraft} ref={field} />
      <div className="buttons">
        <button type="submit" className="primary">Add as a new note</button>
        <button type="button" onClick={done}>Discard</button>
      </div>
    </form>
  );
}
