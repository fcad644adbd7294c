// Frames to messages and back, in both encodings.

import type { ClientMessage, ServerMessage } from "./messages.js";
import { decodeMsgpack, encodeMsgpack } from "./msgpack.js";
import { LONG, type Codec } from "./value.js";

/** The WebSocket subprotocol of a codec. */
export const subprotocol = (codec: Codec): string => `tidegate.v1+${codec}`;

/**
 * Values that nest deeper have no place in a message.
 *
 * @throws {TypeError} for those.
 */
export function checkNesting(value: unknown, levels = 100): void {
  if (typeof value !== "object" || value === null) return;
  if (levels === 0) throw new TypeError("nested too deep");
  for (const member of Object.values(value)) checkNesting(member, levels - 1);
}

/** A message as one frame. */
export function encode(message: ClientMessage, codec: Codec): string | Uint8Array<ArrayBuffer> {
  return codec === "json" ? stringify(message) : encodeMsgpack(message);
}

/**
 * The messages of one frame.
 *
 * @throws {Error} when the frame cannot be decoded.
 */
export function decode(frame: unknown, codec: Codec): ServerMessage[] {
  if ((codec === "json") !== (typeof frame === "string")) throw new TypeError("a frame of the wrong type");
  const messages = typeof frame === "string" ? [parse(frame)] : decodeMsgpack(bytesOf(frame as ArrayBuffer | ArrayBufferView));
  if (!messages.every((message) => typeof message === "object" && message !== null)) {
    throw new TypeError("a message of the wrong type");
  }
  return messages as ServerMessage[];
}

const bytesOf = (frame: ArrayBuffer | ArrayBufferView): Uint8Array =>
  ArrayBuffer.isView(frame) ? new Uint8Array(frame.buffer, frame.byteOffset, frame.byteLength) : new Uint8Array(frame);

/** JSON text in which bigints are plain numbers, and doubles that are no numbers are their names. */
export function stringify(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") return LONG + String(member);
    // A half of a surrogate pair is no character; so does MessagePack.
    if (typeof member === "string") return member.replace(/[\ud800-\udfff]/gu, "\ufffd");
    return typeof member === "number" && !Number.isFinite(member) ? String(member) : member;
  }).replace(/"\\u0000n(-?\d+)"/g, "$1");
}

/** Parses JSON; integers that a number cannot hold become strings that begin with [`LONG`], so that no digit is lost. */
export function parse(text: string): unknown {
  if (!/9\d{15}|\d{17}/.test(text)) return JSON.parse(text);
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  const exact = (token: string): boolean => !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token));
  return JSON.parse(text.replace(tokens, (token) => (exact(token) ? token : `"\\u0000n${token}"`)));
}
