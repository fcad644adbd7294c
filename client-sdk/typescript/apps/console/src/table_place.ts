// Where the reader is in a table: the order of its rows, and the page. Kept in the address.

import type { TableColumn } from "./api.js";
import type { Row } from "./live.js";
import { parsed, stringified } from "./values.js";

/** Pages that can be turned: each adds its beginning to the address. */
export const PAGES_MAX = 100;

export interface TablePlace {
  /** The column to order by, where it is not the key's order. */
  readonly order: readonly [column: string, direction: "asc" | "desc"] | undefined;
  /**
   * After which rows this page and those before it begin, each as its values of the columns that make the order; the first
   * page begins at the beginning.
   */
  readonly starts: readonly (readonly unknown[])[];
}

/** The columns of the primary key, in its order. */
export const keyOf = (columns: readonly TableColumn[]): readonly string[] =>
  columns.filter((column) => column.key !== null).sort((a, b) => a.key! - b.key!).map((column) => column.name);

/** The columns that tell after which row a page begins. */
export const startColumns = ({ order }: Pick<TablePlace, "order">, columns: readonly TableColumn[]): readonly string[] => [
  ...new Set([...(order ? [order[0]] : []), ...keyOf(columns)]),
];

/** A row as the start of the page after it. Numbers that JSON lacks are written as the server reads them. */
export const startAfter = (row: Row, columns: readonly string[]): readonly unknown[] =>
  columns.map((column) => {
    const value = row[column];
    return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  });

/** Reads a place; what does not fit the table's columns counts for nothing. */
export function placeIn(params: URLSearchParams, columns: readonly TableColumn[]): TablePlace {
  const by = params.get("order");
  const order = by !== null && columns.some(({ name }) => name === by) ? ([by, params.has("desc") ? "desc" : "asc"] as const) : undefined;
  const width = startColumns({ order }, columns).length;
  const isStart = (start: unknown): start is readonly unknown[] => Array.isArray(start) && start.length === width;
  try {
    const starts = parsed(params.get("after") ?? "[]");
    if (Array.isArray(starts) && starts.length < PAGES_MAX && starts.every(isStart)) return { order, starts };
  } catch {
    // Not written by a console.
  }
  return { order, starts: [] };
}

/** Writes what `placeIn` reads. */
export function paramsOf({ order, starts }: TablePlace): Readonly<Record<string, string>> {
  return {
    ...(order && { order: order[0] }),
    ...(order?.[1] === "desc" && { desc: "" }),
    ...(starts.length > 0 && { after: stringified(starts) }),
  };
}
