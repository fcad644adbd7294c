// Values: how they compare, what ties them, and that no digit is lost.

import assert from "node:assert/strict";
import { test } from "node:test";
import { comparatorOf, comparatorOfTypes, mapKey, tieOfTypes } from "../src/wire/compare.js";
import { decode as decodeByOther, encode as encodeByOther } from "@msgpack/msgpack";
import { decodeMsgpack, encodeMsgpack } from "../src/wire/msgpack.js";
import { random, type Random } from "./support/random.js";
import { decode, encode, parse, stringify } from "../src/wire/codec.js";
import { readCell, type ColumnType, type Value } from "../src/wire/value.js";

/** Asserts that values are in order, each below the next. */
function ascending(type: ColumnType, values: readonly Value[]): void {
  const compare = comparatorOf(type) as (a: Value, b: Value) => number;
  values.forEach((a, i) => {
    values.forEach((b, j) => {
      assert.equal(Math.sign(compare(a, b)), Math.sign(i - j), `${type}: ${stringify(a)} beside ${stringify(b)}`);
    });
  });
}

test("values stand in PostgreSQL's order", () => {
  ascending("bool", [false, true]);
  ascending("int8", [-9223372036854775808n, -1, 0, 9007199254740991, 9007199254740993n]);
  ascending("float8", [-Infinity, -1.5, 0, 1e300, Infinity, NaN]);
  ascending("text", ["", "A", "a", "aa", "b", "é", "\uD7FF", "\uE000", "\uFFFD", "\u{1F6EB}", "\u{1F6EB}a", "\u{1F6EC}"]);
  ascending("bytea", ["", "AA==", "AAA=", "AP8=", "AQ==", "aQ==", "0Q==", "+/8A", "/w=="]);
  ascending("timestamptz", ["0000-01-01T00:00:00Z", "2013-02-04T05:00:00Z", "2013-02-04T05:00:00.45Z", "2013-02-04T05:00:00.5Z", "2013-02-04T05:00:01Z"]);
  ascending("numeric", ["-Infinity", "-1.5", "-1", "0", "0.1", "2", "10", "12345678901234567890.1", "12345678901234567890.2", "1e30", "Infinity", "NaN"]);
  ascending("numeric", ["-1e9999999999", "-1e100000000", "-1.01e9", "-10e8", "-1e-9999999999", "0e9999999999", "1e-100000000", "0.001", "1.0e100000000", "1.01e100000000", "10.2e99999999", `1e${"9".repeat(400)}`, "Infinity"]);
  const from = Date.now();
  ascending("numeric", ["-1".padEnd(100_000, "0"), "1".padEnd(100_000, "0"), "1".padEnd(100_000, "0") + "1"]);
  assert.ok(Date.now() - from < 5_000, "however long they are");
  ascending("json", [[], null, "", "a", "b", -1, 2, 10, false, true, [1], [2], [1, 1], {}, { b: 1 }, { zz: 1 }, { "\u00e9": 1 }, { zzz: 1 }, { "\u20ac": 1 }, { a: 1, b: 1 }]);
});

test("equal values are equal however they are written", () => {
  const equal = (a: ColumnType, x: Value, b: ColumnType, y: Value): boolean =>
    mapKey([(tieOfTypes(a, b) as (v: Value) => Value)(x)]) === mapKey([(tieOfTypes(b, a) as (v: Value) => Value)(y)]);
  assert.ok(equal("numeric", "1", "numeric", "1.00"));
  assert.ok(equal("int8", 100, "numeric", "1e2"));
  assert.ok(equal("float8", -0.5, "numeric", "-0.50"));
  assert.ok(equal("int8", 0, "numeric", "-0.0"));
  assert.ok(equal("numeric", "0e9999999999", "numeric", "0"));
  assert.ok(equal("numeric", "010e9999999999", "numeric", "1.e10000000000"));
  assert.ok(!equal("numeric", "1e9999999999", "numeric", "1e9999999998"));
  assert.ok(equal("float8", NaN, "numeric", "NaN"));
  assert.ok(equal("float8", 1e21, "numeric", "1000000000000000000000"));
  assert.ok(equal("float8", 0, "float8", -0));
  assert.ok(equal("date", "2013-02-04", "timestamptz", "2013-02-04T00:00:00Z"));
  assert.ok(equal("json", { a: 1, b: 2 }, "json", { b: 2, a: 1 }));
  assert.ok(!equal("float8", 0.1, "numeric", "0.1"), "a double is not the decimal that it is written as");
  assert.ok(!equal("float8", 9007199254740992, "int8", 9007199254740993n));
  assert.ok(!equal("text", "1", "text", "1.0"));
  assert.equal(tieOfTypes("text", "int8"), undefined);
  assert.equal(comparatorOfTypes("text", "int8"), undefined);
});

test("keys of rows do not meet by accident", () => {
  const keys = [[1], [1n << 60n], ["1"], [null], ["[null]"], [[null]], [1, 2], ["1", 2], [NaN, null], [null, null], [Infinity, null]];
  assert.equal(new Set(keys.map(mapKey)).size, keys.length);
});

test("no digit is lost in JSON", () => {
  const text = '{"a":[9223372036854775807,-9007199254740993,9007199254740991,1.5,"12345678901234567890"]}';
  const { a } = parse(text) as { a: unknown[] };
  assert.deepEqual(readCell(a[0], "int8", "json"), 9223372036854775807n);
  assert.deepEqual(readCell(a[1], "int8", "json"), -9007199254740993n);
  assert.equal(readCell(a[2], "int8", "json"), 9007199254740991);
  assert.equal(readCell(a[4], "text", "json"), "12345678901234567890");
  assert.deepEqual(readCell([{ n: a[0] }], "json", "json"), [{ n: 9223372036854775807 }]);
  assert.equal(stringify({ a: [9223372036854775807n, NaN, "é"] }), '{"a":[9223372036854775807,"NaN","é"]}');
  const hello = { hello: { client_id: undefined, token: "t" } };
  assert.equal(encode(hello, "json"), '{"hello":{"token":"t"}}');
  assert.deepEqual(decode(encode(hello, "msgpack"), "msgpack"), [{ hello: { token: "t" } }]);
});

test("frames that cannot be decoded are refused", () => {
  for (const frame of ["{", "1", "null", new Uint8Array(1)]) assert.throws(() => decode(frame, "json"), String(frame));
  for (const frame of ["{}", Uint8Array.of(0x81), Uint8Array.of(0x01)]) assert.throws(() => decode(frame, "msgpack"));
  assert.equal(readCell("x", "int8", "msgpack"), undefined);
  assert.equal(readCell("a\0b", "text", "json"), undefined);
});

function anything(r: Random, depth: number): unknown {
  const kind = r.below(depth > 0 ? 9 : 7);
  const text = (): string => ["", "a", "é\u{1F6EB}", "x".repeat(r.below(70_000) >> r.below(17))][r.below(4)]!;
  switch (kind) {
    case 0: return [null, true, false][r.below(3)];
    case 1: return r.below(2 ** 32) >> r.below(32);
    case 2: return -(r.below(2 ** 32) >>> r.below(32));
    case 3: return BigInt.asIntN(64, BigInt(r.below(2 ** 32)) << BigInt(r.below(40)));
    case 4: return [0.5, 1e300, NaN, Infinity, -Infinity][r.below(5)];
    case 5:
    case 6: return text();
    case 7: return Array.from({ length: r.below(3) === 0 ? 20 : r.below(4) }, () => anything(r, depth - 1));
    default: return Object.fromEntries(Array.from({ length: r.below(20) }, (_, i) => [`${i}${text().slice(0, 40)}`, anything(r, depth - 1)]));
  }
}

test("MessagePack is what another codec reads and writes", () => {
  const plain = (value: unknown): string => stringify(value);
  for (let seed = 1; seed <= 300; seed += 1) {
    const value = anything(random(seed), 3);
    assert.equal(plain(decodeByOther(encodeMsgpack(value), { useBigInt64: true })), plain(value), `seed ${seed}`);
    assert.equal(plain(decodeMsgpack(encodeByOther(value, { useBigInt64: true }))[0]), plain(value), `seed ${seed}`);
  }
  assert.deepEqual(decodeMsgpack(encodeByOther([new Uint8Array([1, 2])])), [[new Uint8Array([1, 2])]]);
  assert.deepEqual(decodeMsgpack(encodeMsgpack([-9223372036854775808n, 9223372036854775807n, -5, 5n])), [
    [-9223372036854775808n, 9223372036854775807n, -5, 5],
  ]);
  for (const edge of [-(2n ** 53n), 1n - 2n ** 53n, 2n ** 53n - 1n, 2n ** 53n]) {
    assert.equal(BigInt(readCell(decodeMsgpack(encodeMsgpack(edge))[0], "int8", "msgpack") as bigint), edge);
  }
  for (const wrong of [[0xc1], [0xd4, 1, 0], [0xa2, 0x61], [0x81, 1, 1], [0xdd, 0xff, 0xff, 0xff, 0xff], [0xa1, 0xff]]) {
    assert.throws(() => decodeMsgpack(Uint8Array.from(wrong)), TypeError, String(wrong));
  }
});
