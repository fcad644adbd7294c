// Plays the steps of recorded sessions through the state machine. Uses nothing that only Node has for those in JSON, so
// that other runtimes can play them too.

import type { Effect } from "../../src/state/effect.js";
import { State } from "../../src/state/state.js";
import { decode } from "../../src/wire/codec.js";
import type { ClientMessage, Resume } from "../../src/wire/messages.js";
import { LONG, type Codec } from "../../src/wire/value.js";
import { sent } from "./script.js";

/** A step, and what came of it: see `wire/vectors/README.md`. */
export interface Line {
  readonly subscribe?: number;
  readonly unsubscribe?: number;
  readonly reconnect?: true;
  readonly json?: string;
  readonly msgpack?: string;
  readonly resumes?: Record<string, Resume | null>;
  readonly ended?: number[];
  readonly cv?: number;
  readonly shows?: Record<string, unknown>;
}

/** A client that takes a session's steps. */
export class Player {
  readonly #state = new State({ waitingOpsMax: 100_000 });
  /** What each live subscription shows, as text. */
  readonly #shown = new Map<string, string>();

  constructor(readonly codec: Codec) {
    this.#state.connect(codec, undefined);
  }

  /** Takes a line's step; what came of it, in the line's form. */
  play({ subscribe, unsubscribe, reconnect, json, msgpack }: Line): Line {
    const effects: Effect[] = [];
    let resumes: Line["resumes"];
    if (subscribe !== undefined) {
      const { subscription } = this.#state.subscribe({ name: "q" });
      if (subscription.sub !== subscribe) throw new Error(`${subscription.sub} in the place of ${subscribe}`);
    } else if (unsubscribe !== undefined) {
      this.#shown.delete(String(unsubscribe));
      effects.push(...this.#state.unsubscribe(unsubscribe));
    } else if (reconnect) {
      this.#state.disconnect();
      resumes = Object.fromEntries(sent(this.#state.connect(this.codec, undefined)).flatMap(resumeOf));
    } else {
      const frame = this.codec === "json" ? json! : Buffer.from(msgpack!, "base64");
      for (const message of decode(frame, this.codec)) effects.push(...this.#state.receive(message));
    }
    return { ...(resumes && { resumes }), ...this.#outcome(effects) };
  }

  #outcome(effects: readonly Effect[]): Line {
    const ended: number[] = [];
    let cv: number | undefined;
    for (const effect of effects) {
      if (effect.kind === "reconnect") throw effect.error;
      if (effect.kind === "ended") ended.push(effect.sub);
      if (effect.kind === "released") cv = effect.cv;
    }
    for (const sub of ended) this.#shown.delete(String(sub));
    const shows: Record<string, unknown> = {};
    for (const { sub, tree } of this.#state.subscriptions) {
      if (!tree) continue;
      const text = textOf(tree.list);
      if (this.#shown.get(String(sub)) === text) continue;
      this.#shown.set(String(sub), text);
      shows[sub] = tree.list;
    }
    return {
      ...(ended.length > 0 && { ended }), ...(cv !== undefined && { cv }), ...(Object.keys(shows).length > 0 && { shows }),
    };
  }
}

const resumeOf = (message: ClientMessage): [string, Resume | null][] =>
  "subscribe" in message ? [[String(message.subscribe.sub), message.subscribe.resume ?? null]] : [];

/**
 * A value as text, for comparison: the same for a recorded line's and for shown ones, with members in one order and zeros
 * with their sign.
 */
export function textOf(value: unknown): string {
  if (typeof value === "bigint") return JSON.stringify(LONG + String(value));
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : Number.isFinite(value) ? String(value) : `"${value}"`;
  if (typeof value !== "object" || value === null) return String(JSON.stringify(value));
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${textOf(member)}`).join()}}`;
}
