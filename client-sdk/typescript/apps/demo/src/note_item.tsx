// One note. Whoever wrote it can change it and take it away.

import { useConnectionStatus, useTidegate } from "@tidegate/react";
import { useState, type FormEvent } from "react";
import { BodyField } from "./body_field.js";
import type { Mutators } from "./client.js";
import type { Note } from "./schema.js";
import { visitor } from "./visitor.js";

const formatAt = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export function NoteItem({ note, isPending }: { readonly note: Note; readonly isPending: boolean }) {
  const { mutate } = useTidegate<Mutators>();
  /** What is being written in its place, while it is. */
  const [draft, setDraft] = useState<string | null>(null);
  const isConnected = useConnectionStatus().state === "connected";
  const isOwn = note.visitor === visitor;
  const save = (event: FormEvent): void => {
    event.preventDefault();
    const body = (draft ?? "").trim();
    if (body !== note.body) mutate.editNote({ id: note.id, flight_id: note.flight_id, body });
    setDraft(null);
  };
  return (
    <li className="note" data-note={note.id} data-pending={isPending} data-own={isOwn}>
      <p className="note-head">
        <b>{note.author}</b> <time dateTime={note.at}>{formatAt.format(Date.parse(note.at))}</time>
        {isPending && <span className="pending">{isConnected ? "Sending…" : "Waits for the connection"}</span>}
      </p>
      {draft === null ? (
        <p className="note-body">{note.body}</p>
      ) : (
        <form className="note-form" onSubmit={save}>
          <BodyField label="Change your note" value={draft} onChange={setDraft} />
          <div className="buttons">
            <button type="submit" className="primary">Save</button>
            <button type="button" onClick={() => setDraft(null)}>Cancel</button>
          </div>
        </form>
      )}
      {isOwn && draft === null && (
        <div className="buttons quiet">
          <button type="button" onClick={() => setDraft(note.body)}>Edit</button>
          <button type="button" onClick={() => mutate.deleteNote({ id: note.id, flight_id: note.flight_id, body: note.body })}>Delete</button>
        </div>
      )}
    </li>
  );
}
