// The golden frames that every SDK reads, in both codecs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { State } from "../src/state/state.js";
import { decode, encode, parse } from "../src/wire/codec.js";
import type { ClientMessage, ServerMessage } from "../src/wire/messages.js";
import type { Codec } from "../src/wire/value.js";
import { plain } from "./support/script.js";

interface Frame {
  readonly name: string;
  readonly json: string;
  readonly msgpack: string;
  readonly shows?: unknown;
}

function frames(file: string): Frame[] {
  // Tests run from build/test.
  const text = readFileSync(new URL(`../../../../../wire/vectors/${file}`, import.meta.url), "utf8");
  return (parse(text) as { frames: Frame[] }).frames;
}

const bytesOf = (frame: Frame): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(frame.msgpack, "hex"));
const received = (frame: Frame, codec: Codec): ServerMessage[] =>
  decode(codec === "json" ? frame.json : bytesOf(frame), codec);

for (const file of ["session.json", "aggregates.json"]) {
  for (const codec of ["json", "msgpack"] as const) {
    test(`${file} in ${codec} shows what it says`, () => {
      const state = new State({ waitingOpsMax: 1000 });
      state.connect(codec, undefined);
      const { subscription } = state.subscribe({ sql: "select" });
      let shows = 0;
      for (const frame of frames(file)) {
        for (const message of received(frame, codec)) {
          const broken = state.receive(message).find(({ kind }) => kind === "reconnect" || kind === "complaint");
          assert.equal(broken, undefined, frame.name);
        }
        if (!("shows" in frame)) continue;
        shows += 1;
        assert.deepEqual(plain(subscription.tree?.list ?? []), frame.shows, frame.name);
      }
      assert.ok(shows > 0);
    });
  }
}

test("the server's other messages are the same in both codecs", () => {
  for (const frame of frames("server_messages.json")) {
    assert.deepEqual(received(frame, "msgpack"), received(frame, "json"), frame.name);
    assert.equal(received(frame, "json").length, 1);
  }
});

test("the client's messages are encoded as the frames have them", () => {
  for (const frame of frames("client_messages.json")) {
    const message = parse(frame.json) as ClientMessage;
    // Members may stand in another order.
    assert.deepEqual(parse(encode(message, "json") as string), parse(frame.json), frame.name);
    assert.deepEqual(
      decode(encode(message, "msgpack"), "msgpack"),
      decode(bytesOf(frame), "msgpack"),
      frame.name,
    );
  }
});
