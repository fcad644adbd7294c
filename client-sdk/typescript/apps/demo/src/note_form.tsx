// The form for a new note. It can be sent whatever the connection is: the client sends the note when it can.

import { useTidegate } from "@tidegate/react";
import { useEffect, useId, useState, type FormEvent, type Ref } from "react";
import { BodyField } from "./body_field.js";
import type { Mutators } from "./client.js";
import { drafts, useDrafts } from "./drafts.js";
import { refusals, useRefusals } from "./refusals.js";
import { AUTHOR_LENGTH_MAX } from "./schema.js";
import { newId, rememberedName, rememberName, visitor } from "./visitor.js";

interface Props {
  readonly flightId: number;
  /** The field that the text is written in. */
  readonly bodyRef: Ref<HTMLTextAreaElement>;
}

export function NoteForm({ flightId, bodyRef }: Props) {
  const { mutate } = useTidegate<Mutators>();
  const id = useId();
  const [author, setAuthor] = useState(rememberedName);
  const { body } = useDrafts(flightId);
  const setBody = (text: string): void => drafts.setBody(flightId, text);
  const refused = useRefusals().filter((refusal) => refusal.flightId === flightId && refusal.mutation === "addNote").at(-1);
  const bringBack = ({ number }: NonNullable<typeof refused>): void => setBody(refusals.takeText(number));
  useEffect(() => {
    if (refused?.body && body === "") bringBack(refused);
  }, [refused?.number]);
  const add = (event: FormEvent): void => {
    event.preventDefault();
    const name = author.trim();
    rememberName(name);
    mutate.addNote({ id: newId(), flight_id: flightId, visitor, author: name, body: body.trim(), at: new Date().toISOString() });
    setBody("");
    refusals.settle(flightId);
  };
  return (
    <form id="add-note" className="note-form" onSubmit={add}>
      <div className="field">
        <label htmlFor={id}>Your name</label>
        <input
          id={id} name="author" value={author} maxLength={AUTHOR_LENGTH_MAX} required autoComplete="nickname"
          onChange={(event) => setAuthor(event.target.value)}
        />
      </div>
      <BodyField label="Note" value={body} onChange={setBody} ref={bodyRef} placeholder="What should others know about this flight?" />
      <p className="hint">A note stays as long as its flight: until a day and a half after its time of departure.</p>
      <div className="buttons">
        <button type="submit" className="primary">Add note</button>
        {refused?.body && body === "" && <button type="button" onClick={() => bringBack(refused)}>Bring the refused text back</button>}
      </div>
    </form>
  );
}
