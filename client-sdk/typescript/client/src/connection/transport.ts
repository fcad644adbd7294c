// One connection's frames, and the WebSocket that carries them in browsers, Node and React Native.

import { subprotocol } from "../wire/codec.js";
import type { Codec } from "../wire/value.js";

/** An open or opening connection. */
export interface Transport {
  /** Sends a frame: text for `json`, bytes for `msgpack`. Called only while it is open. */
  send(frame: string | Uint8Array<ArrayBuffer>): void;
  /** Ends it; nothing is told afterwards. */
  close(): void;
}

/** What a transport tells. */
export interface TransportEvents {
  opened(): void;
  /** A text, an `ArrayBuffer` or a view of one. */
  received(frame: unknown): void;
  /** It ended, or could not be made; the last thing that is told. */
  closed(reason: string): void;
}

/** Begins a connection. */
export type Connect = (url: string, codec: Codec, events: TransportEvents) => Transport;

/** A WebSocket class, such as the browser's or that of the `ws` package. */
export type WebSocketClass = new (url: string, protocols: string) => {
  binaryType: string;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown } & never) => void) | null;
  onclose: ((event: { code: number; reason: string } & never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
};

/**
 * Connections by WebSocket. Node before version 22 has no class of its own: give that of the `ws` package.
 *
 * @throws {TypeError} when there is no WebSocket class.
 */
export function webSocket(given?: unknown): Connect {
  const Socket = (given ?? (globalThis as { WebSocket?: unknown }).WebSocket) as WebSocketClass | undefined;
  if (!Socket) throw new TypeError("no WebSocket: give that of the package ws");
  return (url, codec, events) => {
    const socket = new Socket(url, subprotocol(codec));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => events.opened();
    socket.onmessage = ({ data }: { data: unknown }) => events.received(data);
    socket.onerror = () => {}; // a close always follows
    socket.onclose = ({ code, reason }: { code: number; reason: string }) =>
      events.closed(reason || `the connection has ended (${code})`);
    return {
      send: (frame) => socket.send(frame),
      close: () => {
        socket.onopen = socket.onmessage = socket.onclose = null;
        socket.close();
      },
    };
  };
}
