// The state machine against a scripted server: one test for each rule that a client relies on or keeps.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Effect } from "../src/state/effect.js";
import type { Layout, Op, RowOp } from "../src/wire/messages.js";
import { changes, FP, ISSUES, live, OWN, Script, sent, violation } from "./support/script.js";

const add = (id: number, title: string, project: number | null = null): Op => ["+", 0, 1, [id, title, project]];
const edit = (id: number, title: string, project: number | null = null): Op => ["~", 0, 1, [id, title, project]];
const remove = (id: number): Op => ["-", 0, [id]];

test("a snapshot shows when progress covers all its parts", () => {
  const script = new Script();
  const sub = script.subscribe();
  script.subscribed(sub, 1);
  script.batch(sub, 1, 0, 10, [add(2, "b")], true);
  script.progress(9);
  assert.equal(script.shown(sub), undefined);
  script.batch(sub, 1, 1, 10, [add(1, "a")]);
  const effects = script.progress(10);
  assert.deepEqual(script.shown(sub), [{ id: 1, title: "a" }, { id: 2, title: "b" }]);
  assert.equal((changes(effects) as []).length, 2);
});

test("an empty snapshot is told of", () => {
  const script = new Script();
  const sub = script.subscribe();
  script.subscribed(sub, 1);
  script.batch(sub, 1, 0, 10, []);
  assert.deepEqual(changes(script.progress(10)), []);
  assert.deepEqual(script.shown(sub), []);
});

test("commit_is_atomic_for_a_client", () => {
  const script = new Script();
  const [a, b] = [script.subscribe(), script.subscribe()];
  for (const sub of [a, b]) {
    script.subscribed(sub, sub);
    script.batch(sub, sub, 0, 10, [add(1, "old")]);
  }
  script.progress(10);
  script.batch(a, a, 1, 11, [edit(1, "new")]);
  script.batch(b, b, 1, 12, [edit(1, "newer")]);
  assert.deepEqual([script.shown(a), script.shown(b)], [[{ id: 1, title: "old" }], [{ id: 1, title: "old" }]]);
  script.progress(11);
  assert.deepEqual([script.shown(a), script.shown(b)], [[{ id: 1, title: "new" }], [{ id: 1, title: "old" }]]);
  script.progress(12);
  assert.deepEqual(script.shown(b), [{ id: 1, title: "newer" }]);
  assert.equal(script.state.cv, 12);
});

test("several batches of one release are one change of a row", () => {
  const { script, sub } = live([add(1, "a")]);
  script.batch(sub, 1, 1, 11, [edit(1, "b"), add(2, "x")]);
  script.batch(sub, 1, 2, 12, [edit(1, "c"), remove(2)]);
  assert.deepEqual(changes(script.progress(12)), [{ op: "edit", row: { id: 1, title: "c" } }]);
});

test("a change in columns that are not shown is no change", () => {
  const { script, sub } = live([add(1, "a", 1)]);
  script.batch(sub, 1, 1, 11, [edit(1, "a", 2)]);
  assert.equal(changes(script.progress(11)), undefined);
});

test("keys that are equal are one, however they are written", () => {
  const layout: Layout = {
    ...ISSUES,
    tables: [{ ...ISSUES.tables[0]!, columns: [{ name: "id", type: "numeric" }, ...ISSUES.tables[0]!.columns.slice(1)] }],
  };
  const { script, sub } = live([["+", 0, 1, ["1", "a", null]], ["+", 0, 1, ["2", "b", null]]], layout);
  script.batch(sub, 1, 1, 11, [["~", 0, 1, ["1.00", "a", null]], ["-", 0, ["2.0"]]]);
  script.progress(11);
  assert.deepEqual(script.shown(sub), [{ id: "1.00", title: "a" }]);
});

test("a new epoch replaces the result when its snapshot is released, and names what differs", () => {
  const { script, sub } = live([add(1, "a"), add(2, "b")]);
  script.subscribed(sub, 2);
  script.batch(sub, 1, 1, 11, [edit(1, "old epoch")]);
  script.batch(sub, 2, 0, 12, [add(2, "b"), add(3, "c")]);
  script.progress(11);
  assert.deepEqual([script.shown(sub), script.state.cv], [[{ id: 1, title: "a" }, { id: 2, title: "b" }], 10]);
  const before = script.subscriptions.get(sub)!.tree!.list;
  assert.deepEqual(changes(script.progress(12)), [
    { op: "remove", row: { id: 1, title: "a" } },
    { op: "add", row: { id: 3, title: "c" } },
  ]);
  assert.equal(script.subscriptions.get(sub)!.tree!.list[0], before[1], "what stays is the same object");
});

test("a new epoch of another layout replaces everything", () => {
  const { script, sub } = live([add(1, "a")]);
  const renamed: Layout = {
    ...ISSUES,
    tables: [{ ...ISSUES.tables[0]!, columns: [{ name: "no", type: "int8" }, ...ISSUES.tables[0]!.columns.slice(1)] }],
  };
  script.subscribed(sub, 2, renamed);
  script.batch(sub, 2, 0, 11, [add(1, "a")]);
  script.progress(11);
  assert.deepEqual(script.shown(sub), [{ no: 1, title: "a" }]);
});

test("resumes from what it holds", () => {
  const { script, sub } = live([add(1, "a"), add(2, "b")]);
  script.progress(15);
  script.batch(sub, 1, 1, 16, [remove(1)]);
  script.state.disconnect();
  assert.deepEqual(script.shown(sub), [{ id: 1, title: "a" }, { id: 2, title: "b" }]);
  const resume = { epoch: 1, cv: 15, fp: FP };
  assert.deepEqual(script.connect()[1], { subscribe: { sub, sql: "select", resume } });
  // Lost again before the difference is released: the same position is offered.
  script.subscribed(sub, 8, ISSUES, true);
  script.batch(sub, 8, 0, 20, [edit(2, "c"), remove(1)]);
  script.state.disconnect();
  assert.deepEqual(script.connect()[1], { subscribe: { sub, sql: "select", resume } });
  script.subscribed(sub, 9, ISSUES, true);
  script.batch(sub, 9, 0, 20, [edit(2, "c"), remove(1)]);
  assert.deepEqual(changes(script.progress(20)), [
    { op: "remove", row: { id: 1, title: "a" } },
    { op: "edit", row: { id: 2, title: "c" } },
  ]);
  // An empty difference is no change.
  script.state.disconnect();
  assert.deepEqual(script.connect()[1], { subscribe: { sub, sql: "select", resume: { epoch: 9, cv: 20, fp: FP } } });
  script.subscribed(sub, 10, ISSUES, true);
  script.batch(sub, 10, 0, 30, []);
  assert.equal(changes(script.progress(30)), undefined);
  // Refused: a snapshot takes the result's place, also of a server that counts lower.
  script.state.disconnect();
  script.connect();
  script.subscribed(sub, 11);
  script.batch(sub, 11, 0, 5, [add(7, "z")]);
  script.progress(5);
  assert.deepEqual([script.shown(sub), script.state.cv], [[{ id: 7, title: "z" }], 5]);
});

test("after a reconnect nothing moves until everything shown has caught up", () => {
  const script = new Script();
  const [a, b] = [script.subscribe(), script.subscribe()];
  for (const sub of [a, b]) {
    script.subscribed(sub, sub);
    script.batch(sub, sub, 0, 10, [add(1, "old")]);
  }
  script.progress(10);
  script.state.disconnect();
  script.connect();
  const late = script.subscribe();
  script.subscribed(a, 5, ISSUES, true);
  script.batch(a, 5, 0, 20, [edit(1, "new")]);
  script.subscribed(late, 6);
  script.batch(late, 6, 0, 20, [add(9, "late")]);
  assert.equal(changes(script.progress(20)), undefined);
  assert.deepEqual([script.shown(a), script.shown(late)], [[{ id: 1, title: "old" }], undefined]);
  // Ended, it holds nobody up.
  const effects = script.send({ error: { code: "bad_query", message: "gone", sub: b } });
  assert.deepEqual(changes(effects, a), [{ op: "edit", row: { id: 1, title: "new" } }]);
  assert.deepEqual(script.shown(late), [{ id: 9, title: "late" }]);
});

test("unknown subscriptions are passed over", () => {
  const { script, sub } = live([]);
  assert.deepEqual(sent(script.state.unsubscribe(sub)), [{ unsubscribe: { sub } }]);
  assert.deepEqual(script.state.unsubscribe(sub), []);
  assert.deepEqual(script.batch(sub, 1, 1, 11, [add(1, "a")]), []);
  assert.deepEqual(script.subscribed(sub, 2), []);
  assert.deepEqual(script.subscribed(0, 3, OWN), [], "no client id, no own row");
});

test("seq_is_gapless", () => {
  const { script, sub } = live([]);
  assert.equal(violation(script.batch(sub, 1, 2, 11, [])), "seq_is_gapless");
  script.state.disconnect();
  // What was released before is sound, so the next connection continues from it.
  assert.deepEqual(script.connect()[1], { subscribe: { sub, sql: "select", resume: { epoch: 1, cv: 10, fp: FP } } });
});

test("progress_is_irrevocable, batches_precede_progress", () => {
  const { script, sub } = live([]);
  script.progress(12);
  assert.equal(violation(script.batch(sub, 1, 1, 12, [])), "batches_precede_progress");
  assert.equal(violation(script.progress(11)), "progress_is_irrevocable");
  // Another connection may start lower.
  script.state.disconnect();
  script.connect();
  assert.equal(violation(script.progress(3)), undefined);
});

test("an operation that does not fit changes nothing, and a snapshot is asked for", () => {
  for (const ops of [[add(2, "b"), edit(3, "x")], [add(1, "again")], [remove(9)]]) {
    const { script, sub } = live([add(1, "a")]);
    script.batch(sub, 1, 1, 11, ops);
    assert.equal(violation(script.progress(11)), "view_equals_fresh_query");
    assert.deepEqual([script.shown(sub), script.state.cv], [[{ id: 1, title: "a" }], 10]);
    script.state.disconnect();
    assert.deepEqual(script.connect()[1], { subscribe: { sub, sql: "select", resume: undefined } });
  }
});

test("fp_is_constant", () => {
  const { script, sub } = live([]);
  const other = { sub, epoch: 1, seq: 1, cv: 11, fp: "f".repeat(16), ops: [] };
  assert.equal(violation(script.send({ batch: other })), "fp_is_constant");
});

test("malformed messages are violations", () => {
  const ops = [
    ["+", 1, 1, [1, "a", null]],
    ["+", 0, 2, [1, "a", null]],
    ["+", 0, 0, [1, "a", null]],
    ["+", 0, 1, [1, "a"]],
    ["+", 0, 1, ["1", "a", null]],
    ["-", 0, [1, 2]],
    ["?", 0, 1, [1, "a", null]],
    [],
  ];
  for (const op of ops) {
    const { script, sub } = live([]);
    assert.equal(violation(script.batch(sub, 1, 1, 11, [op as unknown as Op])), "messages_are_well_formed", String(op));
  }
  const place = ISSUES.places[0]!;
  const table = ISSUES.tables[0]!;
  const layouts: unknown[] = [
    { ...ISSUES, places: [] },
    { ...ISSUES, places: [{ ...place, table: 1 }] },
    { ...ISSUES, places: [{ ...place, columns: [3] }] },
    { ...ISSUES, places: [{ ...place, parent: 0 }] },
    { ...ISSUES, places: [{ ...place, order: [[3, "asc", "nulls last"]] }] },
    { ...ISSUES, tables: [{ ...table, key: [] }] },
    { ...ISSUES, tables: [{ ...table, key: [7] }] },
    { ...ISSUES, tables: null },
  ];
  for (const layout of layouts) {
    const script = new Script();
    const sub = script.subscribe();
    assert.equal(violation(script.subscribed(sub, 1, layout as Layout)), "messages_are_well_formed");
  }
  const { script, sub } = live([]);
  assert.equal(violation(script.subscribed(sub, 2, ISSUES, true)), "messages_are_well_formed", "no resume was asked for");
});

test("queues_are_bounded", () => {
  const { script, sub } = live([]);
  const ops = Array.from({ length: 60_000 }, (_, id) => add(id, ""));
  assert.equal(violation(script.batch(sub, 1, 1, 11, ops)), undefined);
  assert.equal(violation(script.batch(sub, 1, 2, 12, ops)), "queues_are_bounded");
});

test("a refused subscription ends; a refusal of the moment makes the connection anew", () => {
  const script = new Script();
  const sub = script.subscribe();
  const kinds = (effects: Effect[]): string[] => effects.map(({ kind }) => kind);
  assert.deepEqual(kinds(script.send({ error: { code: "bad_query", message: "no", sub } })), ["ended"]);
  assert.equal(script.connect().length, 1, "only hello");
  const again = script.subscribe();
  assert.deepEqual(kinds(script.send({ error: { code: "not_ready", message: "later", sub: again } })), ["reconnect"]);
  script.state.disconnect();
  assert.equal(script.connect().length, 2, "asked for again");
});

// --- mutations --------------------------------------------------------------------------------------------------

const OPS: RowOp[] = [{ insert: "t", row: { id: 1 } }];
const ids = (effects: readonly Effect[]): number[] =>
  effects.flatMap((effect) => (effect.kind === "write" ? effect.mutations.map(({ id }) => id) : []));
const told = (effects: readonly Effect[], kind: "confirmed" | "refused"): string[] =>
  effects.flatMap((effect) => (effect.kind === kind ? [(effect as { ticket: string }).ticket] : []));
const push = (script: Script, ticket: string): Effect[] =>
  script.state.mutate([{ ticket, name: "m", args: null, ops: OPS }]);
const answer = (script: Script, id: number): Effect[] => script.send({ push_result: { id, error: null } });

test("mutations are numbered, confirmed and sent again", () => {
  const script = new Script({ clientId: "c" });
  assert.deepEqual(ids(push(script, "1")), [], "no id is given before the server's count is known");
  script.subscribed(0, 1, OWN);
  // An earlier process got to 7.
  assert.deepEqual(ids(script.batch(0, 1, 0, 10, [["+", 0, 1, ["c", 7]]])), [8]);
  script.progress(10);
  assert.deepEqual(ids(push(script, "2")), [9]);
  script.batch(0, 1, 1, 11, [["~", 0, 1, ["c", 8]]]);
  assert.deepEqual(told(script.progress(11), "confirmed"), [], "the answer might still be a refusal");
  assert.deepEqual(told(answer(script, 8), "confirmed"), ["1"]);
  // Lost: 9 was applied, but nobody said so. It is sent again, with what came after.
  script.state.disconnect();
  assert.deepEqual(ids(push(script, "3")), []);
  script.connect();
  script.subscribed(0, 2, OWN);
  assert.deepEqual(ids(script.batch(0, 2, 0, 12, [["+", 0, 1, ["c", 9]]])), [9, 10]);
  answer(script, 9);
  assert.deepEqual(told(script.progress(12), "confirmed"), ["2"]);
  // A refusal is told at once; the id behind it goes on.
  const refused = script.send({ push_result: { id: 10, error: { code: "conflict", message: "there" } } });
  assert.deepEqual(told(refused, "refused"), ["3"]);
  assert.deepEqual(ids(push(script, "4")), [11]);
  answer(script, 11);
  script.batch(0, 2, 1, 13, [["~", 0, 1, ["c", 11]]]);
  assert.deepEqual(told(script.progress(13), "confirmed"), ["4"]);
  assert.equal(script.state.mutations.length, 0);
});

test("a server that lost its count is followed", () => {
  const script = new Script({ clientId: "c" });
  script.subscribed(0, 1, OWN);
  script.batch(0, 1, 0, 10, [["+", 0, 1, ["c", 7]]]);
  script.progress(10);
  assert.deepEqual(ids(push(script, "1")), [8]);
  script.state.disconnect();
  script.connect();
  script.subscribed(0, 1, OWN);
  assert.deepEqual(ids(script.batch(0, 1, 0, 1, [])), [1]);
  assert.deepEqual(ids(push(script, "2")), [2]);
});

test("only the writer of several tabs numbers and sends", () => {
  const script = new Script({ clientId: "c" });
  const effects: Effect[] = [];
  script.state.mutations.setWriter(false, effects);
  script.subscribed(0, 1, OWN);
  script.batch(0, 1, 0, 10, []);
  script.progress(10);
  assert.deepEqual(ids(push(script, "1")), []);
  // Another tab did it.
  script.state.mutations.numbered([["1", 1]], effects);
  script.state.mutations.answered(1, null, effects);
  script.batch(0, 1, 1, 11, [["+", 0, 1, ["c", 1]]]);
  assert.deepEqual(told(script.progress(11), "confirmed"), ["1"]);
  push(script, "2");
  script.state.mutations.setWriter(true, effects);
  assert.deepEqual(ids(effects), [2]);
});

test("what the server has not taken is no refusal, nor are those behind it", () => {
  const script = new Script({ clientId: "c" });
  script.subscribed(0, 1, OWN);
  script.batch(0, 1, 0, 10, []);
  script.progress(10);
  for (const ticket of ["1", "2", "3"]) push(script, ticket);
  const refuse = (id: number, code: string): Effect[] => script.send({ push_result: { id, error: { code, message: "no" } } });
  const kinds = (effects: readonly Effect[]): string[] => effects.map(({ kind }) => kind);
  assert.deepEqual(kinds(refuse(1, "not_ready")), ["reconnect"]);
  assert.deepEqual(kinds(refuse(2, "conflict")), ["reconnect"], "it leaves a gap");
  answer(script, 1);
  assert.deepEqual(told(refuse(2, "conflict"), "refused"), ["2"]);
  assert.deepEqual(kinds(refuse(3, "schema_changed")), ["reconnect"]);
  assert.equal(script.state.mutations.length, 3);
});

test("nothing is numbered without the server's count", () => {
  const script = new Script({ clientId: "c" });
  script.subscribed(0, 1, OWN);
  push(script, "1");
  const faulted = (code: string, retry: boolean): Effect[] => script.send({ faulted: { sub: 0, code, message: "no", retry } });
  assert.deepEqual(faulted("internal", true).map(({ kind }) => kind), ["reconnect"]);
  script.state.disconnect();
  script.connect();
  script.subscribed(0, 1, OWN);
  // A server that writes nothing says so of each.
  assert.deepEqual(ids(faulted("read_only", false)), [1]);
});
