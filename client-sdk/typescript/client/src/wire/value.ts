// Values of columns as this package holds them, and how cells of both codecs become them.
//
// A value has the protocol's JSON form, so that what is shown, what conditions name and what mutations write look
// alike: timestamps, dates, uuids and numerics are strings, bytes base64. Two differ where JSON loses digits: an int8
// is a number while that is exact and a bigint beyond 2^53, and a float8 is always a number, NaN and infinities too.

/** A column's type. */
export type ColumnType =
  | "bool" | "int8" | "float8" | "text" | "bytea" | "timestamptz" | "date" | "uuid" | "numeric" | "json";

/** A JSON document. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A column's value; NULL is null. */
export type Value = Json | bigint;

/** The encoding of a connection's messages. */
export type Codec = "msgpack" | "json";

/** Begins a string that stands for an int8 beyond 2^53 in parsed JSON; no text has U+0000. */
export const LONG = "\0n";

/**
 * Reads a cell as it came in a frame; undefined when it is none of that type.
 *
 * @throws {Error} for bytes or texts of the right kind that do not hold such a value.
 */
export function readCell(cell: unknown, type: ColumnType, codec: Codec): Value | undefined {
  if (cell === null) return null;
  return codec === "json" ? fromJson(cell, type) : fromMsgpack(cell, type);
}

/** An int8 in its one form: a number while exact, else a bigint. */
export function int8Of(value: number | bigint): number | bigint {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** How many bytes a text has in UTF-8; not every runtime that uses the codec `json` has a TextEncoder. */
export const utf8Length = (text: string): number =>
  // Each half of a surrogate pair stands for two bytes, as other characters below U+0800 do.
  text.replace(/[\u0800-\ud7ff\ue000-\uffff]/g, "...").replace(/[^\0-\x7f]/g, "..").length;

function fromJson(cell: unknown, type: ColumnType): Value | undefined {
  switch (type) {
    case "bool":
      return typeof cell === "boolean" ? cell : undefined;
    case "int8":
      if (typeof cell === "string" && cell.startsWith(LONG)) return int8Of(BigInt(cell.slice(LONG.length)));
      return Number.isSafeInteger(cell) ? (cell as number) : undefined;
    case "float8":
      if (typeof cell === "number") return cell;
      if (typeof cell !== "string") return undefined;
      if (cell.startsWith(LONG)) return Number(cell.slice(LONG.length));
      return cell === "NaN" || cell === "Infinity" || cell === "-Infinity" ? Number(cell) : undefined;
    case "json":
      return shortened(cell as Json);
    default:
      return typeof cell === "string" && !cell.includes("\0") ? cell : undefined;
  }
}

/** A parsed document whose long integers are numbers again, as any JSON parser would have them. */
function shortened(json: Json): Json {
  if (typeof json === "string") return json.startsWith(LONG) ? Number(json.slice(LONG.length)) : json;
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(shortened);
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, shortened(value)]));
}

function fromMsgpack(cell: unknown, type: ColumnType): Value | undefined {
  switch (type) {
    case "bool":
      return typeof cell === "boolean" ? cell : undefined;
    case "int8":
      return typeof cell === "bigint" || Number.isSafeInteger(cell) ? (cell as number | bigint) : undefined;
    case "float8":
      return typeof cell === "number" ? cell : undefined;
    case "text":
    case "numeric":
      return typeof cell === "string" && !cell.includes("\0") ? cell : undefined;
    case "json":
      return typeof cell === "string" ? (JSON.parse(cell) as Json) : undefined;
    case "bytea":
      return cell instanceof Uint8Array ? base64(cell) : undefined;
    case "uuid":
      return cell instanceof Uint8Array && cell.length === 16 ? uuid(cell) : undefined;
    case "timestamptz":
      return typeof cell === "bigint" || Number.isInteger(cell) ? timestamp(cell as number | bigint) : undefined;
    case "date":
      return Number.isInteger(cell) ? new Date((cell as number) * 86_400_000).toISOString().slice(0, 10) : undefined;
  }
}

const base64 = (bytes: Uint8Array): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

function uuid(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** RFC 3339 of microseconds since 1970, without zeros at the end of its fraction. */
function timestamp(micros: number | bigint): string {
  const whole = BigInt(micros);
  const below = Number(((whole % 1_000_000n) + 1_000_000n) % 1_000_000n);
  const second = new Date(Number((whole - BigInt(below)) / 1_000n)).toISOString().slice(0, 19);
  return below === 0 ? `${second}Z` : `${second}.${String(below).padStart(6, "0").replace(/0+$/, "")}Z`;
}
