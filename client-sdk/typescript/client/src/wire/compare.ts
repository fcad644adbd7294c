// The one comparator: how values compare in orders, keys, correlations and conditions. It is PostgreSQL's, as the
// server's.

import { compareDecimals, decimalOf, normalText, simple } from "./decimal.js";
import { utf8Length, type ColumnType, type Json, type Value } from "./value.js";

/** Compares two values that are not NULL: negative, 0 or positive. */
export type Comparator = (a: never, b: never) => number;

/** Numbers that JavaScript compares exactly, also an integer with a double; NaN is the greatest. */
const numbers = (a: number | bigint, b: number | bigint): number => simple(a, b) || Number(a !== a) - Number(b !== b);

/** Compares texts by their first units that differ, in the order that `rank` gives. */
const byUnits = (rank: (unit: number) => number) => (a: string, b: string): number => {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
};

/** By code point, which is the order of UTF-8's bytes; UTF-16's has surrogates before U+E000. */
const text = byUnits((unit) => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit));

const numeric = (a: number | bigint | string, b: number | bigint | string): number =>
  compareDecimals(decimalOf(a), decimalOf(b));

const RANK: Record<string, number> = { string: 1, number: 2, boolean: 3 };

function rankOf(json: Json): number {
  if (json === null) return 0;
  if (Array.isArray(json)) return 4;
  return RANK[typeof json] ?? 5;
}

const isEmptyList = (json: Json): boolean => Array.isArray(json) && json.length === 0;

/** The order of `jsonb`, in which an empty list is the least document. */
const documents = (a: Json, b: Json): number => Number(isEmptyList(b)) - Number(isEmptyList(a)) || nested(a, b);

function nested(a: Json, b: Json): number {
  const rank = rankOf(a) - rankOf(b);
  if (rank !== 0 || a === null || b === null) return rank;
  if (typeof a === "string") return text(a, b as string);
  if (typeof a !== "object") return simple(a, b as number);
  if (Array.isArray(a)) {
    const [left, right] = [a as Json[], b as Json[]];
    return left.length - right.length || firstDifference(left, right, nested);
  }
  const [left, right] = [members(a as object), members(b as object)];
  return left.length - right.length || firstDifference(left, right, ([m, v], [n, w]) => shortLex(m, n) || nested(v, w));
}

/** By length in UTF-8's bytes. */
const shortLex = (a: string, b: string): number => utf8Length(a) - utf8Length(b) || text(a, b);

const members = (object: object): [string, Json][] =>
  Object.entries(object as { [name: string]: Json }).sort(([a], [b]) => shortLex(a, b));

function firstDifference<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): number {
  for (let i = 0; i < a.length; i += 1) {
    const difference = compare(a[i]!, b[i]!);
    if (difference !== 0) return difference;
  }
  return 0;
}

// Without the Z a fraction stands after the whole second that it belongs to.
const timestamps = (a: string, b: string): number => simple(a.slice(0, -1), b.slice(0, -1));
/** Base64's digits are letters, figures, `+` and `/`, in this order; `=` stands where one text of bytes has ended. */
const bytes = byUnits((unit) => (unit === 0x3d ? 0 : unit < 0x30 ? unit + 0x100 : unit < 0x3a ? unit + 0x80 : unit));

const OF_TYPE: Record<ColumnType, (a: never, b: never) => number> = {
  bool: simple,
  int8: simple,
  float8: numbers,
  text,
  bytea: bytes,
  timestamptz: timestamps,
  date: simple,
  uuid: simple,
  numeric,
  json: documents,
};

/** The comparator of a type. */
export function comparatorOf(type: ColumnType): Comparator {
  return OF_TYPE[type];
}

const isNumber = (type: ColumnType): boolean => type === "int8" || type === "float8" || type === "numeric";
const isTime = (type: ColumnType): boolean => type === "date" || type === "timestamptz";
/** A moment, or the one at which a day begins. */
const moment = (time: string): string => (time.includes("T") ? time : `${time}T00:00:00Z`);

/** The comparator of values of two types; undefined when such values do not compare. */
export function comparatorOfTypes(a: ColumnType, b: ColumnType): Comparator | undefined {
  if (a === b) return OF_TYPE[a];
  if (isNumber(a) && isNumber(b)) {
    if (a !== "numeric" && b !== "numeric") return numbers;
    // As in PostgreSQL, a numeric beside a double becomes one.
    return a === "float8" || b === "float8" ? (x: number, y: number) => numbers(Number(x), Number(y)) : numeric;
  }
  return isTime(a) && isTime(b) ? (x: string, y: string) => timestamps(moment(x), moment(y)) : undefined;
}

/** What makes equal values the same map key; undefined when values of the two types are never equal. */
export function tieOfTypes(own: ColumnType, other: ColumnType): ((value: never) => Value) | undefined {
  if (own === other) return (value: Value) => oneForm(value, own);
  if (isNumber(own) && isNumber(other)) return (value: number | bigint | string) => normalText(decimalOf(value));
  return isTime(own) && isTime(other) ? moment : undefined;
}

/** A value in the one form of all that equal it. */
export const oneForm = (value: Value, type: ColumnType): Value => (value === null ? null : (SAME[type]?.(value as never) ?? value));

/** Where equal values of one type can be written differently. */
const SAME: Partial<Record<ColumnType, (value: never) => Value>> = {
  numeric: (value: string) => normalText(decimalOf(value)),
  json: (value: Json) => JSON.stringify(sorted(value)),
};

function sorted(json: Json): Json {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(sorted);
  return Object.fromEntries(members(json).map(([name, value]) => [name, sorted(value)]));
}

/** A map's key of one or several values: the same exactly when all are the same. */
export function mapKey(values: readonly Value[]): string | number | bigint | boolean {
  const only = values[0]!;
  if (values.length === 1 && only !== null && typeof only !== "object") return only;
  // Infinities and NaN would be null, and bigints fail; a column has one type, so strings cannot be mistaken. No text
  // begins with U+0000.
  const plain = (value: Value): Value =>
    typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;
  return `\0${JSON.stringify(values.map(plain))}`;
}

/** A row's or group's key in a map. */
export type MapKey = ReturnType<typeof mapKey>;
