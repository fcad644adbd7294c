// The ordered rows of one place under one parent's values, with the list that readers are given.
//
// A list that was given out never changes: the next change copies it first, once per release however many rows it
// concerns. Copying 10,000 references takes microseconds; a list that nobody reads is not copied.

import type { MapKey } from "../wire/compare.js";
import type { Row, Shown } from "./shape.js";

/** A version of a row of the result. */
export interface Entry {
  readonly key: MapKey;
  readonly row: Row;
  /** The places where it stands, bit i for place i. */
  readonly places: number;
}

/** What one release does to one row of a group. */
export interface Step {
  readonly old: Entry | undefined;
  readonly new: Entry | undefined;
  /** What is shown for `new`. */
  readonly shown: Shown | undefined;
  /** What was shown for `old`; set when the step is taken in. */
  was?: Shown | undefined;
}

/** More steps than this are merged in one pass rather than searched for one by one. */
const SINGLE_STEPS_MAX = 16;

/** See the file's head. */
export class Group {
  #entries: Entry[] = [];
  #shown: Shown[] = [];
  #given = false;
  /** Keys of the parent place's rows that this group stands under. */
  readonly parents = new Set<MapKey>();

  /** The list as it is now, for readers. */
  get list(): readonly Shown[] {
    this.#given = true;
    return this.#shown;
  }

  /** What is shown first. */
  get first(): Shown | undefined {
    return this.#shown[0];
  }

  /** The rows in order. */
  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** Takes the steps of a release in; each row has one. */
  apply(steps: readonly Step[], compare: (a: Row, b: Row) => number): void {
    if (this.#given) {
      this.#shown = this.#shown.slice();
      this.#given = false;
    }
    if (steps.length > SINGLE_STEPS_MAX) return this.#merge(steps, compare);
    for (const step of steps) {
      const { old, new: entry, shown } = step;
      const from = old ? this.#position(old.row, compare) : this.#entries.length;
      step.was = this.#shown[from];
      if (entry) {
        const to = old && compare(old.row, entry.row) === 0 ? from : this.#position(entry.row, compare);
        // Only what lies between the two moves.
        this.#shift(from, old && to > from ? to - 1 : to, entry, shown!);
      } else {
        this.#entries.splice(from, 1);
        this.#shown.splice(from, 1);
      }
    }
  }

  /** Takes the place `from` away, or the one behind the last, and gives `entry` the place `to`. */
  #shift(from: number, to: number, entry: Entry, shown: Shown): void {
    const by = from < to ? 1 : -1;
    for (let at = from; at !== to; at += by) {
      this.#entries[at] = this.#entries[at + by]!;
      this.#shown[at] = this.#shown[at + by]!;
    }
    this.#entries[to] = entry;
    this.#shown[to] = shown;
  }

  #merge(steps: readonly Step[], compare: (a: Row, b: Row) => number): void {
    const gone = new Map(steps.map((step) => [step.old?.key, step]));
    const all: { entry: Entry; shown: Shown }[] = [];
    this.#entries.forEach((entry, index) => {
      const shown = this.#shown[index]!;
      const step = gone.get(entry.key);
      if (step) step.was = shown;
      else all.push({ entry, shown });
    });
    for (const { new: entry, shown } of steps) if (entry) all.push({ entry, shown: shown! });
    // What is in order already is not compared anew with each other row: sorting merges runs.
    all.sort((a, b) => compare(a.entry.row, b.entry.row));
    this.#entries = all.map(({ entry }) => entry);
    this.#shown = all.map(({ shown }) => shown);
  }

  /** Where a row stands, or would stand. */
  #position(row: Row, compare: (a: Row, b: Row) => number): number {
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#entries[middle]!.row, row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
