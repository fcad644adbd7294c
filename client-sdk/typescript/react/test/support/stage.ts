// A client whose server the test plays, and components that are rendered for it.

import "./document.js";
import { TidegateClient, type ClientOptions, type TransportEvents } from "@tidegate/client";
import { act, createElement, StrictMode, type ReactElement } from "react";
import { createRoot } from "react-dom/client";

const FP = "0123456789abcdef";

/** One connection as the server sees it. */
export class Stage {
  readonly heard: Record<string, any>[] = [];
  readonly client: TidegateClient<any>;
  #events: TransportEvents | undefined;

  constructor(options: Partial<ClientOptions<any>> = {}) {
    this.client = new TidegateClient<any>({
      url: "http://test",
      codec: "json",
      lingerMs: 10,
      connect: (_url, _codec, events) => {
        this.#events = events;
        return { send: (frame) => void this.heard.push(JSON.parse(frame as string)), close: () => {} };
      },
      ...options,
    });
  }

  async accept(): Promise<void> {
    while (!this.#events) await Promise.resolve();
    await act(async () => {
      this.#events!.opened();
      this.say({ welcome: { protocol: 1, server: "test", conn: "1", cv: 1 } });
    });
  }

  say(...messages: readonly object[]): void {
    for (const message of messages) this.#events!.received(JSON.stringify(message));
  }

  /** Says it and lets React render. */
  act(...messages: readonly object[]): Promise<void> {
    return act(async () => this.say(...messages));
  }

  lose(): Promise<void> {
    return act(async () => this.#events!.closed("gone"));
  }

  asked(kind: string): any[] {
    return this.heard.flatMap((message) => (kind in message ? [message[kind]] : []));
  }
}

export const subscribed = (sub: number, epoch: number, table = "notes"): object => ({
  subscribed: {
    sub,
    epoch,
    fp: FP,
    tables: [{ name: table, columns: [{ name: "id", type: "int8" }, { name: "text", type: "text" }], key: [0] }],
    places: [{ parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false }],
    resumed: false,
  },
});
export const batch = (sub: number, epoch: number, seq: number, cv: number, ops: unknown[]): object => ({
  batch: { sub, epoch, seq, cv, fp: FP, ops },
});
export const progress = (cv: number): object => ({ progress: { cv_min: cv } });
export const add = (id: number, text: string): unknown[] => ["+", 0, 1, [id, text]];
export const edit = (id: number, text: string): unknown[] => ["~", 0, 1, [id, text]];

/** Renders below a root of its own, in StrictMode; what it shows, and what takes it away. */
export async function render(element: ReactElement) {
  const container = document.createElement("div");
  const root = createRoot(container);
  await act(async () => root.render(createElement(StrictMode, null, element)));
  return {
    get text(): string {
      return container.textContent ?? "";
    },
    rerender: (next: ReactElement) =>
      act(async () => root.render(createElement(StrictMode, null, next))),
    unmount: () => act(async () => root.unmount()),
  };
}
