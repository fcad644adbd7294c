// MessagePack, as far as the protocol uses it: no extension types. Written for this package because codecs that exist
// take a third of its size, and because integers have to be numbers while these are exact and bigints beyond.

import { int8Of } from "./value.js";

// Made when they are needed: a runtime that lacks them can use the codec `json`.
let encoder: TextEncoder | undefined;
let decoder: TextDecoder | undefined;
/** Strings up to this length are decoded by hand, which is faster than a `TextDecoder`. */
const SHORT_BYTES_MAX = 24;

/**
 * Encodes a value; members that are undefined are left out, and numbers that are whole are integers. Lengths and integers
 * that do not fit a head take the widest form: what a client sends is small.
 */
export function encodeMsgpack(value: unknown): Uint8Array<ArrayBuffer> {
  const parts: Part[] = [];
  write(value, parts);
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/**
 * Decodes all values of a frame.
 *
 * @throws {TypeError} when the bytes are no MessagePack, or have extension types.
 */
export function decodeMsgpack(bytes: Uint8Array): unknown[] {
  const reader = new Reader(bytes);
  const values: unknown[] = [];
  while (!reader.done) values.push(reader.value());
  return values;
}

/** Bytes; of numbers that are none, their last eight bits. */
type Part = ArrayLike<number>;

/** Appends a value. */
function write(value: unknown, parts: Part[]): void {
  if (typeof value === "string") {
    const bytes = (encoder ??= new TextEncoder()).encode(value);
    parts.push(headOf(bytes.length, 0xa0, 32, 0xdb), bytes);
  } else if (typeof value === "number" && (!Number.isSafeInteger(value) || Object.is(value, -0))) {
    parts.push([0xcb], wide("setFloat64", value));
  } else if (typeof value === "number" || typeof value === "bigint") {
    const whole = BigInt(value);
    if (value >= -32 && value < 0x80) parts.push([Number(value)]);
    // What 64 bits do not hold is for the server to refuse.
    else if (whole !== (value < 0 ? BigInt.asIntN : BigInt.asUintN)(64, whole)) write(String(value), parts);
    else parts.push([value < 0 ? 0xd3 : 0xcf], wide("setBigInt64", whole));
  } else if (Array.isArray(value)) {
    parts.push(headOf(value.length, 0x90, 16, 0xdd));
    for (const item of value) write(item, parts);
  } else if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    parts.push(headOf(members.length, 0x80, 16, 0xdf));
    for (const member of members.flat()) write(member, parts);
  } else {
    parts.push([value === true ? 0xc3 : value === false ? 0xc2 : 0xc0]);
  }
}

/** A head with a length: below `few` in the head itself, else in 32 bits. */
const headOf = (length: number, head: number, few: number, wider: number): Part =>
  length < few ? [head | length] : [wider, length >>> 24, length >>> 16, length >>> 8, length];

function wide(set: "setBigInt64" | "setFloat64", value: number | bigint): Part {
  const view = new DataView(new ArrayBuffer(8));
  view[set](0, value as never);
  return new Uint8Array(view.buffer);
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  value(): unknown {
    const head = this.#uint(1);
    if (head < 0x80) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head < 0x90) return this.#map(head & 0x0f);
    if (head < 0xa0) return this.#array(head & 0x0f);
    if (head < 0xc0) return this.#text(head & 0x1f);
    // From here on the last two bits of a head mostly say how wide what follows is.
    const size = 1 << (head & 3);
    if (head >= 0xcc && head <= 0xd3) return this.#integer(size, head >= 0xd0);
    if (head >= 0xc4 && head <= 0xc6) return this.#binary(this.#uint(size));
    if (head >= 0xd9 && head <= 0xdb) return this.#text(this.#uint(size / 2));
    if (head >= 0xdc && head <= 0xdd) return this.#array(this.#uint(size * 2));
    if (head >= 0xde) return this.#map(this.#uint(size / 2));
    if (head === 0xcb) return this.#view.getFloat64(this.#take(8));
    if (head === 0xc0) return null;
    if (head === 0xc2 || head === 0xc3) return head === 0xc3;
    throw new TypeError(`a MessagePack head ${head}`);
  }

  #uint(size: number): number {
    let value = 0;
    for (let at = this.#take(size); at < this.#at; at += 1) value = value * 0x100 + this.#bytes[at]!;
    return value;
  }

  #integer(size: number, signed: boolean): number | bigint {
    if (size < 8) {
      const value = this.#uint(size);
      const half = 2 ** (size * 8 - 1);
      return signed && value >= half ? value - 2 * half : value;
    }
    const at = this.#take(8);
    return int8Of(signed ? this.#view.getBigInt64(at) : this.#view.getBigUint64(at));
  }

  /** Where the next `size` bytes begin. */
  #take(size: number): number {
    const at = this.#at;
    this.#at += size;
    if (this.#at > this.#bytes.length) throw new TypeError("a frame that ends early");
    return at;
  }

  #binary(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.slice(at, at + length);
  }

  #text(length: number): string {
    const at = this.#take(length);
    if (length <= SHORT_BYTES_MAX) {
      let text = "";
      let ascii = true;
      for (let i = at; i < at + length && ascii; i += 1) {
        const byte = this.#bytes[i]!;
        ascii = byte < 0x80;
        text += String.fromCharCode(byte);
      }
      if (ascii) return text;
    }
    decoder ??= new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return decoder.decode(this.#bytes.subarray(at, at + length));
  }

  #array(length: number): unknown[] {
    // Not allocated at once: the length is what a frame says of itself.
    const items: unknown[] = [];
    for (let i = 0; i < length; i += 1) items.push(this.value());
    return items;
  }

  #map(length: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    for (let i = 0; i < length; i += 1) {
      const name = this.value();
      // A key of that name would set the map's prototype.
      if (typeof name !== "string" || name === "__proto__") throw new TypeError("a key of the wrong type");
      map[name] = this.value();
    }
    return map;
  }
}
