// What pending mutations make of results: computed anew over each released state, from the mutations' operations.
//
// A row's places follow from the query's conditions where these can be evaluated over what is held. Where they cannot
// (an EXISTS, a computed value, the next row behind a limit, a column that does not travel), the row stays where it
// is, and the result is marked as uncertain.

import type { LocalQuery } from "../query/ast.js";
import type { Entry } from "../state/group.js";
import { sameValue, type Row } from "../state/shape.js";
import type { Results } from "../state/state.js";
import type { Subscription } from "../state/subscription.js";
import type { Overlay, ResultTree, RootChanges } from "../state/tree.js";
import type { MapKey } from "../wire/compare.js";
import type { TableLayout } from "../wire/messages.js";
import { UNKNOWN, type Known, type Scope } from "./evaluate.js";
import type { KnownRow } from "./held.js";
import { changed, tableOf, type PendingRows, type RowEffect } from "./pending.js";
import { fits, hiddenTables, layOver, localPlaces, passes, type LocalPlace } from "./places.js";

/** A row before and after. */
interface Touched {
  /** As it was released. */
  readonly old: Entry | undefined;
  /** Undefined when it is deleted, or not all of it is known. */
  readonly row: Row | undefined;
  readonly effect: RowEffect;
  readonly known: KnownRow;
  /** Where it comes to stand. */
  places: number;
}

/** Lays pending mutations over results, and marks those that it cannot know. */
export function overlayMutations(subscriptions: readonly Subscription[], pending: PendingRows, results: Results): void {
  for (const subscription of subscriptions) {
    const { tree, local, uncertain, sub } = subscription;
    if (!tree) continue;
    const changes: RootChanges = results.get(sub) ?? new Map();
    // Which tables SQL or a named query reads is not known here.
    subscription.uncertain = local ? new Laying(tree, local, subscription.source?.args, pending).lay(changes) : pending.ops.length > 0;
    if (changes.size > 0 || subscription.uncertain !== uncertain) results.set(sub, changes);
  }
}

class Laying {
  readonly #places: readonly LocalPlace[];
  readonly #overlay: Overlay;
  /** Keys of groups under which a pending parent stands, by place. */
  readonly #newParents: Set<MapKey>[];
  #uncertain = false;

  constructor(
    readonly tree: ResultTree,
    readonly local: LocalQuery,
    readonly args: Scope["args"],
    readonly pending: PendingRows,
  ) {
    this.#places = localPlaces(local.ast);
    this.#overlay = tree.shape.layout.tables.map(() => new Map());
    this.#newParents = this.#places.map(() => new Set());
  }

  /** Whether the result cannot be known here. */
  lay(changes: RootChanges): boolean {
    const { tree, pending } = this;
    const hidden = hiddenTables(this.#places);
    const own = new Set(this.#places.map(({ ast }) => ast.table));
    const fitting = fits(tree.shape, this.#places);
    for (const op of pending.ops) this.#uncertain ||= hidden.includes(tableOf(op)) || (!fitting && own.has(tableOf(op)));
    for (const op of pending.doubtful.flat()) this.#uncertain ||= own.has(tableOf(op));
    if (fitting) this.#compute();
    const short = layOver(tree, this.#overlay, this.#places, changes);
    return this.#uncertain || short;
  }

  #compute(): void {
    const { tables } = this.tree.shape.layout;
    const rows = tables.map((layout, table) => {
      const rows = new Map<MapKey, Touched>();
      const effects = this.pending.effects(layout.name, layout.key.map((column) => layout.columns[column]!));
      for (const [key, effect] of effects) {
        if (key === undefined) {
          this.#uncertain = true;
          continue;
        }
        effect.held ??= this.pending.held.row(layout.name, key) ?? new Map();
        const known = changed(effect.held, effect, this.local.tables.get(layout.name)?.columns ?? {});
        const row = effect.kind === "delete" ? undefined : wholeRow(layout, known);
        rows.set(key, { old: this.tree.released(table, key), row, effect, known, places: 0 });
      }
      return rows;
    });
    // Parents before children, so that a pending parent is there for its pending children.
    this.#places.forEach((place, at) => {
      if (place.aggregated) return;
      const { table } = this.tree.shape.layout.places[at]!;
      for (const touched of rows[table]!.values()) {
        if (!this.#stands(at, touched)) continue;
        touched.places |= 1 << at;
        this.#adopt(at, touched.row!, rows);
      }
    });
    rows.forEach((own, table) => {
      for (const [key, { old, row, places }] of own) {
        const entry = row && places !== 0 ? { key, row, places } : undefined;
        if (old || entry) this.#overlay[table]!.set(key, entry);
      }
    });
  }

  #stands(at: number, { old, row, effect, known }: Touched): boolean {
    if (effect.kind === "delete") return false;
    const place = this.#places[at]!;
    const shape = this.tree.shape.places[at]!;
    const stood = old !== undefined && (old.places & (1 << at)) !== 0;
    const ties = shape.layout.on.map(([, column]) => column);
    if (effect.kind === "update" && stood && row && !ties.some((column) => !sameValue(old.row[column]!, row[column]!))) {
      // What decides is as it was.
      if (!Object.keys(effect.cells).some((column) => place.decides.has(column))) return true;
    }
    const value = (column: string): Known => {
      const found = known.get(column);
      return found === undefined ? UNKNOWN : found;
    };
    const met = passes(place, shape, this.local, this.args, value);
    if (met === false) return false;
    // Where not even the columns that are shown are known, the row may stand here, but cannot be shown.
    if (met === UNKNOWN || !row) {
      this.#uncertain = true;
      return stood && row !== undefined;
    }
    if (shape.layout.parent === null) return true;
    const group = shape.groupOf(row);
    if (group === undefined) return false;
    return this.#newParents[at]!.has(group) || this.#hasReleasedParent(at, group);
  }

  /** Whether the server has said which rows stand in a group, because a released row stands over it. */
  #hasReleasedParent(at: number, group: MapKey): boolean {
    const parent = this.tree.shape.layout.places[at]!.parent!;
    const { layout, children } = this.tree.shape.places[parent]!;
    const { groupOf } = children.find(({ place }) => place === at)!;
    for (const key of this.tree.group(at, group)?.parents ?? []) {
      const entry = this.tree.released(layout.table, key);
      if (entry && entry.places & (1 << parent) && groupOf(entry.row) === group) return true;
    }
    return false;
  }

  /**
   * Looks for the children of a row that comes to stand somewhere, among rows that are held for other places and
   * results. Only one that is found by its key is sure to be the only one.
   */
  #adopt(at: number, parent: Row, rows: readonly Map<MapKey, Touched>[]): void {
    for (const { place, groupOf } of this.tree.shape.places[at]!.children) {
      const group = groupOf(parent);
      if (group === undefined || this.#newParents[place]!.has(group) || this.#hasReleasedParent(place, group)) continue;
      this.#newParents[place]!.add(group);
      const shape = this.tree.shape.places[place]!;
      const { table, on } = shape.layout;
      const layout = shape.table;
      const byKey = layout.key.every((column) => on.some(([, tied]) => tied === column));
      let found = false;
      for (const [key, held] of this.#places[place]!.aggregated ? [] : this.pending.held.rows(layout.name)) {
        const row = wholeRow(layout, held);
        if (!row || shape.groupOf(row) !== group) continue;
        found = true;
        if (rows[table]!.has(key)) continue;
        const old = this.tree.released(table, key);
        rows[table]!.set(key, { old, row, effect: { kind: "update", cells: {} }, known: held, places: old?.places ?? 0 });
      }
      found ||= [...rows[table]!.values()].some(({ row }) => row && shape.groupOf(row) === group);
      if (!byKey || !found) this.#uncertain = true;
    }
  }
}

/** The row of a layout's table; undefined when not all of it is known. */
export function wholeRow(layout: TableLayout, known: KnownRow): Row | undefined {
  const row = layout.columns.map(({ name }) => known.get(name));
  return row.every((value) => value !== undefined) ? (row as Row) : undefined;
}
