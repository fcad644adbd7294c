// The rows of a client's results, by table: what is known of each row, whichever results it stands in.

import type { Subscription } from "../state/subscription.js";
import type { ResultTree } from "../state/tree.js";
import { mapKey, oneForm, type MapKey } from "../wire/compare.js";
import type { ColumnLayout, TableLayout } from "../wire/messages.js";
import type { Value } from "../wire/value.js";
import { canonical, UNKNOWN } from "./evaluate.js";

/** What is known of a row: values by column. */
export type KnownRow = Map<string, Value>;

/** See the file's head. */
export class HeldRows {
  readonly #subscriptions: readonly Subscription[];
  /** Tables whose rows were gathered already. */
  readonly #gathered = new Map<string, Map<MapKey, KnownRow>>();

  constructor(subscriptions: readonly Subscription[]) {
    // Others show computed rows, whose tables have names of their own. Where two know a row, the last one counts: one that
    // stands at the commit that is shown.
    const own = subscriptions.filter(({ local }) => local && !local.ast.group_by);
    this.#subscriptions = own.sort((a, b) => Number(a.stands) - Number(b.stands));
  }

  /** What is known of a row, as it was released; undefined when it is not held. */
  row(table: string, key: MapKey): KnownRow | undefined {
    let known: KnownRow | undefined;
    for (const { tree, layout, index } of this.#tables(table)) {
      const entry = tree.released(index, key);
      if (!entry) continue;
      known ??= new Map();
      layout.columns.forEach(({ name }, column) => known!.set(name, entry.row[column]!));
    }
    return known;
  }

  /** All held rows of a table, as they were released. */
  rows(table: string): ReadonlyMap<MapKey, KnownRow> {
    const gathered = this.#gathered.get(table);
    if (gathered) return gathered;
    const rows = new Map<MapKey, KnownRow>();
    this.#gathered.set(table, rows);
    for (const { tree, layout, index } of this.#tables(table)) {
      for (const { key, row } of tree.releasedRows(index)) {
        let known = rows.get(key);
        if (!known) rows.set(key, (known = new Map()));
        layout.columns.forEach(({ name }, column) => known.set(name, row[column]!));
      }
    }
    return rows;
  }

  *#tables(name: string): Iterable<{ tree: ResultTree; layout: TableLayout; index: number }> {
    for (const { tree } of this.#subscriptions) {
      const index = tree?.shape.layout.tables.findIndex((table) => table.name === name) ?? -1;
      if (tree && index >= 0) yield { tree, layout: tree.shape.layout.tables[index]!, index };
    }
  }
}

/** A cell that is given; a column may be called as something that every object inherits. */
export const cellOf = (cells: object, name: string): unknown =>
  Object.hasOwn(cells, name) ? (cells as Record<string, unknown>)[name] : undefined;

/** The key of a row that is given by its columns; undefined when one is missing or of the wrong type. */
export function keyOfCells(cells: object, key: readonly ColumnLayout[]): MapKey | undefined {
  const values: Value[] = [];
  for (const { name, type } of key) {
    const value = canonical(cellOf(cells, name), type);
    if (value === UNKNOWN || value === null) return undefined;
    values.push(oneForm(value, type));
  }
  return mapKey(values);
}
