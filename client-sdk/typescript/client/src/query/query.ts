// What a client can be asked to keep live: a query of the builder, SQL, or a named query of the server.

import type { QuerySource } from "../wire/messages.js";
import { stringify } from "../wire/codec.js";
import type { LocalQuery } from "./ast.js";

/** Carries the type of a query's rows; there is no such member. */
export declare const ROW: unique symbol;

/** A query whose result has rows of type `Row`. */
export interface Query<Row = unknown> {
  /** What the server is asked. */
  readonly source: QuerySource;
  /** The same for equal queries: they share one view. */
  readonly key: string;
  /** The query and the tables that it reads, when it can be evaluated here. */
  readonly local?: LocalQuery;
  readonly [ROW]?: Row;
}

/** The type of a query's rows. */
export type RowsOf<Q> = Q extends Query<infer Row> ? readonly Row[] : never;

/** A query that only the server can evaluate. */
export const remote = <Row>(source: QuerySource): Query<Row> => ({ source, key: stringify(source) });

/**
 * A query in SQL. Values in the template become parameters, so that no text is ever read as SQL.
 *
 *     sql<{ carrier: string; n: number }>`select carrier, count(*) as n from flights where origin = ${origin} group by carrier`
 */
export function sql<Row = Record<string, unknown>>(texts: TemplateStringsArray, ...values: readonly unknown[]): Query<Row> {
  const args = Object.fromEntries(values.map((value, index) => [`p${index + 1}`, value]));
  const text = texts.reduce((sofar, part, index) => `${sofar}:p${index}${part}`);
  return remote<Row>(values.length > 0 ? { sql: text, args } : { sql: text });
}

/** A query that is registered at the server, with the values of its parameters. */
export function named<Row = Record<string, unknown>, Args extends Record<string, unknown> = Record<string, never>>(
  name: string,
): (args?: Args) => Query<Row> {
  return (args) => remote<Row>(args ? { name, args } : { name });
}
