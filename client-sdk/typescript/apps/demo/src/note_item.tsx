// One note. Whoever wrote it can change it and take it away.

import { useConnectionStatus, useTidegate } from "@tidegate/react";
import { useLayoutEffect, useRef, type FormEvent, type KeyboardEvent } from "react";
import { BodyField } from "./body_field.js";
import type { Mutators } from "./client.js";
import { takenBack } from "./lost_notes.js";
import { refusals } from "./refusals.js";
import type { Note } from "./schema.js";
import { visitor } from "./visitor.js";

const formatAt = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

interface Props {
  readonly note: Note;
  readonly isPending: boolean;
  /** What is being written in its place, while it is. */
  readonly draft: string | null;
  readonly setDraft: (draft: string | null) => void;
  /** The note was taken away by the visitor: the focus needs another place. */
  readonly onDelete: () => void;
}

export function NoteItem({ note, isPending, draft, setDraft, onDelete }: Props) {
  const { mutate } = useTidegate<Mutators>();
  const isConnected = useConnectionStatus().state === "connected";
  const isOwn = note.visitor === visitor;
  const field = useRef<HTMLTextAreaElement>(null);
  const editButton = useRef<HTMLButtonElement>(null);
  const isEditing = draft !== null;
  const wasEditing = useRef(isEditing);
  useLayoutEffect(() => {
    // What had the focus is gone: it goes to what came in its place.
    if (isEditing === wasEditing.current) return;
    wasEditing.current = isEditing;
    if (isEditing) {
      // A refused change comes back by itself, while something else may be written.
      if (document.activeElement instanceof HTMLTextAreaElement || document.activeElement instanceof HTMLInputElement) return;
      field.current?.focus();
      field.current?.setSelectionRange(field.current.value.length, field.current.value.length);
    } else {
      editButton.current?.focus();
    }
  }, [isEditing]);
  const finish = (): void => {
    setDraft(null);
    refusals.settle(note.flight_id);
  };
  const save = (event: FormEvent): void => {
    event.preventDefault();
    const body = (draft ?? "").trim();
    if (body !== note.body) mutate.editNote({ id: note.id, flight_id: note.flight_id, body });
    finish();
  };
  const cancelOnEscape = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    // The panel would take it as meant for itself.
    event.stopPropagation();
    finish();
  };
  const remove = (): void => {
    takenBack(note.id);
    mutate.deleteNote({ id: note.id, flight_id: note.flight_id, body: note.body });
    refusals.settle(note.flight_id);
    onDelete();
  };
  return (
    <li className="note" data-note={note.id} data-pending={isPending} data-own={isOwn}>
      <p className="note-head">
        <b>{note.author}</b> <time dateTime={note.at}>{formatAt.format(Date.parse(note.at))}</time>
        {isPending && <span className="pending">{isConnected ? "Sending…" : "Waits for the connection"}</span>}
      </p>
      {!isEditing ? (
        <p className="note-body">{note.body}</p>
      ) : (
        <form className="note-form" onSubmit={save} onKeyDown={cancelOnEscape}>
          <BodyField label="Change your note" value={draft} onChange={setDraft} ref={field} />
          <div className="buttons">
            <button type="submit" className="primary">Save</button>
            <button type="button" onClick={finish}>Cancel</button>
          </div>
        </form>
      )}
      {isOwn && !isEditing && (
        <div className="buttons quiet">
          <button type="button" ref={editButton} onClick={() => setDraft(note.body)}>Edit</button>
          <button type="button" onClick={remove}>Delete</button>
        </div>
      )}
    </li>
  );
}
