// Queries built from a schema: each call gives a new query, typed by what it shows.

import { stringify } from "../wire/codec.js";
import type { QuerySource } from "../wire/messages.js";
import type { Aggregate, LocalQuery, OrderBy, QueryAst, Related, TableSchema } from "./ast.js";
import { termsOf, type Condition, type Terms } from "./condition.js";
import type { Query, ROW } from "./query.js";
import type { Columns, GivenOf, Shows, Table } from "./schema.js";

declare const VALUE: unique symbol;

/** An aggregate that gives a `T`. */
export interface AggregateOf<T> extends Aggregate {
  readonly [VALUE]?: T;
}

/** How many rows, or how many values of a column that are not NULL. */
export const count = (col?: string): AggregateOf<number> => (col === undefined ? { op: "count" } : { op: "count", col });
/** The sum of a column: of `int8` and `numeric` a text, of `float8` a number; NULL of no rows. */
export const sum = <T = string>(col: string): AggregateOf<T | null> => ({ op: "sum", col });
/** The mean of a column, in the type of its sum. */
export const avg = <T = string>(col: string): AggregateOf<T | null> => ({ op: "avg", col });
/** The least value of a column. */
export const min = <T = unknown>(col: string): AggregateOf<T | null> => ({ op: "min", col });
/** The greatest value of a column. */
export const max = <T = unknown>(col: string): AggregateOf<T | null> => ({ op: "max", col });

type AggregateValue<A> = A extends { readonly [VALUE]?: infer T } ? Exclude<T, undefined> : never;

/** Pairs of own column and related column that must be equal. */
export type On<Own extends Columns, Other extends Columns> = { readonly [N in keyof Own]?: keyof Other & string };
type Direction = "asc" | "desc";
type Nulls = "nulls first" | "nulls last";
type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=" | "like" | "ilike";
// The intersection has editors show the members in the place of the alias.
type Simplify<T> = { readonly [N in keyof T]: T[N] } & {};

/** Not a value: nothing equals NULL, ask with `where((c) => isNull(c.column))`. */
interface UseIsNull {
  readonly [VALUE]: never;
}
type NoNull<Given> = null extends Given ? UseIsNull : never;

/** A query of a table with columns `C`, whose rows are shown as `Row`. */
export class QueryBuilder<C extends Columns, Row> implements Query<Row> {
  declare readonly [ROW]?: Row;

  /** Called by `from`. */
  constructor(
    readonly table: TableSchema & { readonly columns: C },
    /** The query in its JSON form. */
    readonly ast: QueryAst,
    readonly tables: ReadonlyMap<string, TableSchema>,
    readonly parameters: { readonly [name: string]: unknown } | undefined = undefined,
  ) {}

  get source(): QuerySource {
    // A bigint is encoded as a number, and members that are undefined do not travel.
    const query = this.ast as never;
    return this.parameters ? { query, args: this.parameters } : { query };
  }

  get key(): string {
    return stringify(this.source);
  }

  get local(): LocalQuery {
    return { ast: this.ast, tables: this.tables };
  }

  /** Only rows that meet the condition, and those of earlier calls. */
  where(condition: (columns: Terms<C>) => Condition): QueryBuilder<C, Row>;
  where<N extends keyof C & string>(column: N, value: NonNullable<GivenOf<C[N]>> | NoNull<GivenOf<C[N]>>): QueryBuilder<C, Row>;
  where<N extends keyof C & string>(column: N, op: Comparison, value: NonNullable<GivenOf<C[N]>> | NoNull<GivenOf<C[N]>>): QueryBuilder<C, Row>;
  where(first: string | ((columns: Terms<C>) => Condition), ...rest: readonly unknown[]): QueryBuilder<C, Row> {
    const [op, value] = rest.length > 1 ? rest : ["=", rest[0]];
    const added =
      typeof first === "function"
        ? first(termsOf(this.table.columns)).expression
        : { op: op as string, args: [{ col: first }, value as never] };
    const where = this.ast.where === undefined ? added : { op: "and", args: [this.ast.where, added] };
    return this.#with({ where });
  }

  /** Shows only these columns. */
  select<N extends keyof C & string>(...columns: readonly N[]): QueryBuilder<C, Simplify<Pick<Shows<C>, N> & Omit<Row, keyof C>>> {
    return this.#with({ select: columns });
  }

  /** Orders by a column, after those of earlier calls; the key breaks ties. */
  orderBy(column: (keyof C & string) | (keyof Row & string), direction: Direction = "asc", nulls?: Nulls): QueryBuilder<C, Row> {
    const term: OrderBy = nulls ? [column, direction, nulls] : [column, direction];
    return this.#with({ order_by: [...(this.ast.order_by ?? []), term] });
  }

  /** At most so many rows; below another query, for each of its rows. */
  limit(rows: number): QueryBuilder<C, Row> {
    return this.#with({ limit: rows });
  }

  /** Only rows after these values of a prefix of the order's columns. */
  startAfter(values: { readonly [N in keyof C]?: GivenOf<C[N]> }): QueryBuilder<C, Row> {
    return this.#with({ start: { after: values } });
  }

  /** As `startAfter`, rows equal to the values included. */
  startAt(values: { readonly [N in keyof C]?: GivenOf<C[N]> }): QueryBuilder<C, Row> {
    return this.#with({ start: { at: values } });
  }

  /** Shows, under `as`, the rows of another query that agree on columns: `{ id: "issue_id" }`. */
  related<As extends string, D extends Columns, Other>(
    as: As, query: QueryBuilder<D, Other>, on: On<C, D>,
  ): QueryBuilder<C, Simplify<Row & { readonly [N in As]: readonly Other[] }>> {
    return this.#related(as, query, on);
  }

  /** Shows, under `as`, the first such row or null. */
  relatedOne<As extends string, D extends Columns, Other>(
    as: As, query: QueryBuilder<D, Other>, on: On<C, D>,
  ): QueryBuilder<C, Simplify<Row & { readonly [N in As]: Other | null }>> {
    return this.#related(as, query, on, { one: true });
  }

  /** Shows, under `as`, a value computed of such rows. */
  relatedValue<As extends string, D extends Columns, A extends Aggregate>(
    as: As, aggregate: A, query: QueryBuilder<D, any>, on: On<C, D>,
  ): QueryBuilder<C, Simplify<Row & { readonly [N in As]: AggregateValue<A> }>> {
    return this.#related(as, query, on, { aggregate });
  }

  /** Shows groups of rows instead of the rows: the columns they agree on, and values computed of each. */
  groupBy<N extends keyof C & string, A extends { readonly [as: string]: Aggregate }>(
    columns: readonly N[], aggregates: A,
  ): QueryBuilder<C, Simplify<Pick<Shows<C>, N> & { readonly [As in keyof A]: AggregateValue<A[As]> }>> {
    return this.#with({
      group_by: columns,
      aggregates: Object.entries(aggregates).map(([as, aggregate]) => ({ as, ...aggregate })),
    });
  }

  /** The values of the query's parameters. */
  args(parameters: { readonly [name: string]: unknown }): QueryBuilder<C, Row> {
    return this.#with({}, this.tables, { ...this.parameters, ...parameters });
  }

  #related<Shown>(
    as: string, query: QueryBuilder<any, any>, on: { readonly [own: string]: string | undefined }, how: Pick<Related, "one" | "aggregate"> = {},
  ): QueryBuilder<C, Shown> {
    const added: Related = { as, on: Object.entries(on) as [string, string][], ...how, query: query.ast };
    return this.#with({ related: [...(this.ast.related ?? []), added] }, new Map([...this.tables, ...query.tables]));
  }

  #with<Shown>(members: Partial<QueryAst>, tables = this.tables, parameters = this.parameters): QueryBuilder<C, Shown> {
    return new QueryBuilder(this.table, { ...this.ast, ...members }, tables, parameters);
  }
}

/** A query of all rows of a table. */
export function from<Name extends string, C extends Columns, Key extends keyof C & string>(
  table: Table<Name, C, Key>,
): QueryBuilder<C, Shows<C>> {
  return new QueryBuilder(table, { table: table.name }, new Map([[table.name, table]]));
}
