// Tables and their columns, declared once, so that queries and mutations are typed.

import type { ColumnType, Json } from "../wire/value.js";
import type { ColumnSchema, TableSchema } from "./ast.js";

declare const SHOWN: unique symbol;
declare const GIVEN: unique symbol;
declare const OMITTED: unique symbol;

/**
 * A column that shows a `Shown` and is given a `Given` in conditions and mutations; `Omitted` is whether a new row can
 * go without it.
 */
export interface Column<Shown = unknown, Given = Shown, Omitted extends boolean = boolean> extends ColumnSchema {
  readonly [SHOWN]?: Shown;
  readonly [GIVEN]?: Given;
  readonly [OMITTED]?: Omitted;
  /** The same column, which may hold NULL. */
  orNull(): Column<Shown | null, Given | null, true>;
  /** The same column, which holds this value in new rows that do not say otherwise. */
  default(value: Given): Column<Shown, Given, true>;
}

/** Columns by name. */
export type Columns = { readonly [name: string]: Column };

/** A table of the schema. */
export interface Table<Name extends string = string, C extends Columns = Columns, Key extends keyof C & string = keyof C & string>
  extends TableSchema {
  readonly name: Name;
  readonly columns: C;
  readonly key: readonly Key[];
}

/** What a column shows. */
export type ShownOf<C> = C extends { readonly [SHOWN]?: infer Shown } ? Exclude<Shown, undefined> : never;
/** What a column is given. */
export type GivenOf<C> = C extends { readonly [GIVEN]?: infer Given } ? Exclude<Given, undefined> : never;
/** A row of all these columns. The intersection has editors show the members in the place of the alias. */
export type Shows<C extends Columns> = { readonly [N in keyof C]: ShownOf<C[N]> } & {};
/** A row with all its columns, as a query shows it. */
export type RowOf<T extends Table> = Shows<T["columns"]>;
/** The key columns' values. */
export type KeyOf<T extends Table> = { readonly [N in T["key"][number]]: GivenOf<T["columns"][N]> };

type Omissible<C extends Columns> = { [N in keyof C]: C[N] extends { readonly [OMITTED]?: true } ? N : never }[keyof C];
/** A row to insert: columns that have a default or may be NULL can be left out. */
export type NewRow<T extends Table> =
  & { readonly [N in Exclude<keyof T["columns"], Omissible<T["columns"]>>]: GivenOf<T["columns"][N]> }
  & { readonly [N in Omissible<T["columns"]>]?: GivenOf<T["columns"][N]> };
/** New values for columns that are not of the key. */
export type NewValues<T extends Table> = {
  readonly [N in Exclude<keyof T["columns"], T["key"][number]>]?: GivenOf<T["columns"][N]>;
};

/**
 * Declares a table.
 *
 * @throws {TypeError} when the key is empty or names no column.
 */
export function table<Name extends string, C extends Columns, Key extends keyof C & string>(
  name: Name,
  columns: C,
  { key }: { readonly key: readonly Key[] },
): Table<Name, C, Key> {
  const missing = key.find((column) => !Object.hasOwn(columns, column));
  if (key.length === 0 || missing !== undefined) {
    throw new TypeError(`table ${name} has no key column ${missing ?? "at all"}`);
  }
  return { name, columns, key };
}

function column<Shown, Given = Shown, Omitted extends boolean = false>(
  type: ColumnType, schema: Partial<ColumnSchema> = {},
): Column<Shown, Given, Omitted> {
  const whole = { type, nullable: false, bigint: false, defaultValue: undefined, ...schema };
  return {
    ...whole,
    orNull: () => column<Shown | null, Given | null, true>(type, { ...whole, nullable: true }),
    default: (value) => column<Shown, Given, true>(type, { ...whole, defaultValue: value }),
  };
}

/** True or false. */
export const bool = (): Column<boolean, boolean, false> => column("bool");

/**
 * A whole number of 64 bits. Shown as a number, and beyond 2^53 as a bigint, so that no digit is lost; with
 * `bigint: true` as a bigint always.
 */
export function int8(): Column<number, number | bigint, false>;
export function int8(options: { readonly bigint: true }): Column<bigint, number | bigint, false>;
export function int8({ bigint }: { readonly bigint?: true } = {}): Column<any, number | bigint, false> {
  return column("int8", { bigint: bigint ?? false });
}

/** A double. */
export const float8 = (): Column<number, number, false> => column("float8");
/** A text; `T` narrows it to certain ones. */
export const text = <T extends string = string>(): Column<T, T, false> => column("text");
/** Bytes, in base64. */
export const bytea = (): Column<string, string, false> => column("bytea");
/** A moment, as RFC 3339 in UTC with up to six decimals. */
export const timestamptz = (): Column<string, string, false> => column("timestamptz");
/** A day, as `2013-02-04`. */
export const date = (): Column<string, string, false> => column("date");
/** A UUID with hyphens. */
export const uuid = (): Column<string, string, false> => column("uuid");
/** An exact decimal, as text. */
export const numeric = (): Column<string, string | number, false> => column("numeric");
/** A JSON document; `T` says what it holds. */
export const json = <T = Json>(): Column<T, T, false> => column("json");
