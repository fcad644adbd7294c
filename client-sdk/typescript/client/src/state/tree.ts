// One subscription's result, kept nested and ordered from release to release.
//
// Each place keeps its rows in groups, one for each value of its `on` columns, and the keys of the parent rows under
// which each group stands. A release is applied place by place, children before parents: rows enter, leave and move in
// their groups, and the parents of every group that changed are shown anew. Whatever does not change stays the same
// object, so that readers can compare by reference.
//
// Pending mutations lie over the released rows: `base` remembers what the server says of the rows that they touch.

import type { MapKey } from "../wire/compare.js";
import { Group, type Entry, type Step } from "./group.js";
import { ROOT_GROUP, sameValue, setMember, type Shape, type Shown } from "./shape.js";

/** What a row becomes: its content and places, or undefined where it stands nowhere. */
export interface NetChange {
  readonly table: number;
  readonly key: MapKey;
  readonly new: Entry | undefined;
}

/** What happened to a row of the result. `old` is what was shown before. */
export type Change<T = Shown> =
  | { readonly op: "add"; readonly row: T }
  | { readonly op: "edit"; readonly row: T; readonly old: T }
  | { readonly op: "remove"; readonly row: T };

/** Changes of root rows by key, folded over several steps: the first state before, the last one after. */
export type RootChanges = Map<MapKey, { old: Shown | undefined; new: Shown | undefined }>;

/** For each table, rows by key; undefined where a row stands nowhere. */
export type Overlay = Map<MapKey, Entry | undefined>[];

interface Touched {
  readonly table: number;
  readonly old: Entry | undefined;
  readonly new: Entry | undefined;
}

const NOTHING: readonly Shown[] = Object.freeze([]);

/** See the file's head. */
export class ResultTree {
  readonly #rows: Map<MapKey, Entry>[];
  readonly #groups: Map<MapKey, Group>[];
  readonly #base: Overlay;

  /** Another object whenever something has changed. */
  version: object = {};

  constructor(readonly shape: Shape) {
    this.#rows = shape.layout.tables.map(() => new Map());
    this.#groups = shape.places.map(() => new Map());
    this.#base = shape.layout.tables.map(() => new Map());
  }

  /** The result. The same array as long as nothing in it changes. */
  get list(): readonly Shown[] {
    return this.#groups[0]!.get(ROOT_GROUP)?.list ?? NOTHING;
  }

  /** A row as the server last said it. */
  released(table: number, key: MapKey): Entry | undefined {
    const base = this.#base[table]!;
    return base.has(key) ? base.get(key) : this.#rows[table]!.get(key);
  }

  /** All rows of a table as the server last said them. */
  *releasedRows(table: number): Iterable<Entry> {
    const base = this.#base[table]!;
    for (const [key, entry] of this.#rows[table]!) if (!base.has(key)) yield entry;
    for (const entry of base.values()) if (entry) yield entry;
  }

  /** The group of a place under a parent's values. */
  group(place: number, key: MapKey): Group | undefined {
    return this.#groups[place]!.get(key);
  }

  /** Takes in what a release makes of rows; those under pending mutations change when these go. */
  release(net: readonly NetChange[], changes: RootChanges): void {
    const free = net.filter(({ table, key, new: entry }) => {
      const base = this.#base[table]!;
      if (!base.has(key)) return true;
      base.set(key, entry);
      // What is shown need not change, but what a storage keeps does.
      this.version = {};
      return false;
    });
    this.#apply(free, changes);
  }

  /** Lays what pending mutations make of rows over what was released, in the place of what lay there before. */
  overlay(overlay: Overlay, changes: RootChanges): void {
    const net: NetChange[] = [];
    this.#base.forEach((base, table) => {
      const wanted = overlay[table]!;
      for (const [key, entry] of base) {
        if (wanted.has(key)) continue;
        net.push({ table, key, new: entry });
        base.delete(key);
      }
      for (const [key, entry] of wanted) {
        if (!base.has(key)) base.set(key, this.#rows[table]!.get(key));
        net.push({ table, key, new: entry });
      }
    });
    this.#apply(net, changes);
  }

  /** Takes what lies over the released rows for released. */
  settle(): void {
    for (const base of this.#base) base.clear();
  }

  #apply(net: readonly NetChange[], changes: RootChanges): void {
    const touched = net.flatMap((change) => this.#hold(change) ?? []);
    if (touched.length === 0) return;
    this.version = {};
    // For each place, the rows to show anew because something under them changed.
    const renew = this.#groups.map(() => new Set<MapKey>());
    for (let place = this.#groups.length - 1; place >= 0; place -= 1) {
      const steps = new Map<MapKey, Step[]>();
      for (const change of touched) this.#move(place, change, steps, renew[place]!);
      for (const key of renew[place]!) this.#renew(place, key, steps);
      for (const [key, own] of steps) this.#step(place, key, own, renew, changes);
    }
  }

  /** Notes a row's content; undefined when nothing of it changes. */
  #hold({ table, key, new: entry }: NetChange): Touched | undefined {
    const rows = this.#rows[table]!;
    const old = rows.get(key);
    if (old && entry && old.places === entry.places && old.row.every((value, i) => sameValue(value, entry.row[i]!))) {
      return undefined;
    }
    if (entry) rows.set(key, entry);
    else rows.delete(key);
    return old || entry ? { table, old, new: entry } : undefined;
  }

  #move(place: number, change: Touched, steps: Map<MapKey, Step[]>, renew: Set<MapKey>): void {
    const shape = this.shape.places[place]!;
    if (shape.layout.table !== change.table) return;
    const here = (entry: Entry | undefined): Entry | undefined =>
      entry && entry.places & (1 << place) ? entry : undefined;
    const [before, after] = [here(change.old), here(change.new)];
    if (!before && !after) return;
    if (before && after && shape.same(before.row, after.row)) return;
    renew.delete((before ?? after)!.key);
    if (before) this.#unlink(place, before);
    if (after) this.#link(place, after);
    const from = before && shape.groupOf(before.row);
    const to = after && shape.groupOf(after.row);
    const shown = after && to !== undefined ? this.#show(place, after) : undefined;
    if (from === to) {
      if (to !== undefined) push(steps, to, { old: before, new: after, shown });
      return;
    }
    if (from !== undefined) push(steps, from, { old: before, new: undefined, shown: undefined });
    if (to !== undefined) push(steps, to, { old: undefined, new: after, shown });
  }

  #renew(place: number, key: MapKey, steps: Map<MapKey, Step[]>): void {
    const shape = this.shape.places[place]!;
    const entry = this.#rows[shape.layout.table]!.get(key)!;
    const group = shape.groupOf(entry.row);
    if (group !== undefined) push(steps, group, { old: entry, new: entry, shown: this.#show(place, entry) });
  }

  #step(place: number, key: MapKey, steps: Step[], renew: Set<MapKey>[], changes: RootChanges): void {
    const { layout, compare } = this.shape.places[place]!;
    const group = this.#at(place, key);
    const first = group.first;
    group.apply(steps, compare);
    if (place === 0) note(steps, changes);
    if (layout.parent !== null && !(layout.one && group.first === first)) {
      for (const parent of group.parents) renew[layout.parent]!.add(parent);
    }
    this.#drop(place, key, group);
  }

  #show(place: number, entry: Entry): Shown {
    const shape = this.shape.places[place]!;
    const shown = shape.show(entry.row);
    for (const child of shape.children) {
      const key = child.groupOf(entry.row);
      const group = key === undefined ? undefined : this.#groups[child.place]!.get(key);
      const first = group?.first;
      if (child.or !== undefined) setMember(shown, child.as, first ? first[child.valueName] : child.or);
      else setMember(shown, child.as, child.one ? (first ?? null) : group && first ? group.list : NOTHING);
    }
    return shown;
  }

  #link(place: number, entry: Entry): void {
    for (const child of this.shape.places[place]!.children) {
      const key = child.groupOf(entry.row);
      if (key !== undefined) this.#at(child.place, key).parents.add(entry.key);
    }
  }

  #unlink(place: number, entry: Entry): void {
    for (const child of this.shape.places[place]!.children) {
      const key = child.groupOf(entry.row);
      const group = key === undefined ? undefined : this.#groups[child.place]!.get(key);
      group?.parents.delete(entry.key);
      if (group) this.#drop(child.place, key!, group);
    }
  }

  #at(place: number, key: MapKey): Group {
    let group = this.#groups[place]!.get(key);
    if (!group) this.#groups[place]!.set(key, (group = new Group()));
    return group;
  }

  #drop(place: number, key: MapKey, group: Group): void {
    if (!group.first && group.parents.size === 0 && place !== 0) this.#groups[place]!.delete(key);
  }
}

/** Adds what steps did to root rows. A function of its own, so that its loop is compiled without what stands behind it. */
function note(steps: readonly Step[], changes: RootChanges): void {
  for (const { old, new: entry, was, shown } of steps) {
    const { key } = (old ?? entry)!;
    const known = changes.get(key);
    if (known) known.new = shown;
    else changes.set(key, { old: was, new: shown });
  }
}

function push(steps: Map<MapKey, Step[]>, group: MapKey, step: Step): void {
  const own = steps.get(group);
  if (own) own.push(step);
  else steps.set(group, [step]);
}

/** Folded changes as a list: removed rows first. */
export function changeList(changes: RootChanges): Change[] {
  const list: Change[] = [];
  for (const { old, new: row } of changes.values()) if (old && !row) list.push({ op: "remove", row: old });
  for (const { old, new: row } of changes.values()) {
    if (!row || old === row) continue;
    list.push(old ? { op: "edit", row, old } : { op: "add", row });
  }
  return list;
}
