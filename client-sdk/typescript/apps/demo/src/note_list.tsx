// A flight's notes, and the form for another. What the visitor writes shows at once; a note is marked as pending until
// the server has it as it stands here.

import { useRef } from "react";
import type { IsPending } from "./confirmed.js";
import type { Note } from "./schema.js";
import { NoteForm } from "./note_form.js";
import { NoteItem } from "./note_item.js";

interface Props {
  readonly flightId: number;
  readonly notes: readonly Note[];
  readonly isPending: IsPending;
}

export function NoteList({ flightId, notes, isPending }: Props) {
  const newBody = useRef<HTMLTextAreaElement>(null);
  return (
    <section className="notes" aria-labelledby="notes-title">
      <h3 id="notes-title">Notes <small>everybody who looks at this page sees them</small></h3>
      {notes.length === 0 && <p className="state" data-kind="empty">No notes yet. Write the first one below.</p>}
      <ol id="notes" aria-live="polite">
        {notes.map((note) => <NoteItem key={note.id} note={note} isPending={isPending(note)} onDelete={() => newBody.current?.focus()} />)}
      </ol>
      <NoteForm flightId={flightId} bodyRef={newBody} />
    </section>
  );
}
