// The client over a scripted server: connections that fail and come back, views that share, listeners that are told.

import assert from "node:assert/strict";
import { mock, test, type TestContext } from "node:test";
import { Backoff } from "../src/connection/backoff.js";
import { syncUrl } from "../src/connection/address.js";
import { remote, type MutationHandle, type TidegateError, type Update } from "../src/index.js";
import type { Layout } from "../src/wire/messages.js";
import { add, batch, edit, progress, Stage, subscribed } from "./support/memory.js";
import { ISSUES as LAYOUT, OWN } from "./support/script.js";

const ISSUES = remote<{ id: number; title: string }>({ sql: "select 1" });
const OTHERS = remote<{ id: number; title: string }>({ sql: "select 2" });

/** A stage with clocks that the test moves. */
function stage(t: TestContext, options: ConstructorParameters<typeof Stage>[0] = {}): Stage {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  const made = new Stage({ backoffMs: 100, ...options });
  t.after(() => {
    made.client.close();
    mock.timers.reset();
  });
  return made;
}

test("waits double, are jittered and bounded; the server's wish is a lower bound", () => {
  for (const [random, share] of [[0, 0.5], [1, 1]] as const) {
    const backoff = new Backoff(100, 3_000, () => random);
    assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(() => backoff.next(0)), [100, 200, 400, 800, 1600, 3000, 3000].map((ms) => ms * share));
    assert.equal(backoff.next(8_000), 8_000 * (1 + random / 4));
    assert.ok(backoff.next(1e12) < 5_000_000);
    assert.ok(backoff.next(Number("soon")) >= 3_000 * share);
    backoff.reset();
    assert.equal(backoff.next(0), 100 * share);
  }
});

test("addresses become the socket's", () => {
  assert.equal(syncUrl("http://127.0.0.1:7300"), "ws://127.0.0.1:7300/v1/sync");
  assert.equal(syncUrl("https://host/base/?a=b"), "wss://host/base/v1/sync?a=b");
  assert.equal(syncUrl("ws://host/v1/sync"), "ws://host/v1/sync");
  assert.equal(syncUrl(" WSS://user@host:1/v1/sync/#part"), "wsS://user@host:1/v1/sync");
  for (const bad of ["127.0.0.1:7300", "ftp://host", "http://", "http:///v1/sync", ""]) assert.throws(() => syncUrl(bad), { code: "connection" }, bad);
});

test("a view shows states, tells what changed, and is the same object meanwhile", async (t) => {
  const { client, accept } = bound(stage(t));
  const view = client.view(ISSUES);
  assert.deepEqual([view.status, view.rows, view.error], ["connecting", [], null]);
  const updates: Update<unknown>[] = [];
  view.subscribe((update) => updates.push(update));
  const peer = await accept();
  assert.deepEqual(peer.asked("hello"), [{}]);
  assert.deepEqual(peer.asked("subscribe"), [{ sub: 1, sql: "select 1" }]);
  peer.say(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a"), add(2, "b")]), progress(5));
  assert.deepEqual([view.status, view.rows], ["complete", [{ id: 1, title: "a" }, { id: 2, title: "b" }]]);
  const { state } = view;
  peer.say(progress(6));
  assert.equal(view.state, state);
  peer.say(batch(1, 7, 1, 7, [["~", 0, 1, [1, "a", 9]]]), progress(7));
  assert.equal(view.state, state, "a column that is not shown");
  peer.say(batch(1, 7, 2, 8, [edit(2, "B")]), progress(8));
  assert.equal(view.rows[0], state.rows[0]);
  assert.deepEqual(updates.map(({ cv, changes }) => [cv, changes.map(({ op }) => op)]), [[5, ["add", "add"]], [8, ["edit"]]]);
  assert.equal(client.cv, 8);
});

test("listeners that read other views see the same commit", async (t) => {
  const { client, accept } = bound(stage(t));
  const [a, b] = [client.view(ISSUES), client.view(OTHERS)];
  const seen: string[] = [];
  const both = () => seen.push(`${a.rows[0]?.title}${b.rows[0]?.title}`);
  a.subscribe(both);
  b.subscribe(both);
  const peer = await accept();
  peer.say(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), subscribed(2, 8), batch(2, 8, 0, 5, [add(1, "a")]), progress(5));
  peer.say(batch(1, 7, 1, 6, [edit(1, "b")]), batch(2, 8, 1, 6, [edit(1, "b")]), progress(6));
  assert.deepEqual(seen, ["aa", "aa", "bb", "bb"]);
});

test("views of equal queries share a subscription, which outlives the last one a little", async (t) => {
  const { client, accept } = bound(stage(t, { lingerMs: 1_000 }));
  const peer = await accept();
  const [a, b] = [client.view(ISSUES), client.view(remote({ sql: "select 1" }))];
  assert.equal(peer.asked("subscribe").length, 1);
  a.close();
  a.close();
  b.close();
  mock.timers.tick(999);
  const again = client.view(ISSUES);
  mock.timers.tick(5_000);
  assert.deepEqual(peer.asked("unsubscribe"), []);
  again.close();
  mock.timers.tick(1_000);
  assert.deepEqual(peer.asked("unsubscribe"), [{ sub: 1 }]);
  client.view(ISSUES);
  assert.deepEqual(peer.asked("subscribe").map(({ sub }) => sub), [1, 2]);
});

test("subscribe calls with rows, and at once when some are there", async (t) => {
  const { client, accept } = bound(stage(t));
  const calls: unknown[] = [];
  const end = client.subscribe(ISSUES, (rows) => calls.push(rows.length));
  const peer = await accept();
  peer.say(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  const second: unknown[] = [];
  client.subscribe(ISSUES, (rows) => second.push(rows.length));
  end();
  peer.say(batch(1, 7, 1, 6, [add(2, "b")]), progress(6));
  assert.deepEqual([calls, second], [[1], [1, 2]]);
});

test("a lost connection is made again, from what is held, and shows it meanwhile", async (t) => {
  const { client, accept, peers } = bound(stage(t));
  const view = client.view(ISSUES);
  const states: string[] = [];
  client.onStatus(({ state }) => states.push(state));
  const first = await accept();
  first.say(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  first.events.closed("gone");
  assert.equal(client.status.state, "waiting");
  assert.deepEqual([view.rows.length, view.status], [1, "complete"], "never an empty flash");
  mock.timers.tick(100);
  const second = await accept();
  assert.equal(peers.length, 2);
  assert.deepEqual(second.asked("subscribe")[0].resume, { epoch: 7, cv: 5, fp: "0123456789abcdef" });
  // What the old connection still says is passed over.
  first.say(batch(1, 7, 1, 9, [add(9, "stale")]), progress(9));
  second.say(subscribed(1, 8, true), batch(1, 8, 0, 9, [add(2, "b")]), progress(9));
  assert.deepEqual(view.rows.map(({ title }) => title), ["a", "b"]);
  assert.deepEqual(states, ["connected", "waiting", "connecting", "connected"]);
});

test("waits grow while connections fail, and begin anew after one that held", async (t) => {
  const { client, accept, peers, settle } = bound(stage(t));
  const waits: number[] = [];
  client.onStatus((status) => status.state === "waiting" && waits.push(status.retryInMs));
  for (let i = 0; i < 5; i += 1) {
    await settle();
    peers.at(-1)!.events.closed("refused");
    mock.timers.tick(30_000);
  }
  assert.ok(waits.every((ms, i) => ms >= 50 * 2 ** i && ms <= 100 * 2 ** i), String(waits));
  const peer = await accept();
  mock.timers.tick(6_000);
  peer.events.closed("gone");
  assert.ok(waits.at(-1)! <= 100, String(waits));
});

test("goaway is honoured", async (t) => {
  const { client, accept, peers, settle } = bound(stage(t));
  const peer = await accept();
  peer.say({ goaway: { code: "shutting_down", message: "the server is stopping", retry_after_ms: 5_000 } });
  assert.equal(peer.closed, true);
  const { status } = client;
  assert.ok(status.state === "waiting" && status.error.code === "shutting_down" && status.retryInMs >= 5_000);
  mock.timers.tick(4_999);
  await settle();
  assert.equal(peers.length, 1);
  mock.timers.tick(1_300);
  await settle();
  assert.equal(peers.length, 2);
});

test("a view that has failed is asked for again by a new view, and on a new connection", async (t) => {
  const { client, accept } = bound(stage(t));
  const view = client.view(ISSUES);
  const first = await accept();
  const refuse = (sub: number) => ({ error: { code: "unknown_table", message: "there is no such table", sub } });
  first.say(refuse(1));
  assert.equal(view.error?.code, "unknown_table");
  const second = client.view(ISSUES);
  const rows = second.complete();
  assert.deepEqual(first.asked("subscribe").map(({ sub }) => sub), [1, 2]);
  first.say(refuse(2));
  await assert.rejects(rows, { code: "unknown_table" });
  first.events.closed("gone");
  mock.timers.tick(1_000);
  const next = await accept();
  assert.deepEqual(next.asked("subscribe").map(({ sub }) => sub), [3]);
  next.say(subscribed(3, 7), batch(3, 7, 0, 5, [add(1, "back")]), progress(5));
  for (const { status, rows: shown } of [view, second]) assert.deepEqual([status, shown.length], ["complete", 1]);
});

test("whoever waits for rows is told when the client is closed", async (t) => {
  const { client } = bound(stage(t));
  const waiting = assert.rejects(client.view(ISSUES).complete(), { code: "closed", message: "the client is closed" });
  client.close();
  await waiting;
});

test("whoever waits for rows of a view is told when that is closed, and nobody else", async (t) => {
  const { client, accept } = bound(stage(t));
  const [view, other] = [client.view(ISSUES), client.view(ISSUES)];
  const closed = { code: "closed", message: "the view is closed" };
  const waiting = [assert.rejects(view.complete(), closed), assert.rejects(view.complete(), closed)];
  const rows = other.complete();
  view.subscribe(() => assert.fail("a closed view tells nothing"));
  view.close();
  await Promise.all(waiting);
  await assert.rejects(view.complete(), closed);
  const peer = await accept();
  peer.say(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  assert.equal((await rows).length, 1);
  assert.equal((await other.complete()).length, 1);
});

test("a result of another layout replaces every row, also by none", async (t) => {
  const { client, accept } = bound(stage(t));
  const view = client.view(ISSUES);
  const updates: Update<unknown>[] = [];
  view.subscribe((update) => updates.push(update));
  const peer = await accept();
  peer.say(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a"), add(2, "b")]), progress(5));
  const wider: Layout = { ...LAYOUT, places: [{ ...LAYOUT.places[0]!, columns: [0, 1, 2] }] };
  peer.say(subscribed(1, 8, false, wider), batch(1, 8, 0, 6, [add(2, "b")]), progress(6));
  peer.say(subscribed(1, 9), batch(1, 9, 0, 7, []), progress(7));
  const told = updates.map(({ rows, changes }) => [rows.length, changes.map(({ op, row }) => `${op} ${(row as { id: number }).id}`).join()]);
  assert.deepEqual(told, [[2, "add 1,add 2"], [1, "remove 1,remove 2,add 2"], [0, "remove 2"]]);
});

test("the server's name of the connection is known while there is one", async (t) => {
  const { client, accept } = bound(stage(t));
  const names: (string | undefined)[] = [client.conn];
  client.onStatus(() => names.push(client.conn));
  (await accept()).events.closed("gone");
  mock.timers.tick(100);
  await accept();
  client.close();
  assert.deepEqual(names, [undefined, "1", undefined, undefined, "2", undefined]);
});

test("a server of another protocol is told of, and asked again after a wait", async (t) => {
  const { client, peers, settle } = bound(stage(t));
  await settle();
  peers[0]!.open().say({ welcome: { protocol: 2, server: "test", conn: "1", cv: 1 } });
  assert.ok(client.status.state === "waiting" && client.status.retryInMs >= 50);
  assert.match(client.status.error.message, /protocol 2 instead of 1/);
  assert.equal(peers.length, 1);
});

test("a token is asked for before every connection, and can be renewed", async (t) => {
  let n = 0;
  const { client, accept } = bound(stage(t, { token: () => Promise.resolve(`t${(n += 1)}`) }));
  const first = await accept();
  assert.deepEqual(first.asked("hello"), [{ token: "t1" }]);
  await client.refreshToken();
  assert.deepEqual(first.asked("auth"), [{ token: "t2" }]);
  first.say({ error: { code: "unauthenticated", message: "expired" } });
  assert.equal(client.status.state, "waiting");
  mock.timers.tick(100);
  assert.deepEqual((await accept()).asked("hello"), [{ token: "t3" }]);
});

test("a token that cannot be had is a failed connection", async (t) => {
  const { client, settle } = bound(stage(t, { token: () => Promise.reject(new Error("no session")) }));
  await settle();
  assert.ok(client.status.state === "waiting" && client.status.error.message === "no session");
});

test("a silent server is asked for a sign of life, and given up", async (t) => {
  const { client, accept } = bound(stage(t));
  const peer = await accept();
  mock.timers.tick(36_000);
  assert.equal(peer.asked("ping").length, 1);
  peer.say({ pong: { t: 1 } });
  mock.timers.tick(59_000);
  assert.equal(client.status.state, "connected");
  mock.timers.tick(2_000);
  assert.equal(client.status.state, "waiting");
});

test("a server that never answers is given up", async (t) => {
  const { client, settle, peers } = bound(stage(t));
  await settle();
  mock.timers.tick(10_000);
  assert.equal(client.status.state, "waiting");
  assert.equal(peers[0]!.closed, true);
});

test("a wake-up connects at once, and asks a connection in doubt for a sign of life", async (t) => {
  let wake = (): void => {};
  const { client, accept, peers, settle } = bound(stage(t, { wakeups: (call) => ((wake = call), () => {}) }));
  const first = await accept();
  wake();
  assert.equal(first.asked("ping").length, 1);
  mock.timers.tick(6_000);
  assert.equal(client.status.state, "waiting");
  wake();
  await settle();
  assert.equal(peers.length, 2);
});

test("the answer to a ping from before the last wake-up is no sign of life", async (t) => {
  let wake = (): void => {};
  const { client, accept } = bound(stage(t, { wakeups: (call) => ((wake = call), () => {}) }));
  const peer = await accept();
  wake();
  mock.timers.tick(10);
  wake(); // the network is gone again, with an answer under way
  const [first, second] = peer.asked("ping");
  peer.say({ pong: first });
  mock.timers.tick(6_000);
  assert.equal(client.status.state, "waiting");
  mock.timers.tick(100);
  const next = await accept();
  wake();
  next.say({ pong: next.asked("ping")[0] });
  mock.timers.tick(6_000);
  assert.deepEqual([client.status.state, first.t < second.t], ["connected", true]);
});

test("the network's and the page's events are wake-ups, until the client is closed", async (t) => {
  const page = new EventTarget();
  const document = Object.assign(new EventTarget(), { visibilityState: "hidden" });
  const given = { document, addEventListener: page.addEventListener.bind(page), removeEventListener: page.removeEventListener.bind(page) };
  Object.assign(globalThis, given);
  t.after(() => Object.keys(given).forEach((name) => delete (globalThis as Record<string, unknown>)[name]));
  const { client, accept, peers, settle } = bound(stage(t));
  const first = await accept();
  const pings = () => first.asked("ping").length;
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(pings(), 0, "the page went to the back");
  document.visibilityState = "visible";
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(pings(), 1);
  first.say({ pong: { t: 1 } });
  // The socket stays open when the network goes, but nothing comes over it.
  page.dispatchEvent(new Event("offline"));
  assert.equal(pings(), 2);
  mock.timers.tick(6_000);
  assert.equal(client.status.state, "waiting");
  const before = peers.length;
  page.dispatchEvent(new Event("online"));
  await settle();
  assert.equal(peers.length, before + 1, "at once");
  client.close();
  page.dispatchEvent(new Event("online"));
  await settle();
  assert.equal(peers.length, before + 1);
});

test("a breach of the protocol ends the connection, named after its invariant", async (t) => {
  const { client, accept } = bound(stage(t));
  client.view(ISSUES);
  const peer = await accept();
  peer.say(subscribed(1, 7), batch(1, 7, 1, 5, []));
  assert.ok(client.status.state === "waiting" && client.status.error.code === "seq_is_gapless");
  assert.equal(peer.closed, true);
});

test("a frame that cannot be decoded ends the connection", async (t) => {
  const { client, accept } = bound(stage(t));
  (await accept()).events.received("{");
  assert.ok(client.status.state === "waiting" && client.status.error.code === "bad_message");
});

test("a refused query says why; one that may succeed is asked again and keeps its rows", async (t) => {
  const { client, accept } = bound(stage(t));
  const [refused, faulted] = [client.view(ISSUES), client.view(OTHERS)];
  const updates: Update<unknown>[] = [];
  faulted.subscribe((update) => updates.push(update));
  const rejected = assert.rejects(refused.complete(), { code: "bad_query" });
  const peer = await accept();
  peer.say({ error: { code: "bad_query", message: "no such thing", sub: 1 } });
  await rejected;
  assert.equal(refused.status, "error");
  peer.say(subscribed(2, 7), batch(2, 7, 0, 5, [add(1, "a")]), progress(5));
  peer.say({ faulted: { sub: 2, code: "query_removed", message: "replaced", retry: true } });
  assert.deepEqual([faulted.status, faulted.error?.code, faulted.rows.length], ["error", "query_removed", 1]);
  mock.timers.tick(100);
  assert.deepEqual(peer.asked("subscribe").map(({ sub }) => sub), [1, 2, 3]);
  peer.say(subscribed(3, 8), batch(3, 8, 0, 6, [add(2, "b")]), progress(6));
  assert.deepEqual([faulted.status, faulted.rows], ["complete", [{ id: 2, title: "b" }]]);
  assert.deepEqual(updates.at(-1)!.changes.map(({ op }) => op), ["remove", "add"]);
});

test("an application's error keeps nobody else from being told", async (t) => {
  const thrown: unknown[] = [];
  t.mock.method(globalThis, "queueMicrotask", (step: () => void) => {
    try {
      step();
    } catch (error) {
      thrown.push((error as Error).message);
    }
  });
  const fail = (what: string) => (): never => {
    throw new Error(what);
  };
  const told: string[] = [];
  const made = stage(t, { mutators: { add: () => {} }, clientId: "c", onRefused: fail("onRefused") });
  const { client, accept } = bound(made);
  const view = client.view(ISSUES);
  view.subscribe(fail("listener"));
  view.subscribe(({ status }) => told.push(status));
  const peer = await accept();
  peer.say(subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, []), subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  const { add: mutate } = client.mutate as unknown as { add(): MutationHandle };
  const [refused, taken] = [mutate(), mutate()];
  peer.say({ push_result: { id: 1, error: { code: "conflict", message: "no" } } }, { push_result: { id: 2, error: null } });
  peer.say(batch(0, 1, 1, 6, [["+", 0, 1, ["c", 2]]]), progress(6));
  await assert.rejects(refused.confirmed, { code: "conflict" });
  await taken.confirmed;
  assert.deepEqual([client.status.state, told.at(-1), client.pendingMutations], ["connected", "complete", 0]);
  assert.deepEqual([...new Set(thrown)], ["listener", "onRefused"]);
});

test("a complaint about the connection as a whole is told", async (t) => {
  const made = stage(t);
  (await made.accept()).say({ error: { code: "too_many_subscriptions", message: "enough" } });
  assert.deepEqual(made.errors, ["too_many_subscriptions"]);
});

test("a closed client does nothing any more", async (t) => {
  const { client, accept, peers, settle } = bound(stage(t));
  const peer = await accept();
  client.close();
  client.close();
  assert.equal(peer.closed, true);
  mock.timers.tick(100_000);
  await settle();
  assert.deepEqual([client.status.state, peers.length], ["closed", 1]);
  assert.throws(() => client.view(ISSUES), (error: TidegateError) => error.code === "closed");
});

test("how far the client has got is told about every second", async (t) => {
  const { client, accept } = bound(stage(t));
  client.view(ISSUES);
  const peer = await accept();
  peer.say(subscribed(1, 7), batch(1, 7, 0, 5, []), progress(5), progress(6));
  mock.timers.tick(1_000);
  mock.timers.tick(1_000);
  assert.deepEqual(peer.asked("ack"), [{ cv: 6 }]);
});

/** The stage's parts, to be taken apart. */
function bound(made: Stage) {
  return { client: made.client, peers: made.peers, accept: () => made.accept(), settle: () => made.settle() };
}
