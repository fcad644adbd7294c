// Frames to messages and back, in both encodings.

import { decodeMulti, encode as encodeMsgpack } from "@msgpack/msgpack";
import type { ClientMessage, ServerMessage } from "./messages.js";
import { LONG, type Codec } from "./value.js";

/** The WebSocket subprotocol of a codec. */
export const subprotocol = (codec: Codec): string => `tidegate.v1+${codec}`;

const OPTIONS = { useBigInt64: true, ignoreUndefined: true };

/** A message as one frame. */
export function encode(message: ClientMessage, codec: Codec): string | Uint8Array<ArrayBuffer> {
  return codec === "json" ? stringify(message) : encodeMsgpack(message, OPTIONS);
}

/**
 * The messages of one frame.
 *
 * @throws {Error} when the frame cannot be decoded.
 */
export function decode(frame: unknown, codec: Codec): ServerMessage[] {
  if (codec === "json") {
    if (typeof frame !== "string") throw new TypeError("a binary frame where text was due");
    return [headed(parse(frame))];
  }
  if (!(frame instanceof ArrayBuffer) && !ArrayBuffer.isView(frame)) throw new TypeError("a text frame where bytes were due");
  return [...decodeMulti(frame as ArrayBuffer | ArrayBufferView<ArrayBuffer>, OPTIONS)].map(headed);
}

/** A message whose own members are plain numbers; only cells need more digits than these have. */
function headed(message: unknown): ServerMessage {
  if (typeof message !== "object" || message === null) throw new TypeError("a message that is no map");
  for (const body of Object.values(message) as Record<string, unknown>[]) {
    for (const name in body) if (typeof body[name] === "bigint") body[name] = Number(body[name]);
  }
  return message;
}

/** JSON text in which bigints are plain numbers, and doubles that are no numbers are their names. */
export function stringify(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") return LONG + String(member);
    return typeof member === "number" && !Number.isFinite(member) ? String(member) : member;
  });
  return text.includes(LONG_QUOTED) ? text.replace(/"\\u0000n(-?\d+)"/g, "$1") : text;
}

const LONG_QUOTED = '"\\u0000n';

/** Parses JSON; integers that a number cannot hold become strings that begin with [`LONG`], so that no digit is lost. */
export function parse(text: string): unknown {
  if (!/9\d{15}|\d{17}/.test(text)) return JSON.parse(text);
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  const exact = (token: string): boolean => !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token));
  return JSON.parse(text.replace(tokens, (token) => (exact(token) ? token : `"\\u0000n${token}"`)));
}
