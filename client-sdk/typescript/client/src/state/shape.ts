// A layout made ready for building results: checked once, so that everything behind it can index without looking, and
// with the comparators and keys that the result tree is kept by.

import type { TableSchema } from "../query/ast.js";
import { comparatorOf, mapKey, oneForm, tieOfTypes, type MapKey } from "../wire/compare.js";
import type { Layout, OrderTerm, PlaceLayout, TableLayout } from "../wire/messages.js";
import type { Value } from "../wire/value.js";
import { malformed } from "./violation.js";

const PLACES_MAX = 32;

/** A row's cells, in the order of its table's columns. */
export type Row = readonly Value[];

/** The tables that the application declares; undefined where it declares none. */
export type Declared = ReadonlyMap<string, TableSchema> | undefined;

/** A row as it is shown: columns, and under their names the child places. */
export type Shown = Record<string, unknown>;

/** What stands under a row at one child place. */
export interface ChildShape {
  readonly place: number;
  readonly as: string;
  readonly one: boolean;
  /** What a place that shows a value shows without a row; undefined for other places. */
  readonly or: Value | undefined;
  /** The name under which the child's row has that value. */
  readonly valueName: string;
  /** The child's group that stands under a parent row; undefined when NULL keeps every row away. */
  readonly groupOf: (parent: Row) => MapKey | undefined;
}

/** One place of the tree. */
export interface PlaceShape {
  readonly layout: PlaceLayout;
  readonly table: TableLayout;
  readonly children: readonly ChildShape[];
  /** The group that a row belongs to here; undefined when NULL keeps it from every parent. */
  readonly groupOf: (row: Row) => MapKey | undefined;
  /** The place's order, ended by the key: 0 only for a row and itself. */
  readonly compare: (a: Row, b: Row) => number;
  /** Whether nothing that matters here differs. */
  readonly same: (a: Row, b: Row) => boolean;
  /** The columns of a row as an object; children are for the caller to add. */
  readonly show: (row: Row) => Shown;
}

/** A checked layout with what is derived from it. */
export interface Shape {
  readonly layout: Layout;
  readonly places: readonly PlaceShape[];
  /** For each table, the places that its rows may stand at, as a mask. */
  readonly allowed: readonly number[];
}

/** The group that all rows of the root belong to. */
export const ROOT_GROUP: MapKey = "";

/** The key of a row among its table's. */
export const rowKey = (row: Row, { key, columns }: TableLayout): MapKey =>
  mapKey(key.map((column) => oneForm(row[column]!, columns[column]!.type)));

/**
 * Checks a layout.
 *
 * @throws {Violation} with what is wrong, when an index points nowhere or the tree is not in preorder.
 */
export function shapeOf(layout: Layout, declared: Declared): Shape {
  check(layout);
  const places = layout.places.map((place, index) => placeShape(layout, place, index, declared));
  const allowed = layout.tables.map((_, table) =>
    layout.places.reduce((mask, place, index) => (place.table === table ? mask | (1 << index) : mask), 0),
  );
  return { layout, places, allowed };
}

function placeShape(layout: Layout, place: PlaceLayout, index: number, declared: Declared): PlaceShape {
  const table = layout.tables[place.table]!;
  const children = layout.places.flatMap((child, at): ChildShape[] => {
    if (child.parent !== index) return [];
    const childTable = layout.tables[child.table]!;
    return [
      {
        place: at,
        as: child.as ?? "",
        one: child.one,
        or: child.value?.or,
        valueName: childTable.columns[child.columns[0] ?? 0]!.name,
        groupOf: groupOf(layout, at, 0),
      },
    ];
  });
  const order: OrderTerm[] = [...place.order];
  for (const column of table.key) {
    if (!order.some(([ordered]) => ordered === column)) order.push([column, "asc", "nulls last"]);
  }
  const relevant = [...new Set([
    ...place.columns,
    ...place.on.map(([, column]) => column),
    ...order.map(([column]) => column),
    ...children.flatMap((child) => layout.places[child.place]!.on.map(([column]) => column)),
  ])];
  return {
    layout: place,
    table,
    children,
    groupOf: place.parent === null ? () => ROOT_GROUP : groupOf(layout, index, 1),
    compare: rowComparator(table, order),
    same: (a, b) => relevant.every((column) => sameValue(a[column]!, b[column]!)),
    show: shower(table, place, declared),
  };
}

/** Whether two values, or things that consist of values, look alike; zeros differ by their sign. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const members = Object.entries(a);
  return members.length === Object.keys(b).length && members.every(([name, member]) => sameValue(member, (b as Shown)[name]));
}

function rowComparator(table: TableLayout, order: readonly OrderTerm[]): (a: Row, b: Row) => number {
  const terms = order.map(([column, direction, nulls]) => ({
    column,
    sign: direction === "desc" ? -1 : 1,
    nullSign: nulls === "nulls first" ? -1 : 1,
    compare: comparatorOf(table.columns[column]!.type) as (a: Value, b: Value) => number,
  }));
  return (a, b) => {
    for (const { column, sign, nullSign, compare } of terms) {
      const x = a[column]!;
      const y = b[column]!;
      if (x === y) continue;
      if (x === null || y === null) return x === null ? nullSign : -nullSign;
      const difference = compare(x, y);
      if (difference !== 0) return sign * difference;
    }
    return 0;
  };
}

/** What ties a row to a group of a place: the child's side of `on` is 1, the parent's 0. */
function groupOf(layout: Layout, index: number, side: 0 | 1): (row: Row) => MapKey | undefined {
  const place = layout.places[index]!;
  const tables = [layout.tables[layout.places[place.parent!]!.table]!, layout.tables[place.table]!] as const;
  const ties = place.on.map((pair) => {
    const [own, other] = [pair[side], pair[1 - side]!];
    const tie = tieOfTypes(tables[side].columns[own]!.type, tables[1 - side]!.columns[other]!.type);
    return { column: own, tie: tie as ((value: Value) => Value) | undefined };
  });
  return (row) => {
    const values: Value[] = [];
    for (const { column, tie } of ties) {
      const value = row[column]!;
      if (value === null || tie === undefined) return undefined;
      values.push(tie(value));
    }
    return mapKey(values);
  };
}

function shower(table: TableLayout, place: PlaceLayout, declared: Declared): (row: Row) => Shown {
  const schema = declared?.get(table.name)?.columns;
  const columns = place.columns.map((column) => {
    const { name, type } = table.columns[column]!;
    return { column, name, widened: type === "int8" && schema?.[name]?.bigint };
  });
  return (row) => {
    const shown: Shown = {};
    for (const { column, name, widened } of columns) {
      const value = row[column]!;
      setMember(shown, name, widened && typeof value === "number" ? BigInt(value) : value);
    }
    return shown;
  };
}

/** Sets a member of any name; assigning to `__proto__` would set something else. */
export function setMember(object: Shown, name: string, value: unknown): void {
  if (name !== "__proto__") object[name] = value;
  else Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function check({ tables, places }: Layout): void {
  for (const table of tables) {
    if (table.key.length === 0) throw malformed(`table ${table.name} has no key`);
    within(table, table.key);
  }
  if (places.length === 0 || places.length > PLACES_MAX) throw malformed(`${places.length} places`);
  places.forEach(({ parent, table: index, columns, on, order, value }, at) => {
    const table = tables[index];
    const isWell = parent === null ? at === 0 && !value : parent >= 0 && parent < at && on.length > 0 && (!value || columns.length === 1);
    if (!table || !isWell) throw malformed(`place ${at} has no table, parent, tie or value`);
    within(table, [...columns, ...order.map(([column]) => column), ...on.map(([, column]) => column)]);
    if (parent !== null) within(tables[places[parent]!.table]!, on.map(([column]) => column));
  });
}

function within({ name, columns }: TableLayout, named: readonly number[]): void {
  const wrong = named.find((column) => !(column >= 0 && column < columns.length));
  if (wrong !== undefined) throw malformed(`table ${name} has no column ${wrong}`);
}
