// The recorded sessions that every SDK plays: after every step all that is shown, and what is asked for after a
// reconnect, is what the Rust SDK's state machine made of it.
//
// Seen to fail: with keys told apart by how they are written; with NULLs on the other side in `state/shape.ts`; with
// numbers of two types tied by their texts.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { parse } from "../src/wire/codec.js";
import { Player, textOf, type Line } from "./support/player.js";

// Tests run from build/test.
const folder = new URL("../../../../../wire/vectors/sessions/", import.meta.url);

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
        assert.equal(textOf(came), textOf(expected), `${file}:${index + 1}`);
        states += Object.keys(came.shows ?? {}).length;
      }
    }
    t.diagnostic(`${files.length} sessions, ${states} shown states`);
    assert.ok(states > 100);
  });
}
