// The result tree against one that is built from scratch, over random changes; and what a change costs.
//
// Seen to fail: with NULLs on the other side in `state/shape.ts`, the first seed differs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { comparatorOf } from "../src/wire/compare.js";
import type { Layout } from "../src/wire/messages.js";
import type { Value } from "../src/wire/value.js";
import { rowKey, shapeOf, type Row, type Shown } from "../src/state/shape.js";
import { changeList, ResultTree, type NetChange, type RootChanges } from "../src/state/tree.js";
import { random, type Random } from "./support/random.js";

const int8 = (name: string) => ({ name, type: "int8" as const });
const ASC = "asc" as const;
const LAST = "nulls last" as const;

/** Issues with their comments, the comments' authors, the issue's first comment, a count, and issues again. */
const LAYOUT: Layout = {
  tables: [
    { name: "issues", columns: [int8("id"), int8("rank"), int8("parent")], key: [0] },
    { name: "comments", columns: [int8("id"), int8("issue"), int8("author"), int8("at")], key: [0] },
    { name: "users", columns: [int8("id"), { name: "name", type: "text" }], key: [0] },
    { name: "?n", columns: [int8("?1"), int8("?")], key: [0] },
  ],
  places: [
    { parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[1, "desc", "nulls first"], [0, ASC, LAST]], one: false },
    { parent: 0, as: "comments", table: 1, columns: [0, 3], on: [[0, 1]], order: [[3, ASC, LAST], [0, ASC, LAST]], one: false },
    { parent: 1, as: "author", table: 2, columns: [0, 1], on: [[2, 0]], order: [[0, ASC, LAST]], one: true },
    { parent: 0, as: "first", table: 1, columns: [0], on: [[0, 1]], order: [[3, "desc", LAST], [0, ASC, LAST]], one: true },
    { parent: 0, as: "n", table: 3, columns: [1], on: [[0, 0]], order: [[0, ASC, LAST]], one: true, value: { or: 0 } },
    { parent: 0, as: "children", table: 0, columns: [0], on: [[0, 2]], order: [[0, ASC, LAST]], one: false },
  ],
};

type Held = { row: Row; places: number };

/** The result from scratch. */
function build(rows: Map<unknown, Held>[], place = 0, parent?: Row): Shown[] {
  const { table, on, order, columns } = LAYOUT.places[place]!;
  const here = [...rows[table]!.values()].filter(({ row, places }) =>
    (places & (1 << place)) !== 0 && on.every(([p, c]) => row[c] !== null && row[c] === parent![p]));
  here.sort((a, b) => {
    for (const [column, direction, nulls] of order) {
      const [x, y] = [a.row[column]!, b.row[column]!];
      if (x === y) continue;
      if (x === null || y === null) return (x === null) === (nulls === "nulls first") ? -1 : 1;
      const compare = comparatorOf(LAYOUT.tables[table]!.columns[column]!.type) as (a: Value, b: Value) => number;
      return compare(x, y) * (direction === "desc" ? -1 : 1);
    }
    return 0;
  });
  return here.map(({ row }) => {
    const shown: Shown = {};
    for (const column of columns) shown[LAYOUT.tables[table]!.columns[column]!.name] = row[column];
    LAYOUT.places.forEach((child, index) => {
      if (child.parent !== place) return;
      const list = build(rows, index, row);
      if (child.value) shown[child.as!] = list.length > 0 ? Object.values(list[0]!)[0] : child.value.or;
      else shown[child.as!] = child.one ? (list[0] ?? null) : list;
    });
    return shown;
  });
}

const maskOf = (table: number): number =>
  LAYOUT.places.reduce((mask, place, index) => (place.table === table ? mask | (1 << index) : mask), 0);

function randomChange(random: Random, rows: Map<unknown, Held>[]): NetChange {
  const table = random.below(4);
  const some = (n: number): Value => (random.below(6) === 0 ? null : random.below(n));
  const id = random.below(12);
  const row: Row = [[id, some(3), some(8)], [id, some(8), some(4), some(5)], [id, `u${random.below(3)}`], [id, random.below(9)]][table]!;
  const key = rowKey(row, LAYOUT.tables[table]!);
  const places = random.below(4) === 0 ? 0 : maskOf(table) & (random.below(64) | 0b011110);
  if (places === 0) {
    rows[table]!.delete(key);
    return { table, key, new: undefined };
  }
  rows[table]!.set(key, { row, places });
  return { table, key, new: { key, row, places } };
}

test("a maintained result equals one built from scratch, and its changes lead to it", () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const r = random(seed);
    const rows = LAYOUT.tables.map(() => new Map<unknown, Held>());
    const tree = new ResultTree(shapeOf(LAYOUT, undefined));
    for (let step = 0; step < 60; step += 1) {
      const before = tree.list;
      const frozen = JSON.stringify(before);
      const net = new Map<string, NetChange>();
      const count = r.below(8) === 0 ? 40 : 1 + r.below(4);
      for (let i = 0; i < count; i += 1) {
        const change = randomChange(r, rows);
        net.set(`${change.table} ${String(change.key)}`, change);
      }
      const changes: RootChanges = new Map();
      tree.release([...net.values()], changes);
      assert.deepEqual(tree.list, build(rows), `seed ${seed}, step ${step}`);
      assert.equal(JSON.stringify(before), frozen, "a list that was given out never changes");
      // The changes, applied to the rows before, give the rows after.
      const set = new Set(before);
      for (const change of changeList(changes)) {
        if (change.op === "edit") set.delete(change.old);
        if (change.op === "remove") set.delete(change.row);
        else set.add(change.row);
      }
      assert.deepEqual(new Set(tree.list), set);
    }
  }
});

test("rows whose children stay the same are the same objects", () => {
  const tree = new ResultTree(shapeOf(LAYOUT, undefined));
  const entry = (table: number, row: Row, places: number): NetChange => {
    const key = rowKey(row, LAYOUT.tables[table]!);
    return { table, key, new: { key, row, places } };
  };
  tree.release([entry(0, [1, 0, null], 1), entry(0, [2, 0, null], 1), entry(1, [5, 1, 9, 0], 0b1010), entry(1, [6, 2, 9, 0], 0b1010)], new Map());
  const [one, two] = tree.list;
  tree.release([entry(1, [5, 1, 9, 7], 0b1010)], new Map());
  assert.notEqual(tree.list[0], one);
  assert.equal(tree.list[1], two);
  const list = tree.list;
  tree.release([entry(1, [5, 1, 9, 7], 0b1010)], new Map());
  assert.equal(tree.list, list, "the same content is no change");
  assert.equal(tree.list[0]!["children"], tree.list[1]!["children"], "all empty lists are one");
});

test("pending rows lie over released ones and leave no trace", () => {
  const tree = new ResultTree(shapeOf(LAYOUT, undefined));
  const row = (id: number, rank: number) => ({ key: id, row: [id, rank, null], places: 1 });
  const none = () => LAYOUT.tables.map(() => new Map());
  tree.release([{ table: 0, key: 1, new: row(1, 0) }], new Map());
  const [first] = tree.list;
  const over = none();
  over[0]!.set(1, row(1, 5));
  over[0]!.set(2, row(2, 9));
  const changes: RootChanges = new Map();
  tree.overlay(over, changes);
  assert.deepEqual(tree.list.map(({ id, rank }) => [id, rank]), [[2, 9], [1, 5]]);
  assert.deepEqual(changeList(changes).map(({ op }) => op).sort(), ["add", "edit"]);
  // The server's version of a pending row comes: it shows when the pending one goes.
  tree.release([{ table: 0, key: 2, new: row(2, 9) }], new Map());
  assert.deepEqual(tree.released(0, 1), row(1, 0));
  const pending = tree.list[0];
  const over2 = none();
  over2[0]!.set(1, row(1, 5));
  tree.overlay(over2, new Map());
  assert.equal(tree.list[0], pending, "confirmed as it was shown, it stays the same object");
  tree.overlay(none(), new Map());
  assert.deepEqual(tree.list.map(({ id, rank }) => [id, rank]), [[2, 9], [1, 0]]);
  assert.deepEqual(tree.list[1], first);
});

test("a one-row change in 10,000 rows costs well under a millisecond", () => {
  const layout: Layout = { tables: [LAYOUT.tables[0]!], places: [{ ...LAYOUT.places[0]! }] };
  const tree = new ResultTree(shapeOf(layout, undefined));
  const change = (id: number, rank: number): NetChange => ({ table: 0, key: id, new: { key: id, row: [id, rank, null], places: 1 } });
  tree.release(Array.from({ length: 10_000 }, (_, id) => change(id, (id * 7919) % 10_007)), new Map());
  const spent: number[] = [];
  for (let round = 0; round < 300; round += 1) {
    const before = tree.list;
    const started = performance.now();
    tree.release([change((round * 37) % 10_000, 20_000 + round)], new Map());
    const after = tree.list;
    spent.push(performance.now() - started);
    assert.notEqual(after, before);
  }
  spent.sort((a, b) => a - b);
  const median = spent[spent.length / 2]!;
  assert.ok(median < 0.5, `the median change took ${median} ms`);
});
