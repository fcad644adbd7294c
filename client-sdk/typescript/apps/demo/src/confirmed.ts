// What the server has of the visitor's own notes.

import { useMemo } from "react";
import { useLive } from "./pulse.js";
import { confirmedNotes } from "./queries.js";
import type { Note } from "./schema.js";
import { visitor } from "./visitor.js";

/** Tells whether a note is pending: written here, and not yet at the server as it stands here. */
export type IsPending = (note: Note) => boolean;

export function useIsPending(): IsPending {
  const { rows } = useLive(confirmedNotes);
  return useMemo(() => {
    const bodies = new Map(rows.map(({ id, body }) => [id, body]));
    return (note) => note.visitor === visitor && bodies.get(note.id) !== note.body;
  }, [rows]);
}
