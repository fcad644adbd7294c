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
  type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;
  const exact: Reviver = (_, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context!.source!) : value;
  return JSON.parse(text, exact as Parameters<typeof JSON.parse>[1]);
}

/** Writes JSON, bigints as the numbers that they are. */
export function stringified(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return `[${value.map(stringified).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${stringified(member)}`).join()}}`;
}
