// Values as people type them, and JSON that loses no digit of a whole number.

/** Types whose values are written as JSON strings. */
const WRITTEN_AS_STRING = new Set(["text", "bytea", "timestamptz", "date", "uuid", "numeric"]);

/**
 * What was typed for parameters, as values: JSON where it is some, otherwise the text itself. For a type whose values are
 * strings, `7` is the text "7". What is left empty has no value.
 */
export function valuesOf(texts: Readonly<Record<string, string>>, types: Readonly<Record<string, string>> = {}): Record<string, unknown> {
  const typed = Object.entries(texts).filter(([, text]) => text !== "");
  return Object.fromEntries(typed.map(([name, text]) => [name, valueOf(text, WRITTEN_AS_STRING.has(types[name] ?? ""))]));
}

/** Writes values as people would type them where no type is declared: what `valuesOf` reads. */
export function textsOf(values: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, textOf(value)]));
}

function textOf(value: unknown): string {
  const isPlain = typeof value === "string" && value !== "" && valueOf(value, false) === value;
  return isPlain ? value : stringified(value);
}

function valueOf(text: string, isString: boolean): unknown {
  if (isString && !/^(\[.*\]|".*"|null)$/s.test(text)) return text;
  try {
    return parsed(text);
  } catch {
    return text;
  }
}

/**
 * Reads JSON, with whole numbers beyond 2^53 as bigints.
 *
 * @throws {SyntaxError} when it is none.
 */
export function parsed(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!/\d{16}/.test(text)) return value;
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
  const isLong = (token: string): boolean => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token));
  const marked = text.replace(tokens, (token) => (isLong(token) ? `"\\u0000n${token}"` : token));
  const unmarked = (_: string, member: unknown): unknown =>
    typeof member === "string" && member.startsWith(LONG) ? BigInt(member.slice(LONG.length)) : member;
  return JSON.parse(marked, unmarked);
}

/** What a long number is marked with while JSON is read: no text that is typed begins like this. */
const LONG = "\u0000n";

/** Writes JSON, bigints as the numbers that they are. */
export function stringified(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(stringified).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${stringified(member)}`).join()}}`;
}

/** Lines of pretty JSON are at most so long, characters, where they can be. */
const WIDTH = 80;

/** Writes JSON for people: what fits in a line stands in one. */
export function pretty(value: unknown, indent = ""): string {
  const short = spaced(value);
  if (typeof value !== "object" || value === null || indent.length + short.length <= WIDTH) return short;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((member) => inner + pretty(member, inner))
    : Object.entries(value).map(([name, member]) => `${inner}${JSON.stringify(name)}: ${pretty(member, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`;
}

/** JSON in one line, with room to breathe. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (typeof value !== "object" || value === null) return stringified(value);
  return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${spaced(member)}`).join(", ")}}`;
}
