// What runs inside Hermes. Its shell has `print` and the language's own objects; React Native adds timers, which are
// not waited for here, and a console.

globalThis.console ??= { warn: print };
for (const name of ["setTimeout", "clearTimeout", "setInterval", "clearInterval"]) globalThis[name] = () => 0;
globalThis.queueMicrotask ??= (step) => void Promise.resolve().then(step);

import { from, int8, like, table, text, TidegateClient } from "../client/build/src/index.js";
import { parse } from "../client/build/src/wire/codec.js";
import { Player, textOf } from "../client/build/test/support/player.js";
import { FP, ISSUES, OWN } from "../client/build/test/support/script.js";

function same(came, expected, what) {
  if (textOf(came) !== textOf(expected)) throw new Error(`${what}: ${textOf(came)} in the place of ${textOf(expected)}`);
}

let steps = 0;
for (const [name, lines] of globalThis.SESSIONS) {
  const player = new Player("json");
  lines.forEach((line, index) => {
    const { subscribe, unsubscribe, reconnect, json, msgpack, ...expected } = parse(line);
    same(player.play({ subscribe, unsubscribe, reconnect, json, msgpack }), expected, `${name}:${index + 1}`);
    steps += 1;
  });
}
print(`${globalThis.SESSIONS.length} sessions, ${steps} steps`);

const subscribed = (sub, epoch, layout) => ({ subscribed: { sub, epoch, fp: FP, ...layout, resumed: false } });
const batch = (sub, epoch, seq, cv, ops) => ({ batch: { sub, epoch, seq, cv, fp: FP, ops } });
const progress = (cv) => ({ progress: { cv_min: cv } });
const issues = table("issues", { id: int8(), title: text() }, { key: ["id"] });

async function follow() {
  let events;
  const client = new TidegateClient({
    url: "https://example.com",
    codec: "json",
    connect: (_url, _codec, told) => ((events = told), { send() {}, close() {} }),
    mutators: { louder: (tx, key) => tx.update(issues, key, { title: `${tx.get(issues, key).title}!` }) },
    postMutations: () => new Promise(() => {}),
  });
  const view = client.view(from(issues).where((c) => like(c.title, "%a%")));
  while (!events) await undefined;
  const say = (...messages) => messages.forEach((message) => events.received(JSON.stringify(message)));
  events.opened();
  say({ welcome: { protocol: 1, server: "hermes", conn: "1", cv: 1 } });
  say(subscribed(0, 1, OWN), batch(0, 1, 0, 5, []), subscribed(1, 2, ISSUES), batch(1, 2, 0, 5, [["+", 0, 1, [1, "a", null]]]), progress(5));
  const { confirmed } = client.mutate.louder({ id: 1 });
  same([view.rows, view.status], [[{ id: 1, title: "a!" }], "complete"], "at once");
  say(batch(1, 2, 1, 6, [["~", 0, 1, [1, "ba", null]]]), progress(6));
  same(view.rows, [{ id: 1, title: "ba!" }], "over a newer row");
  confirmed.catch(({ code }) => {
    same(code, "closed", "the end");
    print("all is well");
  });
  client.close();
}

follow().catch((error) => print(`failed: ${error.stack}`));
