// The client beside @tanstack/db and @rindle/wasm: `npm ci && node bench.mjs` (build the client first: `npx tsc --build`).
//
// Tidegate is given frames as a server sends them (all messages of a commit in one) and decodes them; the others are given
// rows in memory. After each change the whole list is read, as a component does that shows it.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { createCollection, createLiveQueryCollection } from "@tanstack/db";
import { createSchema, createWasmStore, number, string, table } from "@rindle/wasm";
import { remote, TidegateClient } from "../client/build/src/index.js";
import { encodeMsgpack } from "../client/build/src/wire/msgpack.js";

const CHANGES = 1_000;
/** How often each contender is measured, in turn; odd, so that there is a median. */
const ROUNDS = 7;
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
        const batches = held.map((_, index) => ({ batch: { sub: index + 1, epoch: index + 1, seq: seq[index]++, cv, fp: FP, ops: [op("~", row)] } }));
        return Buffer.concat([...batches, { progress: { cv_min: cv } }].map(encodeMsgpack));
      },
      change: (frame) => {
        events.received(frame);
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

/** One contender's figures of one scenario, milliseconds, and what its list is in the end. */
async function measure(who, { count, limit, within }) {
  const rows = rowsOf(count);
  const contender = await contenders[who](rows, limit);
  const started = performance.now();
  const shown = await contender.hydrate();
  const hydrate = performance.now() - started;
  if (shown !== (limit ?? count)) throw new Error(`${who} shows ${shown} rows`);
  const spent = [];
  let list;
  const prepared = changesOf(rows, within).map(contender.prepare);
  const usage = process.cpuUsage();
  for (const one of prepared) {
    const from = performance.now();
    const answer = contender.change(one);
    list = answer instanceof Promise ? await answer : answer;
    spent.push(performance.now() - from);
  }
  const { user, system } = process.cpuUsage(usage);
  contender.close();
  const all = spent.reduce((sum, one) => sum + one, 0);
  spent.sort((a, b) => a - b);
  const text = JSON.stringify(list.map(({ id, rank, title }) => [rank, id, title]).sort());
  const last = createHash("sha256").update(text).digest("hex");
  return { hydrate, p50: spent[CHANGES / 2], p99: spent[CHANGES * 0.99], all, cpu: (user + system) / 1_000, last };
}

/** The same in a process of its own, so that none runs on what another has warmed up or left behind. */
function measureApart(who, scenario) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), who, scenario.name], { encoding: "utf8" });
  if (status !== 0) throw new Error(`${who} failed: ${stderr}`);
  return JSON.parse(stdout);
}

/** Of the changes: one with reading the list, the slowest of a hundred, all, and all in processor time of every thread. */
const FIGURES = ["p50", "p99", "all", "cpu"];
const ms = (value) => value.toFixed(value < 10 ? 3 : 1);
const cells = (texts) => texts.map((text) => text.padStart(10)).join(" ");

function compare() {
  console.log(`node ${process.version}; ${CHANGES} one-row changes, the list read after each; milliseconds, medians of ${ROUNDS} rounds, then all of each`);
  for (const scenario of scenarios) {
    const figures = new Map(Object.keys(contenders).map((who) => [who, []]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [who, own] of figures) own.push(measureApart(who, scenario));
    }
    console.log(`\n${scenario.name.padEnd(30)} ${cells(["hydrate", ...FIGURES])}`);
    for (const [who, own] of figures) {
      const sorted = (figure) => own.map((one) => one[figure]).sort((a, b) => a - b);
      console.log(`${who.padEnd(30)} ${cells(["hydrate", ...FIGURES].map((figure) => ms(sorted(figure)[ROUNDS >> 1])))}  ${sorted("all").map(Math.round).join(" ")}`);
    }
    if (new Set([...figures.values()].flat().map(({ last }) => last)).size !== 1) throw new Error("they do not agree on the last list");
  }
}

const [who, name] = process.argv.slice(2);
if (who === undefined) {
  compare();
} else {
  // Standard output is for the figures alone.
  console.log = console.info = console.warn = console.error;
  process.stdout.write(JSON.stringify(await measure(who, scenarios.find((scenario) => scenario.name === name))), () => process.exit(0));
}
