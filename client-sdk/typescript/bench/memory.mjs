// What a client holds in memory for views of the same 10,000 rows: `node --expose-gc memory.mjs VIEWS` (build the client
// first: `npx tsc --build`).

import { remote, TidegateClient } from "../client/build/src/index.js";
import { encodeMsgpack } from "../client/build/src/wire/msgpack.js";

const ROWS = 10_000;
const OPS_PER_FRAME = 1_000;
const FP = "0123456789abcdef";

const count = Number(process.argv[2] ?? 1);
let events;
const client = new TidegateClient({ url: "http://bench", connect: (_url, _codec, told) => ((events = told), { send() {}, close() {} }) });
// Queries that differ have subscriptions of their own.
const views = Array.from({ length: count }, (_, n) => client.view(remote({ query: { table: "rows", limit: ROWS + n } })));
while (!events) await Promise.resolve();
events.opened();

const columns = [["id", "int8"], ["rank", "int8"], ["title", "text"], ["votes", "int8"], ["open", "bool"]].map(([name, type]) => ({ name, type }));
const places = [{ parent: null, as: null, table: 0, columns: [0, 1, 2, 3, 4], on: [], order: [[1, "asc", "nulls last"], [0, "asc", "nulls last"]], one: false }];
const op = (id) => ["+", 0, 1, [id, (id * 7919) % 100_003, `title ${id}`.padEnd(60, " with more text"), id * 3, id % 2 === 0]];
const messages = views.flatMap((_, n) => [
  { subscribed: { sub: n + 1, epoch: n + 1, fp: FP, tables: [{ name: "rows", columns, key: [0] }], places, resumed: false } },
  ...Array.from({ length: ROWS / OPS_PER_FRAME }, (_, seq) => {
    const ops = Array.from({ length: OPS_PER_FRAME }, (_, i) => op(seq * OPS_PER_FRAME + i));
    return { batch: { sub: n + 1, epoch: n + 1, seq, cv: 1, fp: FP, more: (seq + 1) * OPS_PER_FRAME < ROWS, ops } };
  }),
]);
const frames = [{ welcome: { protocol: 1, server: "bench", conn: "1", cv: 1 } }, ...messages, { progress: { cv_min: 1 } }].map(encodeMsgpack);

globalThis.gc();
const before = process.memoryUsage().heapUsed;
for (const frame of frames) events.received(frame);
if (views.some(({ rows }) => rows.length !== ROWS)) throw new Error("a view does not show all rows");
globalThis.gc();
console.log(`${count} views of ${ROWS} rows: ${((process.memoryUsage().heapUsed - before) / 1e6).toFixed(1)} MB`);
process.exit(0);
