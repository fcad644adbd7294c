// Pending mutations over newer rows: their mutators run again, and where they cannot, what they did at first stands.
//
// Seen to fail: with the recorded operations laid over newer rows; with a mutation run again over rows that have its
// effect already.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import WebSocket from "ws";
import { from, int8, ownBackend, table, text, type PostMutations, type Transaction, type View } from "../src/index.js";
import type { Storage } from "../src/storage/storage.js";
import type { Layout, Op, ServerMessage } from "../src/wire/messages.js";
import { batch, progress, Stage, subscribed } from "./support/memory.js";
import { OWN } from "./support/script.js";
import { connect, startServer, until } from "./support/server.js";

const polls = table("polls", { id: int8(), votes: int8(), title: text() }, { key: ["id"] });
const POLLS: Layout = {
  tables: [{ name: "polls", columns: [{ name: "id", type: "int8" }, { name: "votes", type: "int8" }, { name: "title", type: "text" }], key: [0] }],
  places: [{ parent: null, as: null, table: 0, columns: [0, 1, 2], on: [], order: [[0, "asc", "nulls last"]], one: false }],
};
type Poll = { readonly id: number; readonly votes: number; readonly title: string };

const mutators = {
  vote: (tx: Transaction, { id }: { id: number }) => {
    const poll = tx.get(polls, { id });
    if (poll?.title === "closed") throw new Error("the poll is closed");
    tx.update(polls, { id }, { votes: (poll?.votes ?? 0) + 1 });
  },
  add: (tx: Transaction, { id }: { id: number }) => tx.insert(polls, { id, votes: 0, title: "new" }),
  twice: (tx: Transaction, args: { id: number }) => {
    mutators.vote(tx, args);
    mutators.vote(tx, args);
  },
  remove: (tx: Transaction, { id }: { id: number }) => tx.delete(polls, { id }),
};

const clients: { close(): void }[] = [];
after(() => {
  for (const client of clients) client.close();
});

const edit = (votes: number, title = "a"): Op => ["~", 0, 1, [1, votes, title]];
const counted = (seq: number, cv: number, count: number): ServerMessage => batch(0, 9, seq, cv, [[seq === 0 ? "+" : "~", 0, 1, ["c", count]]]);
const answered = (id: number): ServerMessage => ({ push_result: { id, error: null } });
const shown = (view: View<Poll>): unknown => [view.rows.map(({ votes }) => votes).join(), view.status];

/** A client of a poll with 5 votes; its own backend answers only when `answer` is called. */
async function stage(own: boolean, options = {}) {
  let answer = (): void => {};
  const postMutations: PostMutations = () => new Promise<void>((resolve) => (answer = resolve));
  const made = new Stage<typeof mutators>({ mutators, clientId: "c", ...(own && { backend: ownBackend(postMutations) }), ...options });
  clients.push(made.client);
  const view = made.client.view(from(polls));
  const peer = await made.accept();
  peer.say(subscribed(0, 9, false, OWN), counted(0, 10, 0), subscribed(1, 1, false, POLLS), batch(1, 1, 0, 10, [["+", 0, 1, [1, 5, "a"]]]), progress(10));
  return { ...made, client: made.client, stage: made, view, peer, answer: () => answer() };
}

test("pending mutations run again over newer rows, in order, until their count is released", async () => {
  const { client, view, peer, answer, stage: made } = await stage(true);
  const first = client.mutate.vote({ id: 1 });
  const second = client.mutate.vote({ id: 1 });
  assert.deepEqual(shown(view), ["7", "complete"]);
  peer.say(batch(1, 1, 1, 11, [edit(10)]), progress(11));
  assert.deepEqual(shown(view), ["12", "complete"], "another's votes");
  // The first is in the released rows before its answer is here.
  peer.say(batch(1, 1, 2, 12, [edit(11)]), counted(1, 12, 1), progress(12));
  assert.deepEqual(shown(view), ["12", "complete"], "not counted twice");
  assert.equal(client.pendingMutations, 2);
  answer();
  await first.confirmed;
  await made.settle();
  answer();
  peer.say(batch(1, 1, 3, 13, [edit(12)]), counted(2, 13, 2), progress(13));
  await second.confirmed;
  assert.deepEqual([shown(view), client.pendingMutations], [["12", "complete"], 0]);
});

test("a mutator reads what earlier mutations and itself have done", async () => {
  const { client, view } = await stage(true);
  client.mutate.twice({ id: 1 });
  assert.deepEqual(shown(view), ["7", "complete"]);
  client.mutate.add({ id: 2 });
  client.mutate.vote({ id: 2 });
  assert.deepEqual(shown(view), ["7,1", "complete"]);
  client.mutate.remove({ id: 2 });
  client.mutate.add({ id: 2 });
  assert.deepEqual(shown(view), ["7,0", "complete"]);
});

test("the embedded store is given what a mutator did when it was called; what differs from it is partial", async () => {
  const { client, view, peer } = await stage(false);
  const { confirmed } = client.mutate.vote({ id: 1 });
  assert.deepEqual(peer.asked("push")[0].mutations, [{ id: 1, ops: [{ update: "polls", key: { id: 1 }, set: { votes: 6 } }] }]);
  assert.deepEqual(shown(view), ["6", "complete"]);
  peer.say(batch(1, 1, 1, 11, [edit(10)]), progress(11));
  assert.deepEqual(shown(view), ["11", "partial"]);
  peer.say(answered(1), batch(1, 1, 2, 12, [edit(6)]), counted(1, 12, 1), progress(12));
  await confirmed;
  assert.deepEqual(shown(view), ["6", "complete"]);
});

test("after a reconnect a mutation that may be in the rows already is not run again before the count is there", async () => {
  const { client, view, peer, stage: made } = await stage(true, { backoffMs: 1 });
  client.mutate.vote({ id: 1 });
  peer.events.closed("gone");
  await until("another connection", () => made.peers.length === 2, (look) => {
    const timer = setInterval(look, 1);
    return () => clearInterval(timer);
  });
  const next = await made.accept();
  next.say(subscribed(1, 2, true, POLLS), batch(1, 2, 0, 20, [edit(6)]), progress(20));
  assert.deepEqual(shown(view), ["6", "complete"], "its own vote, once");
  next.say(subscribed(0, 9, false, OWN), counted(0, 21, 1), progress(21));
  assert.deepEqual(shown(view), ["6", "complete"]);
});

test("a mutator that throws when it runs again is told of once, and what it did at first stands", async () => {
  const { client, view, peer, stage: made } = await stage(true);
  client.mutate.vote({ id: 1 });
  peer.say(batch(1, 1, 1, 11, [edit(10, "closed")]), progress(11));
  peer.say(batch(1, 1, 2, 12, [edit(11, "closed")]), progress(12));
  await made.settle();
  assert.deepEqual([shown(view), made.errors], [["6", "complete"], ["mutator"]]);
  // A row that is not known any more decides nothing either.
  peer.say(batch(1, 1, 3, 13, [["-", 0, [1]]]), progress(13));
  assert.deepEqual(view.rows, []);
});

test("a kept mutation whose mutator is gone shows what it did, is sent, and is told of once", async () => {
  const ops = [{ update: "polls", key: { id: 1 }, set: { votes: 8 } }];
  const kept = [{ ticket: "old-1", name: "renamed", args: null, ops }];
  const storage: Storage = {
    open: (events) => {
      queueMicrotask(() => events.writer(true));
      return Promise.resolve({ clientId: "c", cv: 0, mutations: kept, queries: new Map() });
    },
    changed() {}, addMutation: () => Promise.resolve(), number: () => Promise.resolve(true), tells: () => Promise.resolve(true), answered() {}, settle: () => Promise.resolve(), close() {},
  };
  const { view, peer, stage: made } = await stage(false, { storage });
  await made.settle();
  assert.deepEqual([shown(view), made.errors], [["8", "complete"], ["no_mutator"]]);
  assert.deepEqual(peer.asked("push")[0].mutations, [{ id: 1, ops }]);
});

test("votes of several clients by way of an own backend are all counted, and never go back", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  await server.sql("create table polls (id bigint primary key, votes bigint not null, title text not null); insert into polls values (1, 0, 'a')");
  const backend = startBackend(server.url, server.sql);
  t.after(() => backend.close());
  const VOTES = 12;
  const voters = await Promise.all([1, 2, 3].map(async () => {
    const client = connect<typeof mutators>(server, { mutators, backend: ownBackend(backend.post) });
    clients.push(client);
    const view = client.view(from(polls));
    await view.complete();
    const seen: number[] = [];
    view.subscribe(({ rows }) => seen.push(rows[0]!.votes));
    return { client, view, seen };
  }));
  await Promise.all(voters.flatMap(({ client }) => Array.from({ length: VOTES }, () => client.mutate.vote({ id: 1 }).confirmed)));
  for (const { view, seen } of voters) {
    await until("all votes", () => view.rows[0]?.votes === VOTES * voters.length && view.status === "complete", (look) => view.subscribe(look));
    assert.deepEqual(seen, [...seen].sort((a, b) => a - b), "votes never go back");
  }
});

/** An application's backend: it runs `vote` on the rows that are there, one mutation after the other. */
function startBackend(url: string, query: (text: string) => Promise<unknown>) {
  const sockets = new Map<string, WebSocket>();
  const speak = async (clientId: string): Promise<WebSocket> => {
    let socket = sockets.get(clientId);
    if (!socket) {
      sockets.set(clientId, (socket = new WebSocket(`${url.replace("http", "ws")}/v1/sync`, "tidegate.v1+json")));
      await new Promise((resolve) => socket!.once("open", resolve));
      socket.send(JSON.stringify({ hello: { client_id: clientId } }));
    }
    return socket;
  };
  let last: Promise<unknown> = Promise.resolve();
  const apply = async (clientId: string, id: number): Promise<void> => {
    const { results } = (await query("select votes from polls where id = 1")) as { results: { rows: number[][] }[] };
    const socket = await speak(clientId);
    const done = new Promise<void>((resolve, reject) => {
      socket.on("message", function heard(data) {
        const { push_result: answer } = JSON.parse(String(data)) as ServerMessage;
        if (answer?.id !== id) return;
        socket.off("message", heard);
        if (answer.error) reject(new Error(answer.error.message));
        else resolve();
      });
    });
    socket.send(JSON.stringify({ push: { mutations: [{ id, ops: [{ update: "polls", key: { id: 1 }, set: { votes: results[0]!.rows[0]![0]! + 1 } }] }] } }));
    await done;
  };
  const post: PostMutations = (mutations) => {
    const applied = last.then(async () => {
      for (const { clientId, id } of mutations) await apply(clientId, id);
    });
    last = applied.catch(() => {});
    return applied;
  };
  return { post, close: () => sockets.forEach((socket) => socket.close()) };
}
