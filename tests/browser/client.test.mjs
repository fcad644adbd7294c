// The demo page's client (server/assets/demo/tidegate.js) against a server played by hand: no browser,
// no network. Each test names what the client guarantees.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

// By its text, because the folder it lives in is no npm package that would declare it a module.
const source = readFileSync(new URL("../../server/assets/demo/tidegate.js", import.meta.url), "utf8");
const { Tidegate, buildRows } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const FP = "00000000000000aa";
const TABLES = [{ name: "notes", columns: [{ name: "id", type: "int8" }, { name: "text", type: "text" }], key: [0] }];
const PLACES = [{ parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false }];

/** A client whose sockets are played by the test: `sockets.at(-1)` is the newest. */
function connect(t) {
  const sockets = [];
  const releases = [];
  const tide = new Tidegate("ws://test", () => {
    const socket = { sent: [], closed: false, send: (text) => socket.sent.push(JSON.parse(text)), close: () => (socket.closed = true) };
    sockets.push(socket);
    return socket;
  });
  t.after(() => tide.close());
  tide.addEventListener("release", ({ detail }) => releases.push(detail));
  const accept = () => {
    sockets.at(-1).onopen();
    say({ welcome: { protocol: 1, server: "test", conn: "c", cv: 0, limits: {} } });
  };
  const say = (...messages) => messages.forEach((message) => sockets.at(-1).onmessage({ data: JSON.stringify(message) }));
  const asked = (kind) => sockets.at(-1).sent.filter((message) => kind in message).map((message) => message[kind]);
  const lose = () => {
    sockets.at(-1).onclose();
    tide.retryNow();
  };
  return { tide, sockets, releases, accept, say, asked, lose };
}

const subscribed = (sub, epoch, resumed = false) => ({ subscribed: { sub, epoch, fp: FP, tables: TABLES, places: PLACES, resumed } });
const batch = (sub, epoch, seq, cv, ops, more) => ({ batch: { sub, epoch, seq, cv, fp: FP, ops, ...(more && { more }) } });
const progress = (cv) => ({ progress: { cv_min: cv } });
const add = (id, text) => ["+", 0, 1, [id, text]];
const edit = (id, text) => ["~", 0, 1, [id, text]];
const remove = (id) => ["-", 0, [id]];
const texts = (query) => query.rows.map((row) => row.text).join(" ");

test("hello goes first, and a query asked for before the connection is asked for then", (t) => {
  const { tide, sockets, accept } = connect(t);
  tide.subscribe({ table: "notes" }, { p: 1 });
  accept();
  assert.deepEqual(sockets[0].sent, [{ hello: {} }, { subscribe: { sub: 1, query: { table: "notes" }, args: { p: 1 } } }]);
});

test("batches wait for progress, and all queries move together", (t) => {
  const { tide, accept, say, releases } = connect(t);
  const [one, two] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")]), subscribed(2, 11), batch(2, 11, 0, 5, [add(1, "b")]));
  assert.equal(one.ready, false);
  say(progress(5));
  assert.deepEqual([texts(one), texts(two)], ["a", "b"]);
  say(batch(1, 10, 1, 6, [edit(1, "A")]), batch(2, 11, 1, 7, [edit(1, "B")]));
  assert.deepEqual([texts(one), texts(two)], ["a", "b"]);
  say(progress(6));
  assert.deepEqual([texts(one), texts(two), tide.cv], ["A", "b", 6]);
  say(progress(7));
  assert.deepEqual([texts(one), texts(two), tide.cv], ["A", "B", 7]);
  assert.deepEqual(releases.map(({ changes }) => changes), [0, 1, 1]);
});

test("a snapshot in parts shows whole or not at all", (t) => {
  const { tide, accept, say } = connect(t);
  const query = tide.subscribe({});
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")], true), progress(5));
  assert.equal(query.ready, false);
  say(batch(1, 10, 1, 5, [add(2, "b")]), batch(1, 10, 2, 6, [remove(1)]), progress(5));
  assert.equal(texts(query), "a b");
  say(progress(6));
  assert.equal(texts(query), "b");
});

test("a new epoch replaces the old result when its snapshot is released", (t) => {
  const { tide, accept, say } = connect(t);
  const query = tide.subscribe({});
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a"), add(2, "b")]), progress(5));
  say(subscribed(1, 12), batch(1, 12, 0, 8, [add(3, "c")]), batch(1, 10, 1, 6, [edit(1, "A")]), progress(6));
  assert.equal(texts(query), "A b");
  say(progress(8));
  assert.equal(texts(query), "c");
  say(batch(1, 10, 2, 9, [add(9, "late")]), batch(1, 12, 1, 9, [add(4, "d")]), progress(9));
  assert.equal(texts(query), "c d");
});

test("after a lost connection queries resume, keep their rows, and catch up together", (t) => {
  const { tide, accept, say, asked, lose, releases } = connect(t);
  const [one, two] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")]), subscribed(2, 11), batch(2, 11, 0, 5, [add(1, "b")]), progress(5));
  say(batch(1, 10, 1, 6, [edit(1, "never released")]));
  lose();
  assert.equal(tide.status.state, "reconnecting");
  accept();
  assert.deepEqual(asked("subscribe").map(({ resume }) => resume), [{ epoch: 10, cv: 5, fp: FP }, { epoch: 11, cv: 5, fp: FP }]);
  const [first, second] = asked("subscribe").map(({ sub }) => sub);
  say(subscribed(first, 20, true), batch(first, 20, 0, 9, [edit(1, "A"), add(2, "x")]), progress(9));
  assert.deepEqual([texts(one), texts(two), tide.cv, tide.status.state], ["a", "b", 5, "reconnecting"]);
  say(subscribed(second, 21, false), batch(second, 21, 0, 9, [add(7, "fresh")]), progress(9));
  assert.deepEqual([texts(one), texts(two), tide.cv, tide.status.state], ["A x", "fresh", 9, "live"]);
  assert.equal(releases.length, 2);
});

test("a connection lost while catching up resumes from what is shown", (t) => {
  const { tide, accept, say, asked, lose } = connect(t);
  const [one, two] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")]), subscribed(2, 11), batch(2, 11, 0, 5, [add(1, "b")]), progress(5));
  lose();
  accept();
  say(subscribed(asked("subscribe")[0].sub, 20, true), batch(asked("subscribe")[0].sub, 20, 0, 9, [edit(1, "A")]), progress(9));
  lose();
  accept();
  assert.deepEqual(asked("subscribe").map(({ resume }) => [resume.epoch, resume.cv]), [[10, 5], [11, 5]]);
  assert.deepEqual([texts(one), texts(two)], ["a", "b"]);
});

test("a restarted server may number its commits lower", (t) => {
  const { tide, accept, say, asked, lose } = connect(t);
  const query = tide.subscribe({});
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 500, [add(1, "a")]), progress(500));
  lose();
  accept();
  const { sub } = asked("subscribe")[0];
  say(subscribed(sub, 1), batch(sub, 1, 0, 3, [add(1, "b")]), progress(3));
  assert.deepEqual([texts(query), tide.cv], ["b", 3]);
});

test("progress of an earlier connection releases nothing", (t) => {
  const { tide, accept, say, asked, lose } = connect(t);
  const [one] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")]), subscribed(2, 11), batch(2, 11, 0, 5, []), progress(5));
  lose();
  accept();
  const [first, second] = asked("subscribe").map(({ sub }) => sub);
  say(subscribed(first, 1), batch(first, 1, 0, 3, [add(1, "b")]));
  say({ error: { sub: second, code: "unknown_table", message: "unknown table notes" } });
  assert.equal(texts(one), "a");
  say(progress(3));
  assert.equal(texts(one), "b");
});

test("a gap in seq ends the connection", (t) => {
  const { tide, accept, say, sockets } = connect(t);
  tide.subscribe({});
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, []), batch(1, 10, 2, 6, []));
  assert.equal(sockets[0].closed, true);
  assert.match(tide.status.message, /seq 2 where 1 was due/);
});

test("a fault keeps the rows, holds nobody up, and is not resumed from", (t) => {
  const { tide, accept, say, asked, lose } = connect(t);
  const [one, two] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")]), subscribed(2, 11), batch(2, 11, 0, 5, [add(1, "b")]), progress(5));
  say({ faulted: { sub: 1, code: "query_faulted", message: "division by zero", retry: false } });
  assert.deepEqual([texts(one), one.error], ["a", { code: "query_faulted", message: "division by zero" }]);
  say(batch(2, 11, 1, 6, [edit(1, "B")]), progress(6));
  assert.equal(texts(two), "B");
  lose();
  accept();
  const resumes = asked("subscribe").map(({ resume }) => resume?.cv);
  assert.deepEqual(resumes.sort(), [6, undefined]);
  assert.equal(one.error, null);
});

test("a query refused while others catch up lets them go on", (t) => {
  const { tide, accept, say, asked, lose } = connect(t);
  const [one, two] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say(subscribed(1, 10), batch(1, 10, 0, 5, [add(1, "a")]), subscribed(2, 11), batch(2, 11, 0, 5, [add(1, "b")]), progress(5));
  lose();
  accept();
  const [first, second] = asked("subscribe").map(({ sub }) => sub);
  say(subscribed(first, 20, true), batch(first, 20, 0, 9, [edit(1, "A")]), progress(9));
  assert.equal(texts(one), "a");
  say({ error: { sub: second, code: "unknown_table", message: "unknown table notes" } });
  assert.deepEqual([texts(one), texts(two), two.error.code], ["A", "b", "unknown_table"]);
});

test("a closed query is ended once, a failed one silently", (t) => {
  const { tide, accept, say, asked } = connect(t);
  const [one, two] = [tide.subscribe({}), tide.subscribe({})];
  accept();
  say({ error: { sub: 2, code: "bad_query", message: "no" } });
  one.close();
  one.close();
  two.close();
  assert.deepEqual(asked("unsubscribe"), [{ sub: 1 }]);
});

test("results are nested and ordered from the rows' places alone", () => {
  const tables = [
    { name: "a", columns: [{ name: "id", type: "int8" }, { name: "at", type: "timestamptz" }, { name: "b", type: "text" }], key: [0] },
    { name: "b", columns: [{ name: "name", type: "text" }, { name: "owner", type: "int8" }], key: [0] },
  ];
  const places = [
    { parent: null, as: null, table: 0, columns: [0], on: [], order: [[1, "desc", "nulls first"], [0, "asc", "nulls last"]], one: false },
    { parent: 0, as: "mine", table: 1, columns: [0], on: [[2, 0]], order: [[0, "asc", "nulls last"]], one: true },
    { parent: 0, as: "all", table: 1, columns: [0], on: [[0, 1]], order: [[0, "asc", "nulls last"]], one: false },
  ];
  const rows = [
    new Map([
      ["[1]", { key: "[1]", places: 1, cells: [1, "2013-02-04T05:00:00Z", "x"] }],
      ["[2]", { key: "[2]", places: 1, cells: [2, "2013-02-04T05:00:00.5Z", null] }],
      ["[3]", { key: "[3]", places: 1, cells: [3, null, "gone"] }],
    ]),
    new Map([
      ['["x"]', { key: '["x"]', places: 0b110, cells: ["x", 2] }],
      ['["\uFFFD"]', { key: '["\uFFFD"]', places: 0b100, cells: ["\uFFFD", 2] }],
      ['["\u{1F6EB}"]', { key: '["\u{1F6EB}"]', places: 0b100, cells: ["\u{1F6EB}", 2] }],
    ]),
  ];
  assert.deepEqual(JSON.parse(JSON.stringify(buildRows({ tables, places, rows }))), [
    { id: 3, mine: null, all: [] },
    { id: 2, mine: null, all: [{ name: "x" }, { name: "\uFFFD" }, { name: "\u{1F6EB}" }] },
    { id: 1, mine: { name: "x" }, all: [] },
  ]);
});

test("a place that shows a value shows it, or what stands there without one", () => {
  const counts = { name: "?n", columns: [{ name: "?1", type: "int8" }, { name: "?", type: "int8" }], key: [0] };
  const tables = [{ name: "a", columns: [{ name: "id", type: "int8" }], key: [0] }, counts, counts];
  const place = (parent, as, table) => ({ parent, as, table, columns: [0], on: [], order: [[0, "asc", "nulls last"]], one: false });
  const value = (as, table, or) => ({ ...place(0, as, table), columns: [1], on: [[0, 0]], one: true, value: { or } });
  const places = [place(null, null, 0), value("n", 1, 0), value("s", 2, null)];
  const rows = [
    new Map([1, 2].map((id) => [`[${id}]`, { key: `[${id}]`, places: 1, cells: [id] }])),
    new Map([["[1]", { key: "[1]", places: 2, cells: [1, 5] }]]),
    new Map([["[1]", { key: "[1]", places: 4, cells: [1, "2.50"] }]]),
  ];
  assert.deepEqual(JSON.parse(JSON.stringify(buildRows({ tables, places, rows }))), [
    { id: 1, n: 5, s: "2.50" },
    { id: 2, n: 0, s: null },
  ]);
});

test("related rows are tied by value, however it is written", () => {
  const table = (name, type) => ({ name, columns: [{ name: "n", type }], key: [0] });
  const place = (parent, as, table) => ({ parent, as, table, columns: [0], on: parent === null ? [] : [[0, 0]], order: [], one: false });
  const tied = (parent, child, parentType, childType) => {
    const tables = [table("p", parentType), table("c", childType)];
    const row = (value, places) => new Map([["k", { key: "k", places, cells: [value] }]]);
    const places = [place(null, null, 0), place(0, "found", 1)];
    const [shown] = buildRows({ tables, places, rows: [row(parent, 1), row(child, 2)] });
    return shown.found.length === 1;
  };
  assert.ok(tied("1", "1.00", "numeric", "numeric"));
  assert.ok(tied(100, "1e2", "int8", "numeric"));
  assert.ok(tied(-0.5, "-0.50", "float8", "numeric"));
  assert.ok(tied(0, "-0.0", "int8", "numeric"));
  assert.ok(tied("NaN", "NaN", "float8", "numeric"));
  assert.ok(tied(1e21, "1000000000000000000000", "float8", "numeric"));
  assert.ok(tied("2013-02-04", "2013-02-04T00:00:00Z", "date", "timestamptz"));
  assert.ok(!tied("12345678901234567890.1", "12345678901234567890.2", "numeric", "numeric"));
  assert.ok(!tied("1", "10", "numeric", "numeric"));
  assert.ok(!tied("1", "1.0", "text", "text"));
});
