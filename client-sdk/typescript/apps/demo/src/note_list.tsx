// A flight's notes, and the form for another. What the visitor writes shows at once; a note is marked as pending until
// the server has it as it stands here.

import { useEffect, useRef } from "react";
import type { IsPending } from "./confirmed.js";
import { drafts, useDrafts } from "./drafts.js";
import { LostChange } from "./lost_change.js";
import { NoteForm } from "./note_form.js";
import { NoteItem } from "./note_item.js";
import { RefusalList } from "./refusal_list.js";
import { refusals, useRefusals } from "./refusals.js";
import type { Note } from "./schema.js";

interface Props {
  readonly flightId: number;
  readonly notes: readonly Note[];
  readonly isPending: IsPending;
}

export function NoteList({ flightId, notes, isPending }: Props) {
  const { changes } = useDrafts(flightId);
  const setDraft = (id: string, draft: string | null): void => drafts.setChange(flightId, id, draft);
  const refused = useRefusals().filter((refusal) => refusal.flightId === flightId);
  useEffect(() => {
    // A refused change goes on where it was written, unless another one is under way there.
    for (const { number, mutation, noteId, body } of refused) {
      if (mutation !== "editNote" || body === "" || changes.has(noteId)) continue;
      setDraft(noteId, refusals.takeText(number));
    }
  }, [refused.at(-1)?.number]);
  const lost = [...changes].filter(([id]) => !notes.some((note) => note.id === id));
  const newBody = useRef<HTMLTextAreaElement>(null);
  const focusNewBody = (): void => newBody.current?.focus();
  return (
    <section className="notes" aria-labelledby="notes-title">
      <h3 id="notes-title">Notes <small>everybody who looks at this page sees them</small></h3>
      {notes.length === 0 && <p className="state" data-kind="empty">No notes yet. Write the first one below.</p>}
      <ol id="notes" aria-live="polite">
        {notes.map((note) => (
          <NoteItem
            key={note.id} note={note} isPending={isPending(note)} draft={changes.get(note.id) ?? null}
            setDraft={(draft) => setDraft(note.id, draft)} onDelete={focusNewBody}
          />
        ))}
      </ol>
      {lost.map(([id, draft]) => (
        <LostChange key={id} flightId={flightId} draft={draft} setDraft={(text) => setDraft(id, text)} onDone={focusNewBody} />
      ))}
      {/* What became of a lost change is said with it. */}
      <RefusalList refused={refused.filter(({ noteId }) => !lost.some(([id]) => id === noteId))} />
      <NoteForm flightId={flightId} bodyRef={newBody} />
    </section>
  );
}
