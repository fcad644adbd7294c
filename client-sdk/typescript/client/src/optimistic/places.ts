// Where rows stand in a query, as far as rows that are held can tell.

import type { LocalQuery, QueryAst, Start } from "../query/ast.js";
import type { Entry } from "../state/group.js";
import type { PlaceShape, Shape } from "../state/shape.js";
import type { Overlay, ResultTree, RootChanges } from "../state/tree.js";
import { comparatorOf, type MapKey } from "../wire/compare.js";
import type { Value } from "../wire/value.js";
import { canonical, condition, nodesOf, UNKNOWN, type Known, type Scope } from "./evaluate.js";

/** The query at a place, with what it depends on. */
export interface LocalPlace {
  readonly ast: QueryAst;
  /** Whether the place shows a value computed of rows, which do not travel. */
  readonly aggregated: boolean;
  /** Columns that decide, beside `on` and order, whether a row stands here. */
  readonly decides: ReadonlySet<string>;
}

/** A query's places in preorder, as the server's layout has them. */
export function localPlaces(ast: QueryAst, aggregated = ast.group_by !== undefined): LocalPlace[] {
  const decides = new Set(Object.keys(startValues(ast.start)));
  for (const { col, exists } of nodesOf(ast.where)) {
    if (col !== undefined) decides.add(col);
    for (const [own] of exists?.on ?? []) decides.add(own);
  }
  const below = (ast.related ?? []).flatMap(({ query, aggregate }) => localPlaces(query, aggregate !== undefined));
  return [{ ast, aggregated, decides }, ...below];
}

/** Tables whose rows decide, without standing anywhere, what is shown at places. */
export function hiddenTables(places: readonly LocalPlace[]): string[] {
  return places.flatMap(({ ast, aggregated }) => {
    const asked = [...nodesOf(ast.where)].flatMap(({ exists }) => (exists ? hiddenTables(localPlaces(exists.query, true)) : []));
    return aggregated ? [ast.table, ...asked] : asked;
  });
}

/** Whether a row meets a place's condition and start; its parents and the limit are another matter. */
export function passes(
  place: LocalPlace, shape: PlaceShape, local: LocalQuery, args: Scope["args"], value: (column: string) => Known,
): boolean | typeof UNKNOWN {
  const columns = local.tables.get(place.ast.table)?.columns;
  const scope: Scope = { type: (column) => columns?.[column]?.type, value, args };
  const met = place.ast.where === undefined ? true : condition(place.ast.where, scope);
  if (met === UNKNOWN) return UNKNOWN;
  return met === true && place.ast.start ? begins(place.ast.start, shape, value) : met === true;
}

/** Whether a row stands behind where the result begins. */
function begins(start: Start, { layout, table }: PlaceShape, value: (column: string) => Known): boolean | typeof UNKNOWN {
  const from = startValues(start);
  for (const [column, direction, nulls] of layout.order) {
    const { name, type } = table.columns[column]!;
    if (!Object.hasOwn(from, name)) break;
    const a = value(name);
    const b = canonical(from[name], type);
    if (a === UNKNOWN || b === UNKNOWN) return UNKNOWN;
    if (a === null || b === null) {
      if (a !== b) return (a === null) !== (nulls === "nulls first");
      continue;
    }
    const sign = (comparatorOf(type) as (a: Value, b: Value) => number)(a, b);
    if (sign !== 0) return sign > 0 === (direction === "asc");
  }
  return "at" in start;
}

const startValues = (start: Start | undefined): { readonly [column: string]: unknown } =>
  start === undefined ? {} : "at" in start ? start.at : start.after;

/**
 * Lays rows over a tree, and takes from limited places what the limit cuts off; the overlay is given what it takes.
 * Tells whether some limited place lacks rows that only the server knows.
 */
export function layOver(
  tree: ResultTree, overlay: Overlay, places: readonly LocalPlace[], changes: RootChanges,
): boolean {
  const limited = places.flatMap(({ ast }, place) => {
    const limit = tree.shape.places[place]!.layout.one ? 1 : ast.limit;
    return limit === undefined ? [] : [{ place, limit, groups: releasedGroups(tree, overlay, place) }];
  });
  tree.overlay(overlay, changes);
  let cut = false;
  let short = false;
  for (const { place, limit, groups } of limited) {
    const { compare, layout } = tree.shape.places[place]!;
    for (const [key, released] of groups) {
      const entries = tree.group(place, key)?.entries ?? [];
      if (released.length >= limit && limit > 0) {
        // Behind the last row of a full group the server may have others that this client does not know.
        const edge = released.reduce((last, { row }) => (compare(row, last) > 0 ? row : last), released[0]!.row);
        short ||= entries.filter(({ row }) => compare(row, edge) <= 0).length < limit;
      }
      for (const entry of entries.slice(limit)) {
        cut = true;
        const left = entry.places & ~(1 << place);
        overlay[layout.table]!.set(entry.key, left === 0 ? undefined : { ...entry, places: left });
      }
    }
  }
  if (cut) tree.overlay(overlay, changes);
  return short;
}

/** The released rows of those groups of a place that an overlay touches. */
function releasedGroups(tree: ResultTree, overlay: Overlay, place: number): Map<MapKey, Entry[]> {
  const { groupOf, layout } = tree.shape.places[place]!;
  const groups = new Map<MapKey, Entry[]>();
  const groupHere = (entry: Entry | undefined): MapKey | undefined =>
    entry && entry.places & (1 << place) ? groupOf(entry.row) : undefined;
  for (const [key, entry] of overlay[layout.table]!) {
    for (const group of [groupHere(entry), groupHere(tree.released(layout.table, key))]) {
      if (group !== undefined) groups.set(group, []);
    }
  }
  if (groups.size === 0) return groups;
  for (const entry of tree.releasedRows(layout.table)) {
    const group = groupHere(entry);
    if (group !== undefined) groups.get(group)?.push(entry);
  }
  return groups;
}

/** Whether a layout is that of the query: the same tables at the same places. */
export function fits(shape: Shape, places: readonly LocalPlace[]): boolean {
  return (
    shape.places.length === places.length &&
    shape.places.every(({ table }, index) => places[index]!.aggregated || table.name === places[index]!.ast.table)
  );
}
