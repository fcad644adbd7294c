// A query as it is typed: SQL, or JSON where it begins with a brace.

import type { Json, QuerySource } from "@tidegate/client";
import { parsed } from "./values.js";

/** What of a text is at fault: from an offset up to another. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** A text that is no JSON though it begins like it. */
export class TextFault extends Error {
  constructor(
    message: string,
    readonly place: Place | undefined,
  ) {
    super(message);
  }
}

export const isJson = (text: string): boolean => text.trimStart().startsWith("{");

/**
 * What the server is asked.
 *
 * @throws {TextFault} when the text is broken JSON.
 */
export function sourceOf(text: string, args: Readonly<Record<string, unknown>>): QuerySource {
  const given = Object.keys(args).length > 0 ? { args } : {};
  if (!isJson(text)) return { sql: text, ...given };
  try {
    return { query: parsed(text) as Json, ...given };
  } catch (error) {
    const { message } = error as SyntaxError;
    // Browsers add the place in words of their own.
    throw new TextFault(`This is not JSON: ${message.replace(/ in JSON at position.*| at line \d+ column.*/, "")}`, syntaxPlace(text, message));
  }
}

/** The names of a query's parameters in their order; claims of the token are not given by hand. */
export function parametersOf(text: string): readonly string[] {
  const found = isJson(text)
    ? [...text.matchAll(/\{\s*"param"\s*:\s*"((?:[^"\\]|\\.)*)"\s*\}/g)]
    : [...text.replace(/'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*.*?\*\//gs, (quoted) => " ".repeat(quoted.length)).matchAll(/(?<![:\w]):([A-Za-z_]\w*)/g)];
  return [...new Set(found.map((match) => match[1]!))].filter((name) => !name.startsWith("auth."));
}

/** The place that an error of the server's names: `(line 2, column 7)` of SQL, `(at query.where.args[0])` of JSON. */
export function placeOf(text: string, message: string): Place | undefined {
  const spot = /\(line (\d+), column (\d+)\)/.exec(message);
  if (spot) return wordAt(text, offsetOf(text, Number(spot[1]), Number(spot[2])));
  const path = /\(at query([^)]*)\)/.exec(message);
  if (path && isJson(text)) return memberAt(text, path[1]!);
  if (/\bEOF$/.test(message)) return { start: text.trimEnd().length, end: text.length };
  return undefined;
}

/** The line that a place begins in, in three parts: before it, the place itself as far as the line goes, behind it. */
export function lineAt(text: string, { start, end }: Place): { readonly number: number; readonly parts: readonly [string, string, string] } {
  const begin = text.lastIndexOf("\n", start - 1) + 1;
  const newline = text.indexOf("\n", start);
  const stop = newline < 0 ? text.length : newline;
  const to = Math.min(end, stop);
  return {
    number: text.slice(0, begin).split("\n").length,
    parts: [text.slice(begin, start), text.slice(start, to), text.slice(to, stop)],
  };
}

function syntaxPlace(text: string, message: string): Place | undefined {
  const position = /at position (\d+)/.exec(message);
  if (position) return wordAt(text, Number(position[1]));
  const spot = /at line (\d+) column (\d+)/.exec(message);
  if (spot) return wordAt(text, offsetOf(text, Number(spot[1]), Number(spot[2])));
  return /end of (JSON|data)/.test(message) ? wordAt(text, text.length) : undefined;
}

/** Columns count characters, an emoji as one. */
function offsetOf(text: string, line: number, column: number): number {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
  return before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
}

function wordAt(text: string, start: number): Place {
  const word = /^(\w+|\S)/.exec(text.slice(start));
  return { start, end: start + (word?.[0].length ?? 0) };
}

/** Where the value at a path such as `.where.args[0]` stands in valid JSON. */
function memberAt(text: string, path: string): Place | undefined {
  let at = skipSpace(text, 0);
  for (const [, name, index] of path.matchAll(/\.([^.[\]]+)|\[(\d+)\]/g)) {
    const found = childAt(text, at, name ?? Number(index));
    // The value that should be there is missing: the one around it is at fault.
    if (found === undefined) break;
    at = found;
  }
  return { start: at, end: skipValue(text, at) };
}

function childAt(text: string, parent: number, wanted: string | number): number | undefined {
  if (text[parent] !== (typeof wanted === "number" ? "[" : "{")) return undefined;
  let at = skipSpace(text, parent + 1);
  for (let index = 0; at < text.length && text[at] !== "]" && text[at] !== "}"; index += 1) {
    let name: unknown = index;
    if (typeof wanted === "string") {
      const end = skipValue(text, at);
      name = JSON.parse(text.slice(at, end));
      at = skipSpace(text, skipSpace(text, end) + 1);
    }
    if (name === wanted) return at;
    at = skipSpace(text, skipValue(text, at));
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return undefined;
}

function skipSpace(text: string, at: number): number {
  return at + /^\s*/.exec(text.slice(at))![0].length;
}

/** The end of the value that begins at an offset. */
function skipValue(text: string, at: number): number {
  const token = /"(?:[^"\\]|\\.)*"|[[\]{}]|[^\s,:[\]{}"]+/gy;
  let depth = 0;
  while (at < text.length) {
    token.lastIndex = at;
    const found = token.exec(text)?.[0];
    at += found?.length ?? 1;
    if (found === undefined) continue;
    if (/^[[{]$/.test(found)) depth += 1;
    if (/^[\]}]$/.test(found)) depth -= 1;
    if (depth === 0) return at;
  }
  return at;
}
