// The visitor's notes that came too late: written without a connection, on flights that had left the tables by the time
// it was back. The server takes such a note, and takes it away with its flight's others. So it is said here, as of a note
// that is refused.

import { TidegateError } from "@tidegate/client";
import { useEffect } from "react";
import { useLive } from "./pulse.js";
import { confirmedNotes, ownNotes } from "./queries.js";
import { refusals } from "./refusals.js";
import type { Note } from "./schema.js";

/** Notes that show here and that the server has not shown yet, by their ids. */
const waiting = new Map<string, Note>();

/** The visitor takes a note back: it is not lost. */
export const takenBack = (id: string): void => void waiting.delete(id);

export function useLostNotes(): void {
  const here = useLive(ownNotes);
  const there = useLive(confirmedNotes);
  useEffect(() => {
    if (here.status === "connecting" || there.status === "connecting") return;
    const confirmed = new Map(there.rows.map(({ id, has_flight }) => [id, has_flight]));
    const pending = new Map(here.rows.filter(({ id }) => !confirmed.has(id)).map((note) => [note.id, note]));
    for (const [id, note] of pending) waiting.set(id, note);
    for (const [id, note] of waiting) {
      if (pending.has(id)) continue;
      waiting.delete(id);
      // One that came and went between two releases was never seen at the server.
      const isLost = confirmed.get(id) !== true && !refusals.list().some(({ noteId }) => noteId === id);
      if (isLost) refusals.add("addNote", note, new TidegateError("flight_left", "the flight has left the tables"));
    }
  }, [here, there]);
}
