// Conditions and other expressions of queries, typed by the columns that they speak of.

import type { Expression } from "./ast.js";
import type { QueryBuilder } from "./builder.js";
import type { Columns, GivenOf } from "./schema.js";

declare const TYPE: unique symbol;

/** An expression that takes and gives values of type `T`. */
export interface Term<T> {
  readonly expression: Expression;
  readonly [TYPE]?: T;
}

/** A condition. */
export type Condition = Term<boolean>;

/** The columns of a table, as terms. */
export type Terms<C extends Columns> = { readonly [N in keyof C]: Term<GivenOf<C[N]>> };

/** A term or a literal. */
export type Operand<T> = Term<T | null> | NonNullable<T>;

const term = <T>(expression: Expression): Term<T> => ({ expression });
const isTerm = (value: unknown): value is Term<unknown> => typeof value === "object" && value !== null && "expression" in value;
const expressionOf = (operand: unknown): Expression => (isTerm(operand) ? operand.expression : (operand as Expression));

const operation = <T>(op: string, args: readonly unknown[]): Term<T> => term({ op, args: args.map(expressionOf) });

const comparison =
  (op: string) =>
  <T>(left: Term<T>, right: Operand<NoInfer<T>>): Condition =>
    operation(op, [left, right]);

/** `left = right`; unknown, and so not met, where either is NULL. */
export const eq = comparison("=");
/** `left <> right`. */
export const ne = comparison("<>");
/** `left < right`. */
export const lt = comparison("<");
/** `left <= right`. */
export const lte = comparison("<=");
/** `left > right`. */
export const gt = comparison(">");
/** `left >= right`. */
export const gte = comparison(">=");
/** As `ne`, with NULL as a value like any other. */
export const distinctFrom = comparison("is distinct from") as <T>(left: Term<T>, right: Operand<NoInfer<T>> | null) => Condition;
/** `low <= value and value <= high`. */
export const between = <T>(value: Term<T>, low: Operand<NoInfer<T>>, high: Operand<NoInfer<T>>): Condition =>
  operation("between", [value, low, high]);
/** Whether the value is one of the members, or of a parameter that is a list. */
export const isIn = <T>(value: Term<T>, members: readonly NonNullable<NoInfer<T>>[] | Term<readonly NoInfer<T>[]>): Condition =>
  operation("in", Array.isArray(members) ? [value, ...(members as readonly unknown[])] : [value, members]);
/** Whether the value is NULL. */
export const isNull = (value: Term<any>): Condition => operation("is null", [value]);
/** Whether the value is not NULL. */
export const isNotNull = (value: Term<any>): Condition => operation("is not null", [value]);
/** Whether a text matches a pattern of `%` and `_`. */
export const like: (value: Term<any>, pattern: string | Term<string>) => Condition = comparison("like");
/** As `like`, whatever the case of letters. */
export const ilike: typeof like = comparison("ilike");
/** Whether all conditions are met. */
export const and = (...conditions: readonly Condition[]): Condition => operation("and", conditions);
/** Whether one of the conditions is met. */
export const or = (...conditions: readonly Condition[]): Condition => operation("or", conditions);
/** Whether the condition is false; where it is unknown, this is too. */
export const not = (condition: Condition): Condition => operation("not", [condition]);
/** Any operator or function of the query language. */
export const call = <T>(op: string, ...args: readonly unknown[]): Term<T> => operation(op, args);
/** The value of a parameter. */
export const param = <T = any>(name: string): Term<T> => term({ param: name });

/** Whether the query has a row whose columns equal the row's: `{ id: "issue_id" }` reads own column: its column. */
export const exists = <C extends Columns>(query: QueryBuilder<C, any>, on: { readonly [own: string]: keyof C & string }): Condition =>
  term({ exists: { query: query.ast, on: Object.entries(on) } });

/** The terms of columns. */
export const termsOf = <C extends Columns>(columns: C): Terms<C> =>
  Object.fromEntries(Object.keys(columns).map((col) => [col, term({ col })])) as Terms<C>;
