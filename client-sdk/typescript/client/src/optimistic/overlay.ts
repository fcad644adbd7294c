// What pending mutations make of results: computed anew over each released state, from the mutations' operations.
//
// A row's places follow from the query's conditions where these can be evaluated over what is held. Where they cannot
// (an EXISTS, a computed value, the next row behind a limit, a column that does not travel), the row stays where it
// is, and the result is marked as uncertain.

import type { Entry } from "../state/group.js";
import type { Mutations } from "../state/mutations.js";
import { sameValue, type Row } from "../state/shape.js";
import type { ChangesOf } from "../state/state.js";
import type { Subscription } from "../state/subscription.js";
import type { Overlay } from "../state/tree.js";
import type { MapKey } from "../wire/compare.js";
import type { RowOp, TableLayout } from "../wire/messages.js";
import type { Value } from "../wire/value.js";
import { canonical, UNKNOWN, type Known } from "./evaluate.js";
import { HeldRows, keyOfCells, type KnownRow } from "./held.js";
import { fits, hiddenTables, layOver, localPlaces, passes, type LocalPlace } from "./places.js";

/** What the pending operations do to one row, together. */
interface Effect {
  /** `insert` has a whole row in `cells`, `update` the columns that change. */
  kind: "insert" | "update" | "delete";
  cells: Record<string, unknown>;
}

/** A row before and after. */
interface Touched {
  /** As it was released. */
  readonly old: Entry | undefined;
  /** Undefined when it is deleted, or not all of it is known. */
  readonly row: Row | undefined;
  readonly effect: Effect;
  readonly known: KnownRow;
}

/** Lays pending mutations over results, and marks those that it cannot know. */
export function overlayMutations(subscriptions: Iterable<Subscription>, mutations: Mutations, changesOf: ChangesOf): void {
  const all = [...subscriptions];
  const ops = [...mutations.pendingOps()];
  const held = new HeldRows(all, false);
  for (const subscription of all) {
    const { tree, local, uncertain } = subscription;
    if (!tree || !local || (ops.length === 0 && !uncertain && !tree.overlaid)) continue;
    new Laying(subscription, ops, held).lay(changesOf);
  }
}

class Laying {
  readonly #places: readonly LocalPlace[];
  readonly #overlay: Overlay;
  /** Keys of groups under which a pending parent stands, by place. */
  readonly #newParents: Set<MapKey>[];
  #uncertain = false;

  constructor(
    readonly subscription: Subscription,
    readonly ops: readonly RowOp[],
    readonly held: HeldRows,
  ) {
    this.#places = localPlaces(subscription.local!.ast);
    this.#overlay = this.#tree.shape.layout.tables.map(() => new Map());
    this.#newParents = this.#places.map(() => new Set());
  }

  get #tree() {
    return this.subscription.tree!;
  }

  lay(changesOf: ChangesOf): void {
    const { subscription } = this;
    const wasUncertain = subscription.uncertain;
    if (this.ops.length > 0) {
      const hidden = hiddenTables(subscription.local!.ast);
      this.#uncertain = this.ops.some((op) => hidden.has(tableOf(op)));
      if (fits(this.#tree.shape, this.#places)) this.#compute();
      else this.#uncertain ||= this.#places.some(({ ast }) => this.ops.some((op) => tableOf(op) === ast.table));
    }
    const changes = new Map();
    const { short } = layOver(this.#tree, this.#overlay, this.#places, changes);
    subscription.uncertain = this.#uncertain || short;
    if (changes.size > 0 || subscription.uncertain !== wasUncertain) {
      const into = changesOf(subscription.sub);
      for (const [key, change] of changes) {
        const known = into.get(key);
        if (known) known.new = change.new;
        else into.set(key, change);
      }
    }
  }

  #compute(): void {
    const { tables } = this.#tree.shape.layout;
    const effects = tables.map((table) => this.#effects(table));
    const rows = tables.map((layout, table) => {
      const rows = new Map<MapKey, Touched>();
      for (const [key, effect] of effects[table]!) {
        const old = this.#tree.released(table, key);
        const known = new Map(effect.kind === "insert" ? [] : this.held.row(layout.name, key));
        for (const { name, type } of this.#columns(layout)) {
          const given = Object.hasOwn(effect.cells, name);
          if (!given && effect.kind !== "insert") continue;
          const value = canonical(effect.cells[name], type);
          // A value in a form of its own is shown as it was given, until the server says how it writes it.
          known.set(name, value === UNKNOWN ? (effect.cells[name] as Value) : value);
        }
        rows.set(key, { old, row: effect.kind === "delete" ? undefined : wholeRow(layout, known), effect, known });
      }
      return rows;
    });
    const masks = rows.map(() => new Map<MapKey, number>());
    // Parents before children, so that a pending parent is there for its pending children.
    this.#places.forEach((place, at) => {
      if (place.aggregated) return;
      const { table } = this.#tree.shape.layout.places[at]!;
      for (const [key, { old, row, effect, known }] of rows[table]!) {
        if (this.#stands(at, old, row, effect, known)) {
          masks[table]!.set(key, (masks[table]!.get(key) ?? 0) | (1 << at));
          this.#adopt(at, row!, rows, masks);
        }
      }
    });
    rows.forEach((own, table) => {
      for (const [key, { old, row }] of own) {
        const places = masks[table]!.get(key) ?? 0;
        const entry = row && places !== 0 ? { key, row, places } : undefined;
        if (old || entry) this.#overlay[table]!.set(key, entry);
      }
    });
  }

  /** What the operations do to each row of a table. */
  #effects(table: TableLayout): Map<MapKey, Effect> {
    const effects = new Map<MapKey, Effect>();
    const keyColumns = table.key.map((column) => table.columns[column]!);
    for (const op of this.ops) {
      if (tableOf(op) !== table.name) continue;
      const key = keyOfCells("insert" in op ? op.row : op.key, keyColumns);
      if (key === undefined) {
        this.#uncertain = true;
        continue;
      }
      const before = effects.get(key);
      if ("insert" in op) effects.set(key, { kind: "insert", cells: { ...op.row } });
      else if ("delete" in op) effects.set(key, { kind: "delete", cells: {} });
      else if (!before) effects.set(key, { kind: "update", cells: { ...op.set } });
      else if (before.kind !== "delete") Object.assign(before.cells, op.set);
    }
    return effects;
  }

  #columns(layout: TableLayout): { name: string; type: TableLayout["columns"][number]["type"] }[] {
    const schema = this.subscription.local!.tables.get(layout.name);
    return schema ? Object.entries(schema.columns).map(([name, { type }]) => ({ name, type })) : [...layout.columns];
  }

  #stands(at: number, old: Entry | undefined, row: Row | undefined, effect: Effect, known: KnownRow): boolean {
    if (effect.kind === "delete") return false;
    const place = this.#places[at]!;
    const shape = this.#tree.shape.places[at]!;
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
    const { local, source } = this.subscription;
    const met = passes(place, shape, local!, source?.args, value);
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
    const parent = this.#tree.shape.layout.places[at]!.parent!;
    const { layout, children } = this.#tree.shape.places[parent]!;
    const { groupOf } = children.find(({ place }) => place === at)!;
    for (const key of this.#tree.group(at, group)?.parents ?? []) {
      const entry = this.#tree.released(layout.table, key);
      if (entry && entry.places & (1 << parent) && groupOf(entry.row) === group) return true;
    }
    return false;
  }

  /**
   * Looks for the children of a row that comes to stand somewhere, among rows that are held for other places and
   * results. Only one that is found by its key is sure to be the only one.
   */
  #adopt(at: number, parent: Row, rows: readonly Map<MapKey, Touched>[], masks: readonly Map<MapKey, number>[]): void {
    for (const { place, groupOf } of this.#tree.shape.places[at]!.children) {
      const group = groupOf(parent);
      if (group === undefined || this.#newParents[place]!.has(group) || this.#hasReleasedParent(place, group)) continue;
      this.#newParents[place]!.add(group);
      const shape = this.#tree.shape.places[place]!;
      const { table, on } = shape.layout;
      const layout = shape.table;
      const byKey = layout.key.every((column) => on.some(([, tied]) => tied === column));
      let found = false;
      for (const [key, held] of this.#places[place]!.aggregated ? [] : this.held.rows(layout.name)) {
        const row = wholeRow(layout, held);
        if (!row || shape.groupOf(row) !== group) continue;
        found = true;
        if (rows[table]!.has(key)) continue;
        const old = this.#tree.released(table, key);
        rows[table]!.set(key, { old, row, effect: { kind: "update", cells: {} }, known: held });
        if (old) masks[table]!.set(key, old.places);
      }
      found ||= [...rows[table]!.values()].some(({ row }) => row && shape.groupOf(row) === group);
      if (!byKey || !found) this.#uncertain = true;
    }
  }
}

const tableOf = (op: RowOp): string => ("insert" in op ? op.insert : "update" in op ? op.update : op.delete);

/** The row of a layout's table; undefined when not all of it is known. */
export function wholeRow(layout: TableLayout, known: KnownRow): Row | undefined {
  const row = layout.columns.map(({ name }) => known.get(name));
  return row.every((value) => value !== undefined) ? (row as Row) : undefined;
}
