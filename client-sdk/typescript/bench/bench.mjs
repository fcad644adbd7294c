// The client beside @tanstack/db and @rindle/wasm: `npm ci && node bench.mjs` (build the client first: `npx tsc --build`).
//
// Tidegate is given frames as a server sends them and decodes them; the others are given rows in memory. After each
// change the whole list is read, as a component does that shows it.

import { createCollection, createLiveQueryCollection } from "@tanstack/db";
import { createSchema, createWasmStore, number, string, table } from "@rindle/wasm";
import { remote, TidegateClient } from "../client/build/src/index.js";
import { encodeMsgpack } from "../client/build/src/wire/msgpack.js";

const CHANGES = 1_000;
const OPS_PER_FRAME = 1_000;
const FP = "0123456789abcdef";

const rowsOf = (count) => Array.from({ length: count }, (_, id) => ({ id, rank: (id * 7919) % 100_003, title: `title ${id}` }));
/** Changed rows: each gets another title and a rank next to its own. */
const changesOf = (rows, within) => {
  const byRank = [...rows].sort((a, b) => a.rank - b.rank || a.id - b.id).slice(0, within);
  return Array.from({ length: CHANGES }, (_, i) => {
    const row = byRank[(i * 37) % byRank.length];
    return { id: row.id, rank: row.rank + (i % 3), title: `changed ${i}` };
  });
};

/** Each contender: `hydrate` answers how long it took, `change` makes one change and reads the list. */
const contenders = {
  tidegate: async (rows, limit) => {
    let events;
    const client = new TidegateClient({ url: "http://bench", connect: (_url, _codec, told) => ((events = told), { send() {}, close() {} }) });
    const held = limit === undefined ? [undefined] : [undefined, limit];
    const views = held.map((most) => client.view(remote({ query: { table: "rows", order_by: [["rank"]], ...(most && { limit: most }) } })));
    while (!events) await Promise.resolve();
    events.opened();
    const say = (message) => events.received(encodeMsgpack(message));
    say({ welcome: { protocol: 1, server: "bench", conn: "1", cv: 1 } });
    const op = (kind, { id, rank, title }) => [kind, 0, 1, [id, rank, title]];
    const top = (most) => [...rows].sort((a, b) => a.rank - b.rank || a.id - b.id).slice(0, most);
    const frames = held.flatMap((most, index) => {
      const sub = index + 1;
      const own = top(most ?? rows.length);
      const columns = [["id", "int8"], ["rank", "int8"], ["title", "text"]].map(([name, type]) => ({ name, type }));
      const places = [{ parent: null, as: null, table: 0, columns: [0, 1, 2], on: [], order: [[1, "asc", "nulls last"], [0, "asc", "nulls last"]], one: false }];
      const list = [{ subscribed: { sub, epoch: sub, fp: FP, tables: [{ name: "rows", columns, key: [0] }], places, resumed: false } }];
      for (let at = 0, seq = 0; at < own.length; at += OPS_PER_FRAME, seq += 1) {
        const ops = own.slice(at, at + OPS_PER_FRAME).map((row) => op("+", row));
        list.push({ batch: { sub, epoch: sub, seq, cv: 1, fp: FP, more: at + OPS_PER_FRAME < own.length, ops } });
      }
      return list;
    }).map(encodeMsgpack);
    const released = encodeMsgpack({ progress: { cv_min: 1 } });
    const seq = held.map((most) => Math.ceil((most ?? rows.length) / OPS_PER_FRAME));
    let cv = 1;
    const view = views.at(-1);
    return {
      hydrate: () => {
        for (const frame of frames) events.received(frame);
        events.received(released);
        return view.rows.length;
      },
      // Encoded aside: a server does that.
      prepare: (row) => {
        cv += 1;
        return [...held.map((_, index) => ({ batch: { sub: index + 1, epoch: index + 1, seq: seq[index]++, cv, fp: FP, ops: [op("~", row)] } })), { progress: { cv_min: cv } }].map(encodeMsgpack);
      },
      change: (frames) => {
        for (const frame of frames) events.received(frame);
        return view.rows;
      },
      close: () => client.close(),
    };
  },

  "@tanstack/db": async (rows, limit) => {
    let sync;
    const source = createCollection({
      id: `rows-${Math.random()}`,
      getKey: (row) => row.id,
      startSync: true,
      sync: { sync: (params) => void (sync = params), rowUpdateMode: "full" },
    });
    let live;
    return {
      hydrate: async () => {
        sync.begin();
        for (const row of rows) sync.write({ type: "insert", value: row });
        sync.commit();
        sync.markReady();
        live = createLiveQueryCollection((q) => {
          const ordered = q.from({ row: source }).orderBy(({ row }) => row.rank);
          return limit === undefined ? ordered : ordered.limit(limit);
        });
        await live.preload();
        return live.toArray.length;
      },
      prepare: (row) => row,
      change: (row) => {
        sync.begin();
        sync.write({ type: "update", value: row });
        sync.commit();
        return live.toArray;
      },
      close: () => {},
    };
  },

  "@rindle/wasm": async (rows, limit) => {
    const row = table("row").columns({ id: number(), rank: number(), title: string() }).primaryKey("id");
    const store = await createWasmStore(createSchema({ tables: [row] }));
    const held = new Map();
    let view;
    return {
      hydrate: async () => {
        await store.write((tx) => {
          for (const one of rows) tx.add("row", one);
        });
        for (const one of rows) held.set(one.id, one);
        const ordered = store.query.row.orderBy("rank", "asc");
        view = (limit === undefined ? ordered : ordered.limit(limit)).materialize();
        return view.data.length;
      },
      prepare: (one) => one,
      change: async (one) => {
        const before = held.get(one.id);
        held.set(one.id, one);
        await store.write((tx) => tx.edit("row", before, one));
        return view.data;
      },
      close: () => {},
    };
  },
};

const scenarios = [
  { name: "10,000 rows shown", count: 10_000, limit: undefined, within: 10_000 },
  { name: "50 rows shown of 60,000 held", count: 60_000, limit: 50, within: 45 },
];

const ms = (value) => value.toFixed(value < 10 ? 3 : 1);
console.log(`node ${process.version}; ${CHANGES} one-row changes, the list read after each; milliseconds`);
for (const { name, count, limit, within } of scenarios) {
  console.log(`\n${name.padEnd(30)} ${"hydrate".padStart(10)} ${"p50".padStart(10)} ${"p99".padStart(10)} ${"all".padStart(10)}`);
  const lasts = [];
  for (const [who, make] of Object.entries(contenders)) {
    const rows = rowsOf(count);
    const contender = await make(rows, limit);
    const started = performance.now();
    const shown = await contender.hydrate();
    const hydrated = performance.now() - started;
    if (shown !== (limit ?? count)) throw new Error(`${who} shows ${shown} rows`);
    const spent = [];
    let list;
    for (const prepared of changesOf(rows, within).map(contender.prepare)) {
      const from = performance.now();
      const answer = contender.change(prepared);
      list = answer instanceof Promise ? await answer : answer;
      spent.push(performance.now() - from);
    }
    const all = spent.reduce((sum, one) => sum + one, 0);
    spent.sort((a, b) => a - b);
    console.log([who.padEnd(30), ...[hydrated, spent[CHANGES / 2], spent[CHANGES * 0.99], all].map((value) => ms(value).padStart(10))].join(" "));
    lasts.push(JSON.stringify(list.map(({ id, rank, title }) => [rank, id, title]).sort()));
    contender.close();
  }
  if (new Set(lasts).size !== 1) throw new Error("they do not agree on the last list");
}
process.exit(0);
