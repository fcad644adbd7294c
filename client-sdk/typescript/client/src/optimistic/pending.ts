// What pending mutations do to rows, in their order, and the rows as they are with it.

import type { TableSchema } from "../query/ast.js";
import { setMember } from "../state/shape.js";
import type { MapKey } from "../wire/compare.js";
import type { ColumnLayout, RowOp } from "../wire/messages.js";
import type { Value } from "../wire/value.js";
import { canonical, UNKNOWN } from "./evaluate.js";
import { cellOf, keyOfCells, type HeldRows, type KnownRow } from "./held.js";

/** What the operations do to one row, together. */
export interface RowEffect {
  /** `insert` has a whole row in `cells`, `update` the columns that change. */
  readonly kind: "insert" | "update" | "delete";
  readonly cells: Readonly<Record<string, unknown>>;
  /** What is known of the row as it was released, once somebody has asked: many results ask for the same. */
  held?: KnownRow;
}

/** Effects by their row's key; under undefined those of operations that do not say for which row they are. */
type Effects = Map<MapKey | undefined, RowEffect>;

/** The table that an operation is for. */
export const tableOf = (op: RowOp): string => ("insert" in op ? op.insert : "update" in op ? op.update : op.delete);

/** See the file's head. */
export class PendingRows {
  /** The operations, in order. */
  readonly ops: RowOp[] = [];
  /** Each table's effects, and of how many operations they are. */
  readonly #tables = new Map<string, { readonly effects: Effects; taken: number }>();
  /** Operations of which the server will make something else than what is shown. */
  readonly doubtful: (readonly RowOp[])[] = [];

  /** `held` has the rows as they were released. */
  constructor(readonly held: HeldRows) {}

  /** What is done to a table's rows. */
  effects(name: string, key: readonly ColumnLayout[]): Effects {
    let table = this.#tables.get(name);
    if (!table) this.#tables.set(name, (table = { effects: new Map(), taken: 0 }));
    for (; table.taken < this.ops.length; table.taken += 1) {
      const op = this.ops[table.taken]!;
      if (tableOf(op) !== name) continue;
      const found = keyOfOp(op, key);
      table.effects.set(found, followed(table.effects.get(found), op));
    }
    return table.effects;
  }

  /** A row after these operations and further ones; null when it is deleted, undefined when not all of it is known. */
  row({ name, columns, key }: TableSchema, cells: object, further: readonly RowOp[]): Record<string, unknown> | null | undefined {
    const keyColumns = key.map((column) => ({ name: column, type: columns[column]!.type }));
    const found = keyOfCells(cells, keyColumns);
    if (found === undefined) return undefined;
    let effect = this.effects(name, keyColumns).get(found);
    for (const op of further) if (tableOf(op) === name && keyOfOp(op, keyColumns) === found) effect = followed(effect, op);
    if (effect?.kind === "delete") return null;
    const held = this.held.row(name, found);
    const known = effect ? changed(held, effect, columns) : held;
    const row: Record<string, unknown> = {};
    for (const [column, { bigint }] of Object.entries(columns)) {
      const value = known?.get(column);
      if (value === undefined) return undefined;
      setMember(row, column, bigint && typeof value === "number" ? BigInt(value) : value);
    }
    return row;
  }
}

const keyOfOp = (op: RowOp, key: readonly ColumnLayout[]): MapKey | undefined => keyOfCells("insert" in op ? op.row : op.key, key);

/** An effect followed by an operation on the same row. */
function followed(before: RowEffect | undefined, op: RowOp): RowEffect {
  if ("insert" in op) return { kind: "insert", cells: op.row };
  if ("delete" in op) return { kind: "delete", cells: {} };
  return before?.kind === "delete" ? before : { kind: "update", ...before, cells: { ...before?.cells, ...op.set } };
}

/** What is known of a row after an effect. */
export function changed(
  held: KnownRow | undefined, { kind, cells }: RowEffect, columns: { readonly [name: string]: { readonly type: ColumnLayout["type"] } },
): KnownRow {
  const known: KnownRow = new Map(kind === "insert" ? [] : held);
  for (const [name, { type }] of Object.entries(columns)) {
    const given = cellOf(cells, name);
    if (kind === "update" && given === undefined) continue;
    const value = canonical(given, type);
    // A value in a form of its own is shown as it was given, until the server says how it writes it.
    known.set(name, value === UNKNOWN ? (given as Value) : value);
  }
  return known;
}
