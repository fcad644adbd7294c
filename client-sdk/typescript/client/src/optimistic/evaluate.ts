// Conditions over rows that are held, in three-valued logic, with a fourth value for what cannot be known here.

import { comparatorOf, comparatorOfTypes } from "../wire/compare.js";
import { int8Of, type ColumnType, type Value } from "../wire/value.js";
import type { Expression, QueryAst } from "../query/ast.js";

/** What cannot be known here. */
export const UNKNOWN = Symbol("unknown");
/** A value, or what cannot be known. */
export type Known = Value | typeof UNKNOWN;

/** What an expression may speak of. */
export interface Scope {
  /** A column's type; undefined when there is no such column. */
  type(column: string): ColumnType | undefined;
  /** A column's value. */
  value(column: string): Known;
  /** The parameters' values. */
  readonly args: { readonly [name: string]: unknown } | undefined;
}

/** An operand; a literal has the type of what it meets. */
interface Operand {
  readonly type: ColumnType | undefined;
  readonly value: unknown;
}

const CANONICAL: Partial<Record<ColumnType, RegExp>> = {
  timestamptz: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,5}[1-9])?Z$/,
  date: /^\d{4}-\d\d-\d\d$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  numeric: /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$|^NaN$|^-?Infinity$/i,
  bytea: /^[A-Za-z0-9+/]*={0,2}$/,
};

/** A value as it is given in conditions and mutations, in the one form in which values are held. */
export function canonical(value: unknown, type: ColumnType): Known {
  if (value === null || value === undefined) return null;
  if (type === "json") return value as Value;
  if (type === "int8" || type === "float8") {
    const number = typeof value === "string" ? Number(value) : value;
    if (typeof number === "bigint") return type === "int8" ? int8Of(number) : Number(number);
    return typeof number === "number" ? number : UNKNOWN;
  }
  if (type === "bool") return typeof value === "boolean" ? value : UNKNOWN;
  const text = type === "numeric" ? String(value) : value;
  return typeof text === "string" && (CANONICAL[type]?.test(text) ?? true) ? text : UNKNOWN;
}

/** The value of a condition: true, false, null for SQL's unknown, or [`UNKNOWN`]. */
export function condition(expression: Expression, scope: Scope): Truth {
  return truthOf(operand(expression, scope));
}

/** What is looked at of an expression's nodes. */
interface Node {
  readonly col?: string;
  readonly exists?: { readonly query: QueryAst; readonly on: readonly (readonly [string, string])[] };
  readonly args?: readonly Expression[];
}

/** An expression and all that it consists of, but not the queries in it. */
export function* nodesOf(expression: Expression | undefined): Iterable<Node> {
  if (typeof expression !== "object" || expression === null) return;
  yield expression as Node;
  for (const arg of (expression as Node).args ?? []) yield* nodesOf(arg);
}

const COMPARISONS: Record<string, (sign: number) => boolean> = {
  "=": (sign) => sign === 0,
  "<>": (sign) => sign !== 0,
  "!=": (sign) => sign !== 0,
  "<": (sign) => sign < 0,
  "<=": (sign) => sign <= 0,
  ">": (sign) => sign > 0,
  ">=": (sign) => sign >= 0,
};

type Truth = boolean | null | typeof UNKNOWN;
/** What is not there, or cannot be evaluated here. */
const NOTHING: Operand = { type: undefined, value: UNKNOWN };

function operation(op: string, args: readonly Expression[], scope: Scope): Truth {
  const name = op.toLowerCase();
  const operands = args.map((arg) => operand(arg, scope));
  const [first = NOTHING, second = NOTHING, third = NOTHING] = operands;
  const is = COMPARISONS[name];
  if (is) return compared(first, second, is);
  switch (name) {
    case "and":
      return all(operands.map(truthOf), false);
    case "or":
      return all(operands.map(truthOf), true);
    case "not":
      return negated(truthOf(first));
    case "between":
      return all([compared(first, second, COMPARISONS[">="]!), compared(first, third, COMPARISONS["<="]!)], false);
    case "in": {
      const members = operands.slice(1);
      const list = members.length === 1 && Array.isArray(second.value) ? second.value : undefined;
      const each = list ? list.map((member) => ({ type: undefined, value: member as unknown })) : members;
      return all(each.map((member) => compared(first, member, COMPARISONS["="]!)), true);
    }
    case "is null":
      return first.value === UNKNOWN ? UNKNOWN : first.value === null;
    case "is distinct from":
      if (first.value === UNKNOWN || second.value === UNKNOWN) return UNKNOWN;
      if (first.value === null || second.value === null) return first.value !== second.value;
      return compared(first, second, COMPARISONS["<>"]!);
    case "like":
    case "ilike":
      if (first.value === null || second.value === null) return null;
      if (typeof first.value !== "string" || typeof second.value !== "string") return UNKNOWN;
      return matches(first.value, second.value, name === "ilike");
    default:
      return name.startsWith("is not ") ? negated(operation(name.replace("not ", ""), args, scope)) : UNKNOWN;
  }
}

function operand(expression: Expression, scope: Scope): Operand {
  if (typeof expression !== "object" || expression === null) return { type: undefined, value: expression };
  if ("col" in expression) {
    const column = expression.col as string;
    return { type: scope.type(column), value: scope.value(column) };
  }
  if ("param" in expression) {
    const name = expression.param as string;
    // Claims of the token are known to the server alone.
    return { type: undefined, value: scope.args && Object.hasOwn(scope.args, name) ? scope.args[name] : UNKNOWN };
  }
  if ("op" in expression) {
    const value = operation(expression.op as string, expression.args as Expression[], scope);
    return { type: value === UNKNOWN ? undefined : "bool", value };
  }
  return NOTHING;
}

const truthOf = ({ value }: Operand): Truth => (typeof value === "boolean" || value === null ? value : UNKNOWN);

function compared(left: Operand, right: Operand, is: (sign: number) => boolean): Truth {
  const type = left.type ?? right.type;
  if (left.value === UNKNOWN || right.value === UNKNOWN || type === undefined) return UNKNOWN;
  const a = typed(left, type);
  const b = typed(right, type);
  if (a === null || b === null) return null;
  const compare = left.type && right.type ? comparatorOfTypes(left.type, right.type) : comparatorOf(type);
  return a === UNKNOWN || b === UNKNOWN || !compare ? UNKNOWN : is((compare as (a: Value, b: Value) => number)(a, b));
}

const typed = ({ type, value }: Operand, met: ColumnType): Known => (type ? (value as Value) : canonical(value, met));

/** A conjunction, in which false decides, or a disjunction, in which true does. */
function all(truths: readonly Truth[], decides: boolean): Truth {
  if (truths.includes(decides)) return decides;
  if (truths.includes(UNKNOWN)) return UNKNOWN;
  return truths.includes(null) ? null : !decides;
}

const negated = (truth: Truth): Truth => (typeof truth === "boolean" ? !truth : truth);

/** Whether a text is like a pattern; takes at most text × pattern steps. */
function matches(text: string, pattern: string, folded: boolean): boolean {
  // As the server folds: one character for one.
  const fold = (char: string): string => (folded ? [...char.toLowerCase()][0]! : char);
  const chars = Array.from(text, fold);
  const tokens = (pattern.match(/\\?[^]/gu) ?? []).map((part) => (part === "%" ? RUN : part === "_" ? ONE : fold([...part].pop()!)));
  let [token, char] = [0, 0];
  // The token behind the last run, and the character that it is tried at.
  let [behind, tried] = [0, 0];
  while (char < chars.length) {
    const wanted = tokens[token];
    if (wanted === RUN) {
      behind = token += 1;
      tried = char;
    } else if (wanted === ONE || wanted === chars[char]) {
      token += 1;
      char += 1;
    } else if (behind > 0) {
      // The run takes one character more.
      token = behind;
      char = tried += 1;
    } else {
      return false;
    }
  }
  return tokens.slice(token).every((left) => left === RUN);
}

/** What stands for any characters, and for one, among tokens of a pattern that are characters. */
const RUN = "%%";
const ONE = "__";
