// What pending mutations do to rows, in their order, and the rows as they are with it.

import type { TableSchema } from "../query/ast.js";
import type { MapKey } from "../wire/compare.js";
import type { ColumnLayout, RowOp } from "../wire/messages.js";
import type { Value } from "../wire/value.js";
import { canonical, UNKNOWN } from "./evaluate.js";
import { keyOfCells, type HeldRows, type KnownRow } from "./held.js";

/** What the operations do to one row, together. */
export interface RowEffect {
  /** `insert` has a whole row in `cells`, `update` the columns that change. */
  readonly kind: "insert" | "update" | "delete";
  readonly cells: Readonly<Record<string, unknown>>;
}

/** What they do to a table's rows. */
interface TableEffects {
  readonly rows: Map<MapKey, RowEffect>;
  /** Whether some operation does not say which row it is for. */
  astray: boolean;
  /** How many operations are taken in. */
  taken: number;
}

/** The table that an operation is for. */
export const tableOf = (op: RowOp): string => ("insert" in op ? op.insert : "update" in op ? op.update : op.delete);

/** See the file's head. */
export class PendingRows {
  #ops: RowOp[] = [];
  readonly #tables = new Map<string, TableEffects>();
  /** Tables in which the server will make something else of the mutations than what is shown. */
  readonly doubtful = new Set<string>();

  /** `held` has the rows as they were released. */
  constructor(readonly held: HeldRows) {}

  /** The operations. */
  get ops(): readonly RowOp[] {
    return this.#ops;
  }

  /** Adds operations. */
  add(...ops: readonly RowOp[]): void {
    this.#ops.push(...ops);
  }

  /** Takes all operations back but the first ones. */
  keep(first: number): void {
    this.#ops.length = first;
    this.#tables.clear();
  }

  /** What is done to a table's rows, by key. */
  effects(table: string, key: readonly ColumnLayout[]): TableEffects {
    const name = [table, ...key.map((column) => column.name)].join();
    let effects = this.#tables.get(name);
    if (!effects) this.#tables.set(name, (effects = { rows: new Map(), astray: false, taken: 0 }));
    for (; effects.taken < this.#ops.length; effects.taken += 1) {
      const op = this.#ops[effects.taken]!;
      if (tableOf(op) === table) take(op, key, effects);
    }
    return effects;
  }

  /** A row as mutators see it; null when they have deleted it, undefined when not all of it is known. */
  row({ name, columns, key }: TableSchema, cells: object): Record<string, unknown> | null | undefined {
    const keyColumns = key.map((column) => ({ name: column, type: columns[column]!.type }));
    const found = keyOfCells(cells, keyColumns);
    if (found === undefined) return undefined;
    const effect = this.effects(name, keyColumns).rows.get(found);
    if (effect?.kind === "delete") return null;
    const known = changed(this.held.row(name, found), effect, columns);
    const row: Record<string, unknown> = {};
    for (const [column, { bigint }] of Object.entries(columns)) {
      const value = known.get(column);
      if (value === undefined) return undefined;
      row[column] = bigint && typeof value === "number" ? BigInt(value) : value;
    }
    return row;
  }
}

function take(op: RowOp, key: readonly ColumnLayout[], effects: TableEffects): void {
  const found = keyOfCells("insert" in op ? op.row : op.key, key);
  if (found === undefined) {
    effects.astray = true;
    return;
  }
  const before = effects.rows.get(found);
  if ("insert" in op) effects.rows.set(found, { kind: "insert", cells: op.row });
  else if ("delete" in op) effects.rows.set(found, { kind: "delete", cells: {} });
  else if (before?.kind !== "delete") effects.rows.set(found, { kind: "update", ...before, cells: { ...before?.cells, ...op.set } });
}

/** What is known of a row after an effect. */
export function changed(
  held: KnownRow | undefined, effect: RowEffect | undefined, columns: { readonly [name: string]: { readonly type: ColumnLayout["type"] } },
): KnownRow {
  const inserts = effect?.kind === "insert";
  const known: KnownRow = new Map(inserts ? [] : held);
  for (const [name, { type }] of effect ? Object.entries(columns) : []) {
    const given = effect!.cells[name];
    if (!inserts && !Object.hasOwn(effect!.cells, name)) continue;
    const value = canonical(given, type);
    // A value in a form of its own is shown as it was given, until the server says how it writes it.
    known.set(name, value === UNKNOWN ? (given as Value) : value);
  }
  return known;
}
