// Queries as they are typed: parameters, places at fault, values.

import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, figure, time } from "../src/format.js";
import { isJson, lineAt, parametersOf, placeOf, sourceOf, TextFault, type Place } from "../src/query_text.js";
import { hashOf, routeOf } from "../src/route.js";
import { parsed, pretty, stringified, textsOf, valuesOf } from "../src/values.js";

const at = (text: string, place: Place | undefined): string | undefined => place && text.slice(place.start, place.end);

test("a brace makes JSON", () => {
  assert.ok(isJson('\n {"table":"t"}') && !isJson("select 1"));
  assert.deepEqual(sourceOf("select 1", {}), { sql: "select 1" });
  assert.deepEqual(sourceOf('{"table":"t"}', { p: 1 }), { query: { table: "t" }, args: { p: 1 } });
});

test("parameters are found once each, not in quotes, comments and casts", () => {
  const sql = `select ':no', "a:b" from t where a = :one and b = :two and c = :one::text -- :three\n /* :four */`;
  assert.deepEqual(parametersOf(sql), ["one", "two"]);
  assert.deepEqual(parametersOf('{"where":{"op":"=","args":[{"col":"a"},{"param": "p"},{"param":"auth.sub"}]}}'), ["p"]);
});

test("a place in SQL is the word at its line and column", () => {
  const text = "select origin,\n  colour\nfrom flights";
  assert.equal(at(text, placeOf(text, "unknown column colour (line 2, column 3)")), "colour");
  assert.deepEqual(lineAt(text, placeOf(text, "x (line 2, column 3)")!), { number: 2, parts: ["  ", "colour", ""] });
  const emoji = "select '😀', nope from t";
  assert.equal(at(emoji, placeOf(emoji, "x (line 1, column 13)")), "nope", "columns count characters");
  assert.deepEqual(placeOf("select ", "expected an expression, found EOF"), { start: 6, end: 7 });
  assert.equal(placeOf(text, "the server is tired"), undefined);
});

test("a place in JSON is the value at its path", () => {
  const text = '{ "table" : "t", "where": {"op":"and", "args": [ {"op":"<<","args":[1, "a]}"]}, true ]} }';
  assert.equal(at(text, placeOf(text, "unknown operator << (at query.where.args[0])")), '{"op":"<<","args":[1, "a]}"]}');
  assert.equal(at(text, placeOf(text, "no (at query.where.args[0].args[1])")), '"a]}"');
  assert.equal(at(text, placeOf(text, "no (at query.where.args[1])")), "true");
  assert.equal(at(text, placeOf(text, "no (at query.table)")), '"t"');
  assert.equal(at(text, placeOf(text, "unknown member (at query)")), text);
  assert.equal(at(text, placeOf(text, "missing (at query.where.nothing)")), text.slice(26, -2), "what should be there is missing in this");
});

test("broken JSON says where it breaks", () => {
  for (const [text, part] of [['{"table": "t",}', "}"], ['{"table" "t"}', '"'], ['{"limit": 1', ""]] as const) {
    assert.throws(() => sourceOf(text, {}), (error) => error instanceof TextFault && at(text, error.place) === part && !/position|line/.test(error.message), text);
  }
});

test("values are JSON where they can be, and texts where they are to be", () => {
  assert.deepEqual(valuesOf({ a: "7", b: "JFK", c: '"7"', d: "", e: "[1,2]", f: "null" }), { a: 7, b: "JFK", c: "7", e: [1, 2], f: null });
  assert.deepEqual(valuesOf({ a: "7", b: '"7"', c: '["x"]' }, { a: "text", b: "text", c: "text" }), { a: "7", b: "7", c: ["x"] });
});

test("whole numbers keep their digits", () => {
  const text = '{"id":9007199254740993,"x":1.5}';
  const value = parsed(text) as { id: unknown };
  assert.equal(value.id, 9007199254740993n);
  assert.equal(stringified(value), text);
});

test("JSON for people is as short as it can be", () => {
  assert.equal(pretty({ a: [1, 2], b: { c: null } }), '{"a": [1, 2], "b": {"c": null}}');
  const long = pretty({ a: "x".repeat(60), b: [["one", "asc"]], c: "y".repeat(20) });
  assert.equal(long, `{\n  "a": "${"x".repeat(60)}",\n  "b": [["one", "asc"]],\n  "c": "${"y".repeat(20)}"\n}`);
  assert.deepEqual(JSON.parse(long), { a: "x".repeat(60), b: [["one", "asc"]], c: "y".repeat(20) });
});

test("an address holds page, name and parameters", () => {
  const hash = hashOf("tables", "a/b?c", { q: "select 1 & 2" });
  const { page, name, params } = routeOf(hash);
  assert.deepEqual([page, name, params.get("q")], ["tables", "a/b?c", "select 1 & 2"]);
  assert.equal(routeOf("").page, "status");
  assert.equal(routeOf("#/tables/%E0%A4%A").name, "%E0%A4%A", "not an error");
});

test("figures read well", () => {
  assert.deepEqual([bytes(0), bytes(1023), bytes(1536), bytes(5 * 2 ** 30)], ["0 B", "1,023 B", "1.5 KiB", "5 GiB"]);
  assert.deepEqual([time(0.00025), time(0.0123), time(2.5)], ["250 µs", "12.3 ms", "2.5 s"]);
  assert.deepEqual([age(45), age(125), age(3_600), age(7_500), age(100_000)], ["45 s", "2 min", "1 h", "2 h 5 min", "1 d 3 h"]);
  assert.deepEqual([figure(0.1234), figure(1234.5)], ["0.123", "1,235"]);
});

test("values are written so that they are read again as what they are", () => {
  const values = { word: "JFK", digits: "7", quoted: '"a"', empty: "", n: 7, long: 9007199254740993n, list: [1, "a"], none: null, yes: true };
  assert.deepEqual(valuesOf(textsOf(values)), values);
  assert.deepEqual(textsOf({ word: "JFK", digits: "7", n: 7 }), { word: "JFK", digits: '"7"', n: "7" });
});
