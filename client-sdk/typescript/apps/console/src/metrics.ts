// Reads histograms out of Prometheus text.

import type { Histogram } from "./histogram.js";

const BUCKET = /^(\w+)_bucket\{(?:.*,)?le="([^"]+)"[^}]*\} (\S+)/;

/** The histograms of a text by name. One that has labels of its own beside `le` is not told apart from its siblings. */
export function histograms(text: string): ReadonlyMap<string, Histogram> {
  const found = new Map<string, { bounds: number[]; counts: number[] }>();
  for (const line of text.split("\n")) {
    const bucket = BUCKET.exec(line);
    if (!bucket) continue;
    const [, name, bound, count] = bucket;
    let histogram = found.get(name!);
    if (!histogram) found.set(name!, (histogram = { bounds: [], counts: [] }));
    histogram.bounds.push(bound === "+Inf" ? Infinity : Number(bound));
    histogram.counts.push(Number(count));
  }
  return found;
}
