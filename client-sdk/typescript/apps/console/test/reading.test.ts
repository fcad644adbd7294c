// Readings over time: what is kept, and the lines drawn through them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { extended, linesOf, READINGS_MAX, type Reading } from "../src/reading.js";

const reading = (second: number, cv: number, more: Partial<Reading> = {}): Reading => ({
  at: second * 1_000,
  cv,
  uptimeSeconds: second,
  workerQueue: 0,
  drainQueue: 0,
  memoryBytes: null,
  storeBytes: 0,
  outboxBytes: 0,
  connections: 0,
  subscriptions: 0,
  commitToSocket: undefined,
  advance: undefined,
  ...more,
});

const latency = (fast: number, slow: number): Partial<Reading> => ({
  commitToSocket: { bounds: [0.001, 1, Infinity], counts: [fast, fast + slow, fast + slow] },
});

test("the oldest readings are forgotten", () => {
  let readings: readonly Reading[] = [];
  for (let second = 0; second < READINGS_MAX + 7; second += 1) readings = extended(readings, reading(second, second));
  assert.equal(readings.length, READINGS_MAX);
  assert.deepEqual([readings[0]!.cv, readings.at(-1)!.cv], [7, READINGS_MAX + 6]);
});

test("commits a second are told from the second reading on", () => {
  const lines = linesOf([reading(0, 10), reading(1, 30), reading(3, 40)]);
  assert.deepEqual(lines.at, [0, 1, 3]);
  assert.deepEqual(lines.commitsPerSecond, [null, 20, 5]);
});

test("quantiles are of the last seconds alone", () => {
  const slow = [0, 1, 2].map((second) => reading(second, 0, latency(0, 100 * second)));
  const fast = [3, 4, 5, 6, 7, 8].map((second) => reading(second, 0, latency(100 * second, 200)));
  const { p50, p99 } = linesOf([...slow, ...fast]).commitToSocket;
  assert.equal(p50[0], null, "nothing to compare with");
  assert.ok(p50[2]! > 0.001 && p99[2]! > 0.9, "all were slow");
  assert.ok(p50[8]! < 0.001 && p99[8]! < 0.001, "those of long ago no longer count");
});

test("nothing observed is nothing drawn", () => {
  assert.deepEqual(linesOf([reading(0, 0, latency(5, 0)), reading(1, 0, latency(5, 0))]).commitToSocket.p99, [null, null]);
});

test("lines break where the page was hidden, and at a restart", () => {
  const hidden = linesOf([reading(0, 10, { storeBytes: 1 }), reading(60, 20, { storeBytes: 2 })]);
  assert.deepEqual(hidden.at, [0, 30, 60]);
  assert.deepEqual(hidden.storeBytes, [1, null, 2]);
  assert.deepEqual(hidden.commitsPerSecond, [null, null, null], "no rate across the gap");
  const restarted = linesOf([reading(50, 10), { ...reading(51, 2), uptimeSeconds: 0 }, { ...reading(52, 3), uptimeSeconds: 1 }]);
  assert.deepEqual(restarted.commitsPerSecond, [null, null, null, 1]);
});
