// A collection over a client whose server the test plays.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createCollection, createLiveQueryCollection, eq } from "@tanstack/db";
import { from, int8, table, text, TidegateClient, type Transaction, type TransportEvents } from "@tidegate/client";
import { tidegateCollectionOptions } from "../src/index.js";

const FP = "0123456789abcdef";
const notes = table("notes", { id: int8(), text: text() }, { key: ["id"] });
const mutators = {
  add: (tx: Transaction, row: { id: number; text: string }) => tx.insert(notes, row),
  set: (tx: Transaction, { id, text }: { id: number; text: string }) => tx.update(notes, { id }, { text }),
  drop: (tx: Transaction, { id }: { id: number }) => tx.delete(notes, { id }),
};
const PLACE = { parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false };
const announced = (sub: number, name: string, columns: readonly string[], types: readonly string[]) => ({
  subscribed: {
    sub, epoch: sub + 1, fp: FP, resumed: false, places: [PLACE],
    tables: [{ name, key: [0], columns: columns.map((column, index) => ({ name: column, type: types[index] })) }],
  },
});
const batch = (sub: number, seq: number, cv: number, ops: unknown[]) => ({ batch: { sub, epoch: sub + 1, seq, cv, fp: FP, ops } });
const progress = (cv: number) => ({ progress: { cv_min: cv } });
const rows = (collection: { toArray: { id: number; text: string }[] }) => collection.toArray.map(({ id, text }) => `${id}${text}`).sort().join();

async function stage() {
  let events: TransportEvents | undefined;
  const heard: any[] = [];
  const client = new TidegateClient({
    url: "http://test", codec: "json", mutators, clientId: "c",
    connect: (_url, _codec, told) => ((events = told), { send: (frame) => void heard.push(JSON.parse(frame as string)), close: () => {} }),
  });
  const collection = createCollection(
    tidegateCollectionOptions({
      client,
      query: from(notes),
      getKey: ({ id }) => id,
      insert: (row) => client.mutate.add(row),
      update: ({ id, text }) => client.mutate.set({ id, text }),
      remove: ({ id }) => client.mutate.drop({ id }),
    }),
  );
  collection.startSyncImmediate();
  while (!events) await Promise.resolve();
  const say = (...messages: object[]): void => messages.forEach((message) => events!.received(JSON.stringify(message)));
  events.opened();
  say(
    { welcome: { protocol: 1, server: "test", conn: "1", cv: 1 } },
    announced(0, "tidegate_client_mutations", ["client_id", "last_mutation_id"], ["text", "int8"]),
    batch(0, 0, 5, []),
    announced(1, "notes", ["id", "text"], ["int8", "text"]),
    batch(1, 0, 5, [["+", 0, 1, [1, "a"]], ["+", 0, 1, [2, "b"]]]),
  );
  return { client, collection, heard, say };
}

test("a collection has the query's rows and follows them; queries over it too", async () => {
  const { client, collection, say } = await stage();
  assert.equal(collection.status, "loading");
  say(progress(5));
  await collection.preload();
  assert.equal(rows(collection), "1a,2b");
  const bs = createLiveQueryCollection((q) => q.from({ note: collection }).where(({ note }) => eq(note.text, "b")));
  await bs.preload();
  say(batch(1, 1, 6, [["~", 0, 1, [1, "b"]], ["-", 0, [2]], ["+", 0, 1, [3, "c"]]]), progress(6));
  assert.deepEqual([rows(collection), rows(bs)], ["1b,3c", "1b"]);
  client.close();
});

test("writes show at once, stay when they are confirmed, and go when they are refused", async () => {
  const { client, collection, heard, say } = await stage();
  say(progress(5));
  await collection.preload();
  const added = collection.insert({ id: 3, text: "c" });
  const changed = collection.update(1, (draft) => void (draft.text = "A"));
  const removed = collection.delete(2);
  assert.equal(rows(collection), "1A,3c");
  // Handlers are called a moment later.
  while (client.pendingMutations < 3) await Promise.resolve();
  const ops = heard.flatMap(({ push }) => push?.mutations ?? []).map(({ ops }: { ops: unknown[] }) => ops[0]);
  assert.deepEqual(ops, [
    { insert: "notes", row: { id: 3, text: "c" } },
    { update: "notes", key: { id: 1 }, set: { text: "A" } },
    { delete: "notes", key: { id: 2 } },
  ]);
  const refused = assert.rejects(removed.isPersisted.promise, { code: "forbidden" });
  say(
    { push_result: { id: 1, error: null } },
    { push_result: { id: 2, error: null } },
    { push_result: { id: 3, error: { code: "forbidden", message: "not yours" } } },
    batch(0, 1, 6, [["+", 0, 1, ["c", 3]]]),
    batch(1, 1, 6, [["+", 0, 1, [3, "c"]], ["~", 0, 1, [1, "A"]]]),
    progress(6),
  );
  await Promise.all([added.isPersisted.promise, changed.isPersisted.promise, refused]);
  assert.equal(rows(collection), "1A,2b,3c");
  client.close();
});

test("a query that fails leaves nobody waiting", async () => {
  const { client, collection, say } = await stage();
  say({ faulted: { sub: 1, code: "query_faulted", message: "division by zero", retry: false } });
  await collection.preload();
  assert.equal(rows(collection), "");
  client.close();
});
