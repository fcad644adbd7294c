// Answers a new query at once from rows that are held for others, until the server's result comes.

import type { LocalQuery, QueryAst } from "../query/ast.js";
import { shapeOf, type Shape } from "../state/shape.js";
import { ResultTree, type Overlay } from "../state/tree.js";
import type { MapKey } from "../wire/compare.js";
import type { Layout, OrderTerm, PlaceLayout, TableLayout } from "../wire/messages.js";
import type { Scope } from "./evaluate.js";
import type { HeldRows } from "./held.js";
import { wholeRow } from "./overlay.js";
import { layOver, localPlaces, passes } from "./places.js";

/** The result as far as held rows tell; undefined when they tell nothing, or the query computes values. */
export function answer(local: LocalQuery, args: Scope["args"], held: HeldRows): ResultTree | undefined {
  const places = localPlaces(local.ast);
  const shape = shapeHere(local);
  if (!shape || places.some(({ aggregated }) => aggregated)) return undefined;
  const overlay: Overlay = shape.layout.tables.map(() => new Map());
  const parents = places.map(() => new Set<MapKey>());
  places.forEach((place, at) => {
    const placeShape = shape.places[at]!;
    const { table, parent } = placeShape.layout;
    for (const [key, known] of held.rows(placeShape.table.name)) {
      if (passes(place, placeShape, local, args, (column) => known.get(column) ?? null) !== true) continue;
      const row = wholeRow(placeShape.table, known);
      if (!row) continue;
      const group = placeShape.groupOf(row);
      if (parent !== null && (group === undefined || !parents[at]!.has(group))) continue;
      overlay[table]!.set(key, { key, row, places: (overlay[table]!.get(key)?.places ?? 0) | (1 << at) });
      for (const child of placeShape.children) {
        const own = child.groupOf(row);
        if (own !== undefined) parents[child.place]!.add(own);
      }
    }
  });
  if (overlay.every((rows) => rows.size === 0)) return undefined;
  const tree = new ResultTree(shape);
  layOver(tree, overlay, places, new Map());
  tree.settle();
  return tree;
}

/** The shape of a query's result; undefined when it names a table or column that the schema does not have. */
function shapeHere(local: LocalQuery): Shape | undefined {
  try {
    return shapeOf(layoutOf(local), local.tables);
  } catch {
    return undefined;
  }
}

/** The layout that a query has; what is not there has the index -1. */
function layoutOf(local: LocalQuery): Layout {
  const tables: TableLayout[] = [];
  const places: PlaceLayout[] = [];
  const tableOf = (name: string): number => {
    const found = tables.findIndex((table) => table.name === name);
    const schema = local.tables.get(name);
    if (found >= 0 || !schema) return found;
    const names = Object.keys(schema.columns);
    const columns = names.map((column) => ({ name: column, type: schema.columns[column]!.type }));
    return tables.push({ name, columns, key: schema.key.map((column) => names.indexOf(column)) }) - 1;
  };
  const add = (ast: QueryAst, parent: number | null, as: string | null, on: readonly (readonly [string, string])[], one: boolean): void => {
    const table = tableOf(ast.table);
    const column = (index: number, name: string): number => tables[index]!.columns.findIndex((other) => other.name === name);
    const order = (ast.order_by ?? []).map(([name, direction = "asc", nulls = direction === "asc" ? "nulls last" : "nulls first"]): OrderTerm =>
      [column(table, name), direction, nulls]);
    const columns = ast.select?.map((name) => column(table, name)) ?? tables[table]!.columns.map((_, index) => index);
    const pairs = on.map(([p, c]) => [column(places[parent!]!.table, p), column(table, c)] as const);
    const at = places.push({ parent, as, table, columns, on: pairs, order, one }) - 1;
    for (const child of ast.related ?? []) add(child.query, at, child.as, child.on, child.one ?? false);
  };
  add(local.ast, null, null, [], false);
  return { tables, places };
}
