// What is read off the server at one moment, and the lines that plots draw through readings.

import { quantile, since, type Histogram } from "./histogram.js";

/** One moment. */
export interface Reading {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly cv: number;
  readonly uptimeSeconds: number;
  readonly workerQueue: number;
  readonly drainQueue: number;
  readonly memoryBytes: number | null;
  readonly storeBytes: number;
  readonly outboxBytes: number;
  readonly connections: number;
  readonly subscriptions: number;
  readonly commitToSocket: Histogram | undefined;
  readonly advance: Histogram | undefined;
}

/** Readings kept: five minutes of one a second. */
export const READINGS_MAX = 300;

/** Readings further apart than this, milliseconds, have a gap between them: the page was hidden or the server away. */
const GAP_MS = 5_000;

/** Quantiles are of what was observed in so many milliseconds. */
const WINDOW_MS = 5_000;

/** Adds a reading and forgets the oldest beyond the bound. */
export function extended(readings: readonly Reading[], next: Reading): readonly Reading[] {
  return [...readings.slice(Math.max(0, readings.length + 1 - READINGS_MAX)), next];
}

/** A line of a plot: null where there is nothing to draw. */
export type Line = readonly (number | null)[];

/** Readings as lines over one axis of time, seconds since 1970. */
export interface Lines {
  readonly at: readonly number[];
  readonly commitsPerSecond: Line;
  readonly commitToSocket: { readonly p50: Line; readonly p99: Line };
  readonly advance: { readonly p50: Line; readonly p99: Line };
  readonly workerQueue: Line;
  readonly drainQueue: Line;
  readonly memoryBytes: Line;
  readonly storeBytes: Line;
  readonly outboxBytes: Line;
  readonly connections: Line;
  readonly subscriptions: Line;
}

/** The lines through some readings. A gap in time, or a restart, is a point where every line breaks. */
export function linesOf(readings: readonly Reading[]): Lines {
  // Undefined stands for a break.
  const points: (Reading | undefined)[] = [];
  const at: number[] = [];
  readings.forEach((reading, index) => {
    const before = readings[index - 1];
    if (before && !isContinued(before, reading)) {
      points.push(undefined);
      at.push((before.at + reading.at) / 2_000);
    }
    points.push(reading);
    at.push(reading.at / 1_000);
  });
  const line = (value: (reading: Reading) => number | null): Line => points.map((point) => (point ? value(point) : null));
  const overWindow = (value: (now: Reading, before: Reading) => number | null): Line =>
    points.map((point, index) => {
      const before = point && windowStart(points, index);
      return before ? value(point, before) : null;
    });
  const quantiles = (of: (reading: Reading) => Histogram | undefined) => {
    const at = (q: number): Line =>
      overWindow((now, before) => {
        const histogram = of(now);
        return histogram ? quantile(since(histogram, of(before)), q) : null;
      });
    return { p50: at(0.5), p99: at(0.99) };
  };
  return {
    at,
    commitsPerSecond: points.map((point, index) => {
      const before = points[index - 1];
      return point && before ? Math.max(0, point.cv - before.cv) / ((point.at - before.at) / 1_000) : null;
    }),
    commitToSocket: quantiles((reading) => reading.commitToSocket),
    advance: quantiles((reading) => reading.advance),
    workerQueue: line((reading) => reading.workerQueue),
    drainQueue: line((reading) => reading.drainQueue),
    memoryBytes: line((reading) => reading.memoryBytes),
    storeBytes: line((reading) => reading.storeBytes),
    outboxBytes: line((reading) => reading.outboxBytes),
    connections: line((reading) => reading.connections),
    subscriptions: line((reading) => reading.subscriptions),
  };
}

function isContinued(before: Reading, after: Reading): boolean {
  return after.at - before.at <= GAP_MS && after.uptimeSeconds >= before.uptimeSeconds;
}

/** The earliest point of the window that ends at a point, with no break between. */
function windowStart(points: readonly (Reading | undefined)[], end: number): Reading | undefined {
  let start: Reading | undefined;
  for (let at = end - 1; at >= 0; at -= 1) {
    const point = points[at];
    if (!point || points[end]!.at - point.at > WINDOW_MS) break;
    start = point;
  }
  return start;
}
