// Batches with their cells read by the layout, and their fold into one net change for each row.

import type { MapKey } from "../wire/compare.js";
import type { Op } from "../wire/messages.js";
import { readCell, type Codec, type Value } from "../wire/value.js";
import type { Entry } from "./group.js";
import { rowKey, type Row, type Shape } from "./shape.js";
import type { NetChange, ResultTree } from "./tree.js";
import { malformed, Violation } from "./violation.js";

/** A batch that waits for its release. */
export interface WaitingBatch {
  readonly cv: number;
  readonly ops: readonly RowStep[];
}

/** One operation with its row; `entry` is undefined for a remove. */
export interface RowStep {
  readonly kind: "+" | "~" | "-";
  readonly table: number;
  readonly key: MapKey;
  readonly entry: Entry | undefined;
}

/**
 * Reads an operation by the layout.
 *
 * @throws {Violation} with what does not fit the layout.
 */
export function readOp(op: Op, shape: Shape, codec: Codec): RowStep {
  const [kind, table] = op;
  const layout = shape.layout.tables[table];
  if (!layout) throw malformed(`an operation on table ${table}`);
  const read = (cells: unknown, columns: readonly number[]): Row => {
    if (!Array.isArray(cells) || cells.length !== columns.length) throw malformed(`a row of ${layout.name} with wrong cells`);
    return columns.map((column, index) => {
      const { name, type } = layout.columns[column]!;
      const value = readCell(cells[index], type, codec);
      if (value === undefined) throw malformed(`a row of ${layout.name} with ${name} that is no ${type}`);
      return value;
    });
  };
  if (kind === "-") {
    const row: Value[] = [];
    read(op[2], layout.key).forEach((value, index) => (row[layout.key[index]!] = value));
    return { kind, table, key: rowKey(row, layout), entry: undefined };
  }
  if (kind !== "+" && kind !== "~") throw malformed(`an operation ${String(kind)}`);
  const places = op[2];
  if (!(places > 0 && places < 2 ** 32) || places & ~shape.allowed[table]!) {
    throw malformed(`a row of ${layout.name} at places ${places}`);
  }
  const row = read(op[3], layout.columns.map((_, column) => column));
  const key = rowKey(row, layout);
  return { kind, table, key, entry: { key, row, places } };
}

/**
 * The net changes of a release's batches, each row once. With `base` they follow on it; without, they are a snapshot, and
 * `replaced` what it comes in the place of: the changes lead from that to exactly what was added.
 *
 * @throws {Violation} when an operation does not fit what is held.
 */
export function fold(
  sub: number, shape: Shape, batches: readonly WaitingBatch[], base: ResultTree | undefined, replaced: ResultTree | undefined,
): NetChange[] {
  const tables = shape.layout.tables.map(() => new Map<MapKey, NetChange>());
  for (const { ops } of batches) {
    for (const { kind, table, key, entry } of ops) {
      const rows = tables[table]!;
      const folded = rows.get(key);
      const held = (folded ? folded.new : base?.released(table, key)) !== undefined;
      if (held === (kind === "+")) {
        const what = `${kind} of a row of table ${table}, which is ${held ? "" : "not "}held`;
        throw new Violation("view_equals_fresh_query", `subscription ${sub}: ${what}`);
      }
      rows.set(key, { table, key, new: entry });
    }
  }
  return tables.flatMap((rows, table) => {
    const gone = replaced ? [...replaced.releasedRows(table)].filter(({ key }) => !rows.has(key)) : [];
    return [...rows.values(), ...gone.map(({ key }) => ({ table, key, new: undefined }))];
  });
}
