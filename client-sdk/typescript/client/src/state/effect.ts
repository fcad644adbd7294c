// What the state machine asks of its driver.

import type { ClientMessage, ErrorBody } from "../wire/messages.js";
import type { Mutation } from "./mutations.js";
import type { RootChanges } from "./tree.js";

/** One thing to do or to tell. */
export type Effect =
  /** Send a message. */
  | { readonly kind: "send"; readonly message: ClientMessage }
  /** The server answered `hello`. */
  | { readonly kind: "welcomed" }
  /** A new visible state: all of it at once. */
  | Release
  /** A subscription ended; with `retry`, asking again may succeed. */
  | { readonly kind: "ended"; readonly sub: number; readonly error: ErrorBody; readonly retry: boolean }
  /** Note the ids of these mutations durably, then send them. */
  | { readonly kind: "write"; readonly mutations: readonly (Mutation & { id: number })[] }
  /** A mutation is in the released state. */
  | { readonly kind: "confirmed"; readonly ticket: string }
  /** A mutation was refused. */
  | { readonly kind: "refused"; readonly ticket: string; readonly error: ErrorBody }
  /** A mutation has left the queue. */
  | { readonly kind: "settled"; readonly ticket: string; readonly id: number; readonly refused: boolean; readonly writer: boolean }
  /** The server refused a message that concerns no subscription that can end by it. */
  | { readonly kind: "complaint"; readonly error: ErrorBody }
  /**
   * Give this connection up and make another, after a wait of at least so many milliseconds. The error is a `Violation`
   * when the server broke the protocol.
   */
  | { readonly kind: "reconnect"; readonly error: ErrorBody; readonly afterMs: number };

/** A step of the visible state. */
export interface Release {
  readonly kind: "released";
  /** The commit version that everything visible stands at, but for pending mutations. */
  readonly cv: number;
  /** What changed, by subscription; those that are shown for the first time are named too. */
  readonly results: ReadonlyMap<number, RootChanges>;
}
