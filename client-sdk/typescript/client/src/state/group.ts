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

  /** How many rows. */
  get length(): number {
    return this.#entries.length;
  }

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

  /** What is shown for a row that stands here. */
  shownOf(row: Row, compare: (a: Row, b: Row) => number): Shown | undefined {
    return this.#shown[this.#position(row, compare)];
  }

  /** Takes the steps of a release in; each row has one. */
  apply(steps: readonly Step[], compare: (a: Row, b: Row) => number): void {
    if (this.#given) {
      this.#shown = this.#shown.slice();
      this.#given = false;
    }
    if (steps.length > SINGLE_STEPS_MAX) return this.#merge(steps, compare);
    for (const step of steps) {
      const from = step.old ? this.#position(step.old.row, compare) : this.#entries.length;
      if (step.new) {
        const to = this.#position(step.new.row, compare);
        // Only what lies between the two moves.
        this.#shift(from, step.old && to > from ? to - 1 : to, step.new, step.shown!);
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
    const gone = new Set(steps.map((step) => step.old?.key));
    const added = steps.filter((step) => step.new).sort((a, b) => compare(a.new!.row, b.new!.row));
    const [entries, shown]: [Entry[], Shown[]] = [[], []];
    let next = 0;
    const take = (): void => {
      entries.push(added[next]!.new!);
      shown.push(added[next]!.shown!);
      next += 1;
    };
    this.#entries.forEach((entry, index) => {
      if (gone.has(entry.key)) return;
      while (next < added.length && compare(added[next]!.new!.row, entry.row) < 0) take();
      entries.push(entry);
      shown.push(this.#shown[index]!);
    });
    while (next < added.length) take();
    this.#entries = entries;
    this.#shown = shown;
  }

  /** Where a row stands, or would stand. */
  #position(row: Row, compare: (a: Row, b: Row) => number): number {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compare(this.#entries[middle]!.row, row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
