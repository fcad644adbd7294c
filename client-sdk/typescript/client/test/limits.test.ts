// What the server's limits on messages mean: many mutations are sent in several messages, and a mutation or a query that
// no message can hold is refused, while others go on.

import "fake-indexeddb/auto";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { from, indexedDbStorage, int8, isIn, ownBackend, table, text, type TidegateClient, type TidegateError, type Transaction } from "../src/index.js";
import { encode } from "../src/wire/codec.js";
import { batch, progress, Stage, subscribed } from "./support/memory.js";
import { OWN } from "./support/script.js";
import { connect, startServer, until, type Server } from "./support/server.js";

const notes = table("notes", { id: int8(), text: text() }, { key: ["id"] });
const mutators = { add: (tx: Transaction, row: { id: number; text: string }) => tx.insert(notes, row) };
type Client = TidegateClient<typeof mutators>;

const LIMITS = { message_bytes_max: 2_000, mutations_max: 3 };
let server: Server;
const clients: { close(): void }[] = [];
before(async () => {
  server = await startServer({ limits: LIMITS });
  await server.sql("create table notes (id bigint primary key, text text not null)");
});
after(async () => {
  for (const client of clients) client.close();
  await server.stop();
});

/** A note whose mutation takes so many bytes to push, as the first of its client. */
function noteOf(bytes: number, id: number, codec: "json" | "msgpack"): { id: number; text: string } {
  const note = (letters: string) => ({ id, text: `ä€😀${letters}` });
  const size = (letters: string): number =>
    Buffer.byteLength(encode({ push: { mutations: [{ id: 1, ops: [{ insert: "notes", row: note(letters) }] }], json_cells: true } }, codec));
  const most = "x".repeat(bytes);
  return note(most.slice(size(most) - bytes));
}

/** Resolves when nothing waits any more; rejects when the connection is lost before. */
async function settled(client: Client): Promise<void> {
  const lost = new Promise<never>((_, reject) => client.onStatus((status) => {
    if (status.state === "waiting") reject(status.error);
  }));
  await Promise.race([until("the end of the queue", () => client.pendingMutations === 0, everyTurn), lost]);
}

function everyTurn(look: () => void): () => void {
  const timer = setInterval(look, 1);
  return () => clearInterval(timer);
}

for (const codec of ["json", "msgpack"] as const) {
  const first = codec === "json" ? 100 : 200;
  const opened = (options = {}) => {
    const client = connect<typeof mutators>(server, { mutators, codec, ...options });
    clients.push(client);
    return { client, view: client.view(from(notes).where("id", ">=", first).where("id", "<", first + 100)) };
  };

  test(`a mutation as large as a message may be is taken, one byte more is refused, in ${codec}`, async () => {
    const refusals: [string, number][] = [];
    const { client, view } = opened({ onRefused: ({ code }: TidegateError, { args }: { args: { id: number } }) => refusals.push([code, args.id]) });
    await view.complete();
    const { conn } = client;
    const most = noteOf(2_000, first, codec);
    await client.mutate.add(most).confirmed;
    const tooLarge = client.mutate.add(noteOf(2_001, first + 1, codec));
    const behind = client.mutate.add({ id: first + 2, text: "behind" });
    const message = "a message may have 2000 bytes, not 2001";
    await assert.rejects(tooLarge.confirmed, { code: "message_too_large", message });
    assert.deepEqual(view.rows.map(({ id }) => id), [first, first + 2], "it is taken back, and what is behind it still shows");
    await behind.confirmed;
    await settled(client);
    assert.deepEqual(await view.complete(), [most, { id: first + 2, text: "behind" }]);
    assert.deepEqual([refusals, client.conn], [[["message_too_large", first + 1]], conn]);
  });

  test(`mutations that waited are sent in as many messages as it takes, in ${codec}`, async () => {
    const { client, view } = opened();
    // By number, by size, and one that no message holds among them.
    const ids = Array.from({ length: 20 }, (_, at) => first + 10 + at);
    const made = ids.map((id, at) => client.mutate.add(at === 12 ? noteOf(2_500, id, codec) : noteOf(at < 10 ? 80 : 900, id, codec)));
    const outcomes = Promise.allSettled(made.map(({ confirmed }) => confirmed));
    await settled(client);
    assert.deepEqual((await outcomes).flatMap(({ status }, at) => (status === "rejected" ? [at] : [])), [12]);
    const shown = (await view.complete()).map(({ id }) => id);
    assert.deepEqual(ids.filter((id) => !shown.includes(id)), [first + 22]);
  });
}

test("a query that no message holds fails by itself", async () => {
  const large = () => from(notes).where(({ id }) => isIn(id, Array.from({ length: 1_000 }, (_, at) => at)));
  // The limit is not known before the first connection: that is lost, and the next knows.
  const early = connect<typeof mutators>(server, { mutators, backoffMs: 1 });
  clients.push(early);
  const small = early.view(from(notes).where("id", "<", 50));
  const message = /^a message may have 2000 bytes, not \d{4}$/;
  await assert.rejects(early.view(large()).complete(), { code: "message_too_large", message });
  await small.complete();
  await until("the next connection", () => early.conn !== undefined, everyTurn);
  const { conn } = early;
  await assert.rejects(early.view(large().orderBy("text")).complete(), { code: "message_too_large", message });
  await early.mutate.add({ id: 1, text: "goes on" }).confirmed;
  assert.deepEqual(small.rows, [{ id: 1, text: "goes on" }]);
  assert.equal(early.conn, conn);
});

test("what a tab without a connection made is refused by the tab that sends, and goes from the storage", async () => {
  const storage = () => indexedDbStorage({ name: "limits", locks: null, leaseMs: 150 });
  const told: string[] = [];
  const tab = (name: string, options = {}) => {
    const onRefused = ({ code }: TidegateError, { args }: { args: any }) => told.push(`${name} ${code} ${args.id}`);
    const client = connect<typeof mutators>(server, { mutators, storage: storage(), onRefused, ...options });
    clients.push(client);
    return client;
  };
  const sending = tab("sending");
  await sending.mutate.add({ id: 300, text: "so that it is the one that sends" }).confirmed;
  const offline = tab("offline", { connect: () => ({ send: () => {}, close: () => {} }) });
  const { confirmed } = offline.mutate.add({ id: 301, text: "x".repeat(2_000) });
  offline.mutate.add({ id: 302, text: "fits" });
  await assert.rejects(confirmed, { code: "message_too_large" });
  await until("the other to be sent", () => sending.pendingMutations === 0, everyTurn);
  assert.deepEqual(told, ["offline message_too_large 301"]);
  const view = sending.view(from(notes).where("id", ">=", 300));
  assert.deepEqual((await view.complete()).map(({ id }) => id), [300, 302]);
  offline.close();
  sending.close();
  const next = tab("next");
  await until("a connection", () => next.status.state === "connected", (look) => next.onStatus(look));
  await next.mutate.add({ id: 303, text: "the count goes on" }).confirmed;
  assert.equal(told.length, 1, "nothing is kept of it");
});

test("a limit that has become lower refuses what was sent before, unless the server has it", async () => {
  const stage = new Stage<typeof mutators>({ mutators, clientId: "c", backoffMs: 1 });
  clients.push(stage.client);
  const begin = async (limit: number, count: number) => {
    await until("a connection", () => stage.peers.at(-1)?.closed === false, everyTurn);
    const peer = await stage.accept({ message_bytes_max: limit });
    return peer.say(subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, [["+", 0, 1, ["c", count]]]));
  };
  const pushed = (peer: { asked(kind: "push"): any[] }): [number, number][] =>
    peer.asked("push").flatMap(({ mutations }) => mutations.map(({ id, ops }: { id: number; ops: unknown[] }) => [id, ops.length]));
  const peer = await begin(10_000, 0);
  const [taken, lost] = [1, 2].map((id) => stage.client.mutate.add({ id, text: "x".repeat(2_000) }));
  assert.deepEqual(pushed(peer), [[1, 1], [2, 1]]);
  peer.events.closed("restarted");
  const next = await begin(2_000, 1);
  await assert.rejects(lost!.confirmed, { code: "message_too_large" });
  assert.deepEqual(pushed(next), [[1, 0], [2, 0]], "ids have no gap");
  for (const id of [1, 2]) next.say({ push_result: { id, error: null } });
  next.say(batch(0, 1, 1, 6, [["~", 0, 1, ["c", 2]]]), progress(6));
  await taken!.confirmed;
  assert.equal(stage.client.pendingMutations, 0);
});

test("an own backend is sent mutations of any size", async () => {
  const posted: number[] = [];
  const stage = new Stage<typeof mutators>({ mutators, clientId: "c", backend: ownBackend(async (all) => void posted.push(...all.map(({ id }) => id))) });
  clients.push(stage.client);
  const peer = await stage.accept({ message_bytes_max: 1_024 });
  peer.say(subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, []), progress(5));
  const { confirmed } = stage.client.mutate.add({ id: 1, text: "x".repeat(2_000) });
  await stage.settle();
  assert.deepEqual(posted, [1]);
  peer.say(batch(0, 1, 1, 6, [["+", 0, 1, ["c", 1]]]), progress(6));
  await confirmed;
});
