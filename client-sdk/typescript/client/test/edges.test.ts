// Values and moments at the edge of what happens: texts that are none, listeners that bring about more, clocks.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { from, int8, remote, table, text, TidegateError, type Transaction } from "../src/index.js";
import { decode, encode, stringify } from "../src/wire/codec.js";
import type { Layout } from "../src/wire/messages.js";
import { batch, edit, progress, Stage, subscribed } from "./support/memory.js";
import { OWN } from "./support/script.js";

const notes = table("issues", { id: int8(), title: text() }, { key: ["id"] });
const clients: { close(): void }[] = [];
after(() => {
  for (const client of clients) client.close();
});

const mutators = {
  add: (tx: Transaction, row: { id: number; title: string }) => tx.insert(notes, row),
  set: (tx: Transaction, { id, ...rest }: { id: number; title: string }) => tx.update(notes, { id }, rest),
  whole: (tx: Transaction, row: object) => tx.insert(notes, row as { id: number; title: string }),
};

/** A client with a complete view of one issue. */
async function stage() {
  const made = new Stage<typeof mutators>({ mutators, clientId: "c", backoffMs: 1 });
  clients.push(made.client);
  const view = made.client.view(from(notes));
  const peer = await made.accept();
  peer.say(subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, []), subscribed(1, 1), batch(1, 1, 0, 5, [["+", 0, 1, [1, "a", null]]]), progress(5));
  return { ...made, client: made.client, peer, view };
}

test("texts keep what they begin with, and halves of characters are none", () => {
  const message = { error: { code: "\ufeffa", message: "b" } };
  for (const codec of ["json", "msgpack"] as const) {
    assert.deepEqual(decode(encode(message as never, codec), codec), [message]);
  }
  assert.equal(stringify(["a\ud83d", "\ude00b", "\ud83d\ude00"]), '["a\ufffd","\ufffdb","\ud83d\ude00"]');
});

test("an integer that 64 bits do not hold is not another", () => {
  const sent = (value: bigint): unknown => (decode(encode({ value } as never, "msgpack"), "msgpack")[0] as unknown as { value: unknown }).value;
  for (const value of [2n ** 63n - 1n, -(2n ** 63n), 2n ** 64n - 1n]) assert.equal(sent(value), value);
  for (const value of [2n ** 64n, 2n ** 64n + 7n, -(2n ** 63n) - 1n]) assert.equal(sent(value), String(value));
});

test("what nests too deep, or in a circle, is refused where it is given", async () => {
  const { client, view, peer } = await stage();
  const deep = JSON.parse(`${"[".repeat(2_000)}1${"]".repeat(2_000)}`) as unknown;
  const circle: { self?: unknown } = {};
  circle.self = circle;
  for (const title of [deep, circle]) assert.throws(() => client.mutate.whole({ id: 9, title }), /nested too deep/);
  assert.throws(() => client.view(remote({ sql: "select", args: { deep } })), /nested too deep/);
  assert.deepEqual([client.pendingMutations, view.rows.length, peer.asked("push").length], [0, 1, 0]);
});

test("columns of which nothing is said are not written", async () => {
  let ops: unknown;
  const made = new Stage({
    mutators: {
      set: (tx: Transaction, { title }: { title: string | undefined }) => {
        tx.update(notes, { id: 1 }, { title } as { title: string });
        ops = tx.ops;
      },
    },
  });
  clients.push(made.client);
  made.client.mutate.set({ title: undefined });
  assert.deepEqual(ops, [{ update: "issues", key: { id: 1 }, set: {} }]);
});

test("all listeners hear of updates in their order, whoever brings them about", async () => {
  const { client, view, peer } = await stage();
  const heard: string[] = [];
  view.subscribe(({ rows }) => {
    heard.push(`first ${rows.map(({ title }) => title).join()}`);
    if (rows[0]!.title === "b") client.mutate.set({ id: 1, title: "c" });
  });
  view.subscribe(({ rows }) => heard.push(`second ${rows.map(({ title }) => title).join()}`));
  peer.say(batch(1, 1, 1, 6, [edit(1, "b")]), progress(6));
  assert.deepEqual(heard, ["first b", "second b", "first c", "second c"]);
});

test("after close nothing is taken, and a client closed while it begins to connect stays closed", async () => {
  const { client, peers, peer } = await stage();
  const before = peers.length;
  client.onStatus(({ state }) => state === "connecting" && client.close());
  peer.events.closed("gone");
  client.wake();
  assert.equal(client.status.state, "closed");
  await new Promise(setImmediate);
  assert.deepEqual([peers.length, client.status.state], [before, "closed"]);
  assert.throws(() => client.mutate.add({ id: 3, title: "late" }), (error) => error instanceof TidegateError && error.code === "closed");
});

test("a clock that is set back does not keep a dead connection", async (t) => {
  let now = 10_000_000;
  t.mock.timers.enable({ apis: ["setInterval"] });
  t.mock.method(Date, "now", () => now);
  const made = new Stage({ silenceMsMax: 2_000, pingMs: 1_000 });
  clients.push(made.client);
  await made.accept();
  assert.equal(made.client.status.state, "connected");
  now = 1_000_000;
  t.mock.timers.tick(1_000);
  assert.equal(made.client.status.state, "waiting");
});

test("the row behind the only one that is shown is the server's to know", async () => {
  const parents = table("parents", { id: int8() }, { key: ["id"] });
  const children = table("children", { id: int8(), parent: int8(), rank: int8() }, { key: ["id"] });
  const LAYOUT: Layout = {
    tables: [
      { name: "parents", columns: [{ name: "id", type: "int8" }], key: [0] },
      { name: "children", columns: [{ name: "id", type: "int8" }, { name: "parent", type: "int8" }, { name: "rank", type: "int8" }], key: [0] },
    ],
    places: [
      { parent: null, as: null, table: 0, columns: [0], on: [], order: [[0, "asc", "nulls last"]], one: false },
      { parent: 0, as: "first", table: 1, columns: [0, 1, 2], on: [[0, 1]], order: [[2, "asc", "nulls last"], [0, "asc", "nulls last"]], one: true },
    ],
  };
  const made = new Stage({
    clientId: "c",
    mutators: {
      move: (tx: Transaction, { rank }: { rank: number }) => tx.update(children, { id: 1 }, { rank }),
      remove: (tx: Transaction, _: object) => tx.delete(children, { id: 1 }),
    },
  });
  clients.push(made.client);
  const view = made.client.view(from(parents).relatedOne("first", from(children).orderBy("rank"), { id: "parent" }));
  const peer = await made.accept();
  peer.say(subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, []), subscribed(1, 1, false, LAYOUT), batch(1, 1, 0, 5, [["+", 0, 1, [1]], ["+", 1, 2, [1, 1, 10]]]), progress(5));
  assert.equal(view.status, "complete");
  made.client.mutate.move({ rank: 5 });
  assert.equal(view.status, "complete", "it stays the first");
  made.client.mutate.move({ rank: 30 });
  assert.equal(view.status, "partial");
  made.client.mutate.remove({});
  assert.deepEqual([view.status, view.rows], ["partial", [{ id: 1, first: null }]]);
});
