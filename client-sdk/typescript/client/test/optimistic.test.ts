// What is worked out here of conditions and rows, as the server would.

import assert from "node:assert/strict";
import { test } from "node:test";
import { int8, table, text } from "../src/index.js";
import { condition } from "../src/optimistic/evaluate.js";
import { HeldRows, keyOfCells } from "../src/optimistic/held.js";
import { changed, PendingRows } from "../src/optimistic/pending.js";

const like = (text: string, op: string, pattern: string) =>
  condition({ op, args: [{ col: "text" }, pattern] }, { type: () => "text", value: () => text, args: undefined });

test("LIKE and ILIKE match as the server does", () => {
  for (const [pattern, text, exactly, folded] of [
    ["a%", "abc", true, true],
    ["A%", "abc", false, true],
    ["%b%", "abc", true, true],
    ["a_c", "a\u{1F6EB}c", true, true],
    ["", "", true, true],
    ["", "a", false, false],
    ["%", "", true, true],
    ["_", "", false, false],
    ["%a%b%c", "xxaxxbxxc", true, true],
    ["%a%b%c", "xxaxxbxxcx", false, false],
    ["100\\%", "100%", true, true],
    ["100\\%", "1000", false, false],
    ["a\\_b", "a_b", true, true],
    ["a\\\\b", "a\\b", true, true],
    ["(a|b)*.", "(a|b)*.", true, true],
    ["É%", "été", false, true],
    ["%%x", "aax", true, true],
    ["%aab", "aaab", true, true],
    ["%%", "%%", true, true],
    ["a\nb%", "a\nb\n", true, true],
    ["i", "İ", false, true],
    ["σ", "ς", false, false],
    ["s", "ſ", false, false],
  ] as const) {
    assert.equal(like(text, "like", pattern), exactly, `${text} like ${pattern}`);
    assert.equal(like(text, "ilike", pattern), folded, `${text} ilike ${pattern}`);
  }
});

test("a pattern of many runs takes no longer than text times pattern", () => {
  const from = Date.now();
  assert.equal(like("a".repeat(2_000), "like", "%a%a%a%b"), false);
  assert.ok(Date.now() - from < 5_000);
});

test("columns may be called as what every object inherits", () => {
  const cars = table("cars", { id: int8(), constructor: text().orNull(), ["__proto__"]: text().orNull() }, { key: ["id"] });
  const { columns } = cars;
  const held = new Map([["id", 1], ["constructor", "Ferrari"], ["__proto__", "red"]] as [string, string | number][]);
  assert.deepEqual(changed(held, { kind: "update", cells: { id: 1 } }, columns), held);
  assert.deepEqual([...changed(undefined, { kind: "insert", cells: { id: 2 } }, columns)], [["id", 2], ["constructor", null], ["__proto__", null]]);
  assert.equal(keyOfCells({}, [{ name: "constructor", type: "json" }]), undefined);
  const rows = new PendingRows(new HeldRows([]));
  rows.ops.push({ insert: "cars", row: { id: 3, ["__proto__"]: "blue" } });
  const row = rows.row(cars, { id: 3 }, [])!;
  assert.deepEqual(Object.entries(row), [["id", 3], ["constructor", null], ["__proto__", "blue"]]);
});
