// The page's one client: what visitors can write, and what is kept over reloads.

import { indexedDbStorage, TidegateClient, type Transaction } from "@tidegate/client";
import { refusals } from "./refusals.js";
import { notes, type Note } from "./schema.js";

export const mutators = {
  addNote: (tx: Transaction, note: Note) => tx.insert(notes, note),
  editNote: (tx: Transaction, { id, body }: Pick<Note, "id" | "body" | "flight_id">) => tx.update(notes, { id }, { body }),
  deleteNote: (tx: Transaction, { id }: Pick<Note, "id" | "body" | "flight_id">) => tx.delete(notes, { id }),
};
export type Mutators = typeof mutators;

export const client = new TidegateClient({
  url: location.origin,
  mutators,
  storage: indexedDbStorage({ name: "tidegate-demo" }),
  backoffMsMax: 5_000,
  onRefused: (error, { name, args }) => refusals.add(name as keyof Mutators, args as Note, error),
});
