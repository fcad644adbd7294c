// The recorded sessions that every SDK plays: after every step all that is shown, and what is asked for after a
// reconnect, is what the Rust SDK's state machine made of it.
//
// Seen to fail: with keys told apart by how they are written; with NULLs on the other side in `state/shape.ts`; with
// numbers of two types tied by their texts.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { Effect } from "../src/state/effect.js";
import { State } from "../src/state/state.js";
import { decode, parse } from "../src/wire/codec.js";
import type { ClientMessage, Resume } from "../src/wire/messages.js";
import { LONG, type Codec } from "../src/wire/value.js";
import { sent } from "./support/script.js";

// Tests run from build/test.
const folder = new URL("../../../../../wire/vectors/sessions/", import.meta.url);

/** A step, and what came of it: see `wire/vectors/README.md`. */
interface Line {
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

class Player {
  readonly #state = new State({ waitingOpsMax: 100_000 });
  /** What each live subscription shows. */
  readonly #shown = new Map<string, unknown>();

  constructor(readonly codec: Codec) {
    this.#state.connect(codec, undefined);
  }

  /** Takes a line's step; what came of it, in the line's form. */
  play({ subscribe, unsubscribe, reconnect, json, msgpack }: Line): Line {
    const effects: Effect[] = [];
    let resumes: Line["resumes"];
    if (subscribe !== undefined) {
      const { subscription } = this.#state.subscribe({ name: "q" }, () => false);
      assert.equal(subscription.sub, subscribe);
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
      if (effect.kind === "violation") throw effect.violation;
      if (effect.kind === "ended") ended.push(effect.sub);
      if (effect.kind === "released") cv = effect.cv;
    }
    for (const sub of ended) this.#shown.delete(String(sub));
    const shows: Record<string, unknown> = {};
    for (const { sub, tree } of this.#state.subscriptions) {
      if (!tree) continue;
      const rows = written(tree.list);
      if (!differs(this.#shown.get(String(sub)), rows)) continue;
      this.#shown.set(String(sub), rows);
      shows[sub] = rows;
    }
    return {
      ...(ended.length > 0 && { ended }), ...(cv !== undefined && { cv }), ...(Object.keys(shows).length > 0 && { shows }),
    };
  }
}

const resumeOf = (message: ClientMessage): [string, Resume | null][] =>
  "subscribe" in message ? [[String(message.subscribe.sub), message.subscribe.resume ?? null]] : [];

function differs(a: unknown, b: unknown): boolean {
  try {
    assert.deepEqual(a, b);
    return false;
  } catch {
    return true;
  }
}

/** Shown values as a recorded line has them, zeros with their sign. */
function written(value: unknown): unknown {
  if (typeof value === "bigint") return LONG + String(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(written);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, written(member)]));
}

for (const codec of ["json", "msgpack"] as const) {
  test(`the recorded sessions show what they say, in ${codec}`, (t) => {
    const files = readdirSync(folder).sort();
    let states = 0;
    for (const file of files) {
      const player = new Player(codec);
      const lines = readFileSync(new URL(file, folder), "utf8").trimEnd().split("\n");
      for (const [index, text] of lines.entries()) {
        const line = parse(text) as Line;
        const { subscribe: _s, unsubscribe: _u, reconnect: _r, json: _j, msgpack: _m, ...expected } = line;
        let came: Line;
        try {
          came = player.play(line);
        } catch (error) {
          throw new Error(`${file}:${index + 1}: ${(error as Error).message}\n${text}`, { cause: error });
        }
        assert.deepEqual(came, expected, `${file}:${index + 1}`);
        states += Object.keys(came.shows ?? {}).length;
      }
    }
    t.diagnostic(`${files.length} sessions, ${states} shown states`);
    assert.ok(states > 100);
  });
}
