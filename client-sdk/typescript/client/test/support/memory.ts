// A scripted server behind a transport in memory, for tests of the client.

import assert from "node:assert/strict";
import type { Connect, TransportEvents } from "../../src/connection/transport.js";
import { TidegateClient } from "../../src/index.js";
import type { ClientOptions } from "../../src/options.js";
import type { Mutators } from "../../src/optimistic/transaction.js";
import { parse, stringify } from "../../src/wire/codec.js";
import type { ClientMessage, Layout, Limits, Op, ServerMessage } from "../../src/wire/messages.js";
import { FP, ISSUES } from "./script.js";

/** One connection as the server sees it. */
export class Peer {
  readonly heard: ClientMessage[] = [];
  closed = false;

  /** `conn` is its name. */
  constructor(readonly events: TransportEvents, readonly conn = "1") {}

  open(): this {
    this.events.opened();
    return this;
  }

  say(...messages: readonly ServerMessage[]): this {
    for (const message of messages) this.events.received(stringify(message));
    return this;
  }

  welcome(limits: Limits = {}): this {
    return this.say({ welcome: { protocol: 1, server: "test", conn: this.conn, cv: 1, limits } });
  }

  /** The messages of a kind that were heard. */
  asked<K extends string>(kind: K): any[] {
    return this.heard.flatMap((message) => (kind in message ? [(message as unknown as Record<K, unknown>)[kind]] : []));
  }
}

/** A client with a server that the test plays. */
export class Stage<M extends Mutators = Record<never, never>> {
  readonly peers: Peer[] = [];
  readonly client: TidegateClient<M>;
  readonly errors: string[] = [];

  constructor(options: Partial<ClientOptions<M>> = {}) {
    const connect: Connect = (_url, codec, events) => {
      assert.equal(codec, "json");
      const peer = new Peer(events, String(this.peers.length + 1));
      this.peers.push(peer);
      return { send: (frame) => void peer.heard.push(parse(frame as string) as ClientMessage), close: () => (peer.closed = true) };
    };
    this.client = new TidegateClient<M>({
      url: "http://test", codec: "json", connect, onError: ({ code }) => this.errors.push(code), ...options,
    });
  }

  /** The newest connection. */
  get peer(): Peer {
    const peer = this.peers.at(-1);
    assert.ok(peer, "no connection was made");
    return peer;
  }

  /** Lets what waits for promises happen. */
  async settle(): Promise<void> {
    for (let i = 0; i < 20; i += 1) await Promise.resolve();
  }

  /** The newest connection, opened and welcomed. */
  async accept(limits?: Limits): Promise<Peer> {
    await this.settle();
    return this.peer.open().welcome(limits);
  }
}

export const subscribed = (sub: number, epoch: number, resumed = false, layout: Layout = ISSUES): ServerMessage => ({
  subscribed: { sub, epoch, fp: FP, ...layout, resumed },
});
export const batch = (sub: number, epoch: number, seq: number, cv: number, ops: readonly Op[]): ServerMessage => ({
  batch: { sub, epoch, seq, cv, fp: FP, ops },
});
export const progress = (cv: number): ServerMessage => ({ progress: { cv_min: cv } });
export const add = (id: number, title: string): Op => ["+", 0, 1, [id, title, null]];
export const edit = (id: number, title: string): Op => ["~", 0, 1, [id, title, null]];
