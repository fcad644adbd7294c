// Queries in their JSON form, as docs/query.md describes it.

import type { ColumnType, Json } from "../wire/value.js";

/** A literal, a column, a parameter, an operation or a test for rows. */
export type Expression =
  | Json
  | bigint
  | { readonly col: string }
  | { readonly param: string }
  | { readonly op: string; readonly args: readonly Expression[] }
  | { readonly exists: { readonly query: QueryAst; readonly on: readonly (readonly [string, string])[] } };

/** An order column with its direction and where NULLs stand. */
export type OrderBy = readonly [string, ("asc" | "desc")?, ("nulls first" | "nulls last")?];

/** An aggregate of rows. */
export interface Aggregate {
  readonly op: "count" | "sum" | "avg" | "min" | "max";
  readonly col?: string;
}

/** Where a result begins: values for a prefix of the order's columns. */
export type Start = { readonly after: StartValues } | { readonly at: StartValues };
type StartValues = { readonly [column: string]: unknown };

/** Rows, or a value computed of them, below each row. */
export interface Related {
  readonly as: string;
  readonly on: readonly (readonly [string, string])[];
  readonly one?: true;
  readonly aggregate?: Aggregate;
  readonly query: QueryAst;
}

/** A query. */
export interface QueryAst {
  readonly table: string;
  readonly where?: Expression;
  readonly select?: readonly string[];
  readonly order_by?: readonly OrderBy[];
  readonly limit?: number;
  readonly start?: Start;
  readonly related?: readonly Related[];
  readonly group_by?: readonly string[];
  readonly aggregates?: readonly (Aggregate & { readonly as: string })[];
}

/** What a query needs to know of a table. */
export interface TableSchema {
  readonly name: string;
  readonly columns: { readonly [name: string]: ColumnSchema };
  readonly key: readonly string[];
}

/** A column of a table. */
export interface ColumnSchema {
  readonly type: ColumnType;
  readonly nullable: boolean;
  /** Whether an int8 is shown as a bigint always, rather than as a number while that is exact. */
  readonly bigint: boolean;
  /** What a new row holds that does not say otherwise; undefined for none. */
  readonly defaultValue: unknown;
}

/** A query with the schema of the tables that it reads: what evaluating it here takes. */
export interface LocalQuery {
  readonly ast: QueryAst;
  readonly tables: ReadonlyMap<string, TableSchema>;
}
