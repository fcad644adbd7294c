// Quantiles of histograms, and histograms read out of Prometheus text.

import assert from "node:assert/strict";
import { test } from "node:test";
import { quantile, since, total, type Histogram } from "../src/histogram.js";
import { histograms } from "../src/metrics.js";

const of = (...counts: number[]): Histogram => ({ bounds: [0.001, 0.01, 0.1, Infinity].slice(-counts.length), counts });

const near = (value: number | null, wanted: number): void => assert.ok(value !== null && Math.abs(value - wanted) < 1e-12, `${value} is not ${wanted}`);

test("a quantile lies in the bucket of its rank, evenly spread", () => {
  const histogram = of(10, 90, 100, 100);
  assert.equal(quantile(histogram, 0.1), 0.001, "the whole first bucket, which begins at nothing");
  assert.equal(quantile(histogram, 0.05), 0.0005);
  near(quantile(histogram, 0.5), 0.0055);
  near(quantile(histogram, 0.99), 0.091);
});

test("buckets without observations are passed over", () => {
  near(quantile(of(0, 0, 4, 4), 0.5), 0.055);
});

test("beyond the last finite bound there is only that bound", () => {
  assert.equal(quantile(of(0, 0, 0, 7), 0.5), 0.1);
});

test("without observations there is no quantile", () => {
  assert.equal(quantile(of(0, 0, 0, 0), 0.99), null);
  assert.equal(quantile({ bounds: [], counts: [] }, 0.5), null);
});

test("what is new is the difference, and everything after a restart", () => {
  assert.deepEqual(since(of(3, 5, 9, 9), of(1, 5, 5, 5)).counts, [2, 0, 4, 4]);
  assert.deepEqual(since(of(3, 5, 9, 9), undefined).counts, [3, 5, 9, 9]);
  assert.deepEqual(since(of(0, 1, 1, 1), of(3, 5, 9, 9)).counts, [0, 1, 1, 1]);
  assert.equal(total(since(of(3, 5, 9, 9), of(3, 5, 9, 9))), 0);
});

test("histograms are read from Prometheus text", () => {
  const text = [
    "# HELP a_seconds how long",
    "# TYPE a_seconds histogram",
    'a_seconds_bucket{le="0.001"} 2',
    'a_seconds_bucket{le="0.1"} 5',
    'a_seconds_bucket{le="+Inf"} 6',
    "a_seconds_sum 1.5",
    "a_seconds_count 6",
    'b_total{kind="x"} 9',
    'c_seconds_bucket{worker="1",le="+Inf"} 4',
  ].join("\n");
  const found = histograms(text);
  assert.deepEqual([...found.keys()], ["a_seconds", "c_seconds"]);
  assert.deepEqual(found.get("a_seconds"), { bounds: [0.001, 0.1, Infinity], counts: [2, 5, 6] });
});
