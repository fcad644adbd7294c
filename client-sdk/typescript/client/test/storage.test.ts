// What outlives a reload, and what tabs share: over IndexedDB, with a scripted server and a real one.

import "fake-indexeddb/auto";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { from, indexedDbStorage, int8, table, text, type Transaction } from "../src/index.js";
import type { Content } from "../src/state/subscription.js";
import type { Storage } from "../src/storage/storage.js";
import type { LockManagerLike } from "../src/storage/writer.js";
import type { Layout } from "../src/wire/messages.js";
import { batch, progress, Stage, subscribed, type Peer } from "./support/memory.js";
import { OWN } from "./support/script.js";
import { connect, startServer, until, type Server } from "./support/server.js";

const notes = table("notes", { id: int8(), text: text() }, { key: ["id"] });
const QUERY = from(notes);
const NOTES: Layout = {
  tables: [{ name: "notes", columns: [{ name: "id", type: "int8" }, { name: "text", type: "text" }], key: [0] }],
  places: [{ parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false }],
};
const mutators = {
  add: (tx: Transaction, row: { id: number; text: string }) => tx.insert(notes, row),
};

/** Web Locks in one process. */
function locks(): LockManagerLike {
  const tails = new Map<string, Promise<unknown>>();
  const taken = new Set<string>();
  return {
    request: (name, { signal, ifAvailable }, held) => {
      if (ifAvailable && taken.has(name)) return held(null);
      const begin = async () => {
        signal?.throwIfAborted();
        taken.add(name);
        return held({ name }).finally(() => taken.delete(name));
      };
      const ended = (tails.get(name) ?? Promise.resolve()).then(begin);
      tails.set(name, ended.catch(() => {}));
      return ended;
    },
  };
}

const KINDS = { "Web Locks": () => locks(), "a lease": () => null } as const;
let names = 0;
/** Tabs of one storage, each in turn opened by `open`. */
function tabs(make: () => LockManagerLike | null) {
  names += 1;
  const [name, shared] = [`storage-${names}`, make()];
  return { open: () => indexedDbStorage({ name, locks: shared, leaseMs: 150 }) };
}

let server: Server;
const clients: { close(): void }[] = [];
before(async () => {
  server = await startServer();
  await server.sql("create table notes (id bigint primary key, text text not null)");
});
after(async () => {
  for (const client of clients) client.close();
  await server.stop();
});

function opened(storage: Storage, options = {}) {
  const client = connect<typeof mutators>(server, { mutators, storage, ...options });
  clients.push(client);
  return { client, view: client.view(QUERY) };
}
/** A client that never reaches a server. */
const OFFLINE = { connect: () => ({ send: () => {}, close: () => {} }) };

test("a reload shows the last state at once and resumes from it", async () => {
  const { open } = tabs(locks);
  const first = new Stage({ storage: open() });
  first.client.view(QUERY);
  await until("a connection", () => first.peers.length > 0, everyTurn);
  const peer = await first.accept();
  peer.say(subscribed(1, 7, false, NOTES), batch(1, 7, 0, 5, [["+", 0, 1, [1, "kept"]]]), progress(5));
  await stored(names, "contents", 1);
  first.client.close();

  const second = new Stage({ storage: open() });
  const view = second.client.view(QUERY);
  const seen: string[] = [];
  view.subscribe(({ status, rows }) => seen.push(`${status} ${rows.map((row) => row.text).join()}`));
  await until("a connection", () => second.peers.length > 0, everyTurn);
  assert.deepEqual([view.status, view.rows, second.client.cv], ["partial", [{ id: 1, text: "kept" }], 5]);
  const next = await second.accept();
  assert.deepEqual(next.asked("subscribe")[0].resume, { epoch: 7, cv: 5, fp: "0123456789abcdef" });
  next.say(subscribed(1, 8, true, NOTES), batch(1, 8, 0, 9, [["+", 0, 1, [2, "new"]]]), progress(9));
  assert.deepEqual(seen, ["partial kept", "complete kept,new"]);
  second.client.close();
});

for (const [kind, make] of Object.entries(KINDS)) {
  test(`mutations made offline survive a reload and are confirmed, with ${kind}`, async () => {
    const { open } = tabs(make);
    const id = names * 100;
    const offline = opened(open(), OFFLINE);
    await until("the storage", () => offline.client.status.state === "connecting", everyTurn);
    const lost = offline.client.mutate.add({ id, text: "offline" });
    const closed = assert.rejects(lost.confirmed, { code: "closed" });
    const refused: string[] = [];
    await stored(names, "mutations", 1);
    offline.client.close();
    await closed;

    const again = opened(open(), { onRefused: ({ code }: { code: string }) => refused.push(code) });
    await until("the confirmation", () => again.client.pendingMutations === 0 && again.view.status === "complete" && again.view.rows.some((row) => row.id === id), everyTurn);
    await stored(names, "mutations", 0);
    assert.deepEqual(refused, []);
    // Its ids go on where the first process left off.
    await again.client.mutate.add({ id: id + 1, text: "online" }).confirmed;
    again.client.close();
  });

  test(`tabs share one queue, in order, and another becomes the writer, with ${kind}`, async () => {
    const { open } = tabs(make);
    const base = names * 100;
    const [a, b] = [opened(open()), opened(open())];
    await Promise.all([a.view.complete(), b.view.complete()]);
    const made = [a, b, a, b, b, a].map(({ client }, index) => client.mutate.add({ id: base + index, text: `${index}` }));
    await Promise.all(made.map(({ confirmed }) => confirmed));
    const ids = (view: typeof a.view): number[] => view.rows.map(({ id }) => id).filter((id) => id >= base && id < base + 100);
    assert.deepEqual(ids(a.view), [0, 1, 2, 3, 4, 5].map((index) => base + index));
    // A refusal is told to who made it.
    await assert.rejects(b.client.mutate.add({ id: base, text: "again" }).confirmed, { code: "conflict" });
    a.client.close();
    await b.client.mutate.add({ id: base + 6, text: "alone" }).confirmed;
    assert.equal(ids(b.view).length, 7);
    b.client.close();
  });
}

test("what a tab makes and closes upon at once is sent by the writer", async () => {
  const { open } = tabs(locks);
  const id = names * 100;
  const [a, b] = [opened(open()), opened(open())];
  await Promise.all([a.view.complete(), b.view.complete()]);
  b.client.mutate.add({ id, text: "closed at once" });
  b.client.close();
  await until("the writer", () => a.view.rows.some((row) => row.id === id) && a.client.pendingMutations === 0, everyTurn);
  a.client.close();
});

for (const [kind, make] of Object.entries(KINDS)) {
  test(`a refusal is told once: by its maker while that is there, else by the tab that sends, with ${kind}`, async () => {
    const { open } = tabs(make);
    const id = names * 100;
    const told: string[] = [];
    const tab = (name: string, options = {}) =>
      opened(open(), { onRefused: ({ code }: { code: string }, { args }: { args: { text: string } }) => told.push(`${name} ${code} ${args.text}`), ...options });
    const b = tab("b");
    await b.client.mutate.add({ id, text: "there already" }).confirmed;
    const a = tab("a", OFFLINE);
    await until("the storage", () => a.client.status.state === "connecting", everyTurn);
    a.client.mutate.add({ id, text: "first" });
    await until("the other tab", () => b.client.pendingMutations > 0 || told.length > 0, everyTurn);
    const c = tab("c");
    await until("the refusal", () => told.length > 0 && b.client.pendingMutations === 0 && c.client.pendingMutations === 0, everyTurn);
    a.client.mutate.add({ id, text: "second" });
    a.client.close();
    await until("the refusal", () => told.length > 1 && b.client.pendingMutations === 0 && c.client.pendingMutations === 0, everyTurn);
    // Whatever else is told would have been told by then.
    await b.client.mutate.add({ id: id + 1, text: "taken" }).confirmed;
    assert.deepEqual(told, ["a conflict first", "b conflict second"]);
    for (const { client } of [b, c]) client.close();
  });
}

test("a tab that opens while mutations are under way sees all of them settled", async () => {
  const { open } = tabs(locks);
  const base = names * 100;
  const a = opened(open());
  await a.view.complete();
  const made: Promise<void>[] = [];
  const late: ReturnType<typeof opened>[] = [];
  for (let id = base; id < base + 40; id += 1) {
    const { confirmed } = a.client.mutate.add({ id, text: "under way" });
    made.push(confirmed);
    if (id % 5 === 0) late.push(opened(open()));
    if (id % 3 === 0) await confirmed;
  }
  await Promise.all(made);
  await until("the others", () => late.every(({ client, view }) => client.pendingMutations === 0 && view.rows.length === a.view.rows.length), everyTurn);
  for (const { client } of [a, ...late]) client.close();
});

test("what the server says under pending rows is kept", async () => {
  const { open } = tabs(locks);
  const contents = async () => (await recordsOf(`tidegate:storage-${names}`, "contents"))[0] as { rows: unknown[] }[];
  const stage = new Stage<typeof mutators>({ storage: open(), mutators });
  stage.client.view(QUERY);
  await until("a connection", () => stage.peers.length > 0, everyTurn);
  const peer = await stage.accept();
  peer.say(subscribed(1, 7, false, NOTES), batch(1, 7, 0, 5, [["+", 0, 1, [1, "before"]]]), progress(5));
  stage.client.mutate.add({ id: 2, text: "made here" });
  for (const from = Date.now(); (await contents())[0]?.rows.length !== 1; ) assert.ok(Date.now() - from < 10_000);
  peer.say(batch(1, 7, 1, 6, [["+", 0, 1, [2, "made here"]]]), progress(6));
  for (const from = Date.now(); (await contents())[0]?.rows.length !== 2; ) assert.ok(Date.now() - from < 10_000);
  stage.client.close();
});

test("a mutation is forgotten only when the rows that have it are kept", async () => {
  const { open } = tabs(locks);
  const stage = new Stage<typeof mutators>({ storage: open(), mutators });
  stage.client.view(QUERY);
  await until("a connection", () => stage.peers.length > 0, everyTurn);
  const peer = await stage.accept();
  peer.say(subscribed(0, 7, false, OWN), batch(0, 7, 0, 5, [["+", 0, 1, ["c", 0]]]), subscribed(1, 7, false, NOTES), batch(1, 7, 0, 5, [["+", 0, 1, [1, "before"]]]), progress(5));
  await stored(names, "contents", 1);
  const { confirmed } = stage.client.mutate.add({ id: 2, text: "made here" });
  await until("the push", () => peer.asked("push").length > 0, everyTurn);
  peer.say({ push_result: { id: 1, error: null } }, batch(0, 7, 1, 6, [["~", 0, 1, ["c", 1]]]), batch(1, 7, 1, 6, [["+", 0, 1, [2, "made here"]]]), progress(6));
  await confirmed;
  assert.equal(stage.client.pendingMutations, 0);
  for (const from = Date.now(); ; ) {
    const [kept, contents] = await recordsOf(`tidegate:storage-${names}`, "mutations", "contents");
    const { rows } = contents![0] as { rows: unknown[] };
    if (kept!.length === 0) {
      assert.equal(rows.length, 2);
      break;
    }
    assert.ok(Date.now() - from < 10_000);
  }
  // An answer may come after the rows, when no result changes any more.
  stage.client.mutate.add({ id: 3, text: "answered late" });
  await until("the push", () => peer.asked("push").length > 1, everyTurn);
  peer.say(batch(0, 7, 2, 7, [["~", 0, 1, ["c", 2]]]), batch(1, 7, 2, 7, [["+", 0, 1, [3, "answered late"]]]), progress(7));
  for (const from = Date.now(); ; ) {
    const [contents] = await recordsOf(`tidegate:storage-${names}`, "contents");
    if ((contents![0] as { rows: unknown[] }).rows.length === 3) break;
    assert.ok(Date.now() - from < 10_000);
  }
  peer.say({ push_result: { id: 2, error: null } });
  await stored(names, "mutations", 0);
  stage.client.close();
});

test("a pending mutation shows in other tabs too", async () => {
  const { open } = tabs(locks);
  const [a, b] = [opened(open(), OFFLINE), opened(open(), OFFLINE)];
  await until("both have opened", () => a.client.status.state === "connecting" && b.client.status.state === "connecting", everyTurn);
  await stored(names, "meta", 1);
  a.client.mutate.add({ id: 1, text: "a" });
  await until("the other tab", () => b.client.pendingMutations === 1, everyTurn);
  a.client.close();
  b.client.close();
});

test("mutations whose ids are noted only when their connection is gone are sent by the next one, in order", async () => {
  const noted: ((own: boolean) => void)[] = [];
  const storage: Storage = {
    open: async ({ writer }) => {
      queueMicrotask(() => writer(true));
      return { clientId: "c", cv: 0, queries: new Map(), mutations: [] };
    },
    changed: () => {},
    addMutation: async () => {},
    number: () => new Promise((resolve) => noted.push(resolve)),
    tells: async () => true,
    answered: () => {},
    settle: async () => {},
    close: () => {},
  };
  const stage = new Stage<typeof mutators>({ mutators, storage, backoffMs: 1 });
  clients.push(stage.client);
  const pushed = (peer: Peer): number[][] => peer.asked("push").map((push) => push.mutations.map(({ id }: { id: number }) => id));
  const count = [subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, [["+", 0, 1, ["c", 0]]])];
  const first = (await stage.accept()).say(...count);
  stage.client.mutate.add({ id: 1, text: "a" });
  stage.client.mutate.add({ id: 2, text: "b" });
  noted[0]!(true);
  await stage.settle();
  assert.deepEqual(pushed(first), [[1]]);
  first.events.closed("gone");
  await until("another connection", () => stage.peers.length === 2, everyTurn);
  const second = await stage.accept();
  noted[1]!(true);
  await stage.settle();
  assert.deepEqual(pushed(second), [], "the server's count is not known yet");
  second.say(...count);
  noted[2]!(true);
  await stage.settle();
  assert.deepEqual(pushed(second), [[1, 2]]);
  stage.client.mutate.add({ id: 3, text: "c" });
  noted[3]!(false);
  await stage.settle();
  assert.deepEqual(pushed(second), [[1, 2]], "another sends it by now");
});

test("a tab whose lease another has taken neither numbers nor sends, and begins anew when it is its turn again", async () => {
  const name = `storage-${(names += 1)}`;
  const storage = indexedDbStorage({ name, locks: null, leaseMs: 150 });
  const told: string[] = [];
  await storage.open({
    writer: (writes) => told.push(`writer ${writes}`),
    added: (mutations) => told.push(`added ${mutations.map(({ ticket }) => ticket)}`),
    numbered: (ids) => told.push(`numbered ${ids}`),
    answered() {},
    failed: (error) => told.push(String(error)),
  });
  await until("its turn", () => told.includes("writer true"), everyTurn);
  await storage.addMutation({ ticket: "a", name: "add", args: {}, ops: [] });
  assert.equal(await storage.number([["a", 1]]), true);
  await storage.addMutation({ ticket: "b", name: "add", args: {}, ops: [] });
  told.length = 0;
  await putLease(name, { owner: "another", until: Date.now() + 60_000 });
  assert.equal(await storage.number([["b", 2]]), false);
  assert.equal(told[0], "writer false");
  const kept = async () => ((await recordsOf(`tidegate:${name}`, "mutations"))[0] as { ticket: string; id?: number }[]).map(({ ticket, id }) => [ticket, id]);
  assert.deepEqual(await kept(), [["a", 1], ["b", undefined]]);
  await until("what is kept", () => told.includes("added a,b"), everyTurn);
  assert.deepEqual(told, ["writer false", "numbered a,1", "added a,b"]);
  assert.equal(await storage.number([["b", 2]]), false, "it is known not to be the writer");
  await putLease(name, undefined);
  await until("its turn", () => told.includes("writer true"), everyTurn);
  assert.equal(await storage.number([["b", 2]]), true);
  assert.deepEqual(await kept(), [["a", 1], ["b", 2]]);
  storage.close();
});

for (const [kind, make] of Object.entries(KINDS)) {
  test(`of a refusal the maker tells while it is there, else who sends, with ${kind}`, async () => {
    const { open } = tabs(make);
    const none = { added() {}, numbered() {}, answered() {}, failed() {} };
    const [sender, maker, other] = [open(), open(), open()];
    let writes = false;
    await sender.open({ ...none, writer: (own) => void (writes = own) });
    await until("its turn", () => writes, everyTurn);
    await maker.open({ ...none, writer() {} });
    await maker.addMutation({ ticket: "a", name: "add", args: {}, ops: [] });
    const [mutation] = (await other.open({ ...none, writer() {} })).mutations;
    assert.equal(await sender.tells(mutation!), false);
    maker.close();
    while (!(await sender.tells(mutation!))); // a lock is given back a little later
    assert.equal(await other.tells(mutation!), false);
    if (kind === "a lease") {
      // One that crashed has said for how long it is there, and says it no more.
      await putMeta(`storage-${names}`, "tabs", { [(mutation as { maker?: string }).maker!]: Date.now() + 100 });
      assert.equal(await sender.tells(mutation!), true);
    }
    assert.equal(await sender.tells({ ticket: "b", name: "add", args: {}, ops: [] }), true, "nobody knows who made it");
    for (const storage of [other, sender]) storage.close();
  });
}

/** A tab that has taken a lease, which it does not look at again. */
async function holder() {
  const name = `storage-${(names += 1)}`;
  const storage = indexedDbStorage({ name, locks: null, leaseMs: 60_000 });
  const seen = { writes: false };
  await storage.open({ writer: (own) => void (seen.writes = own), added() {}, numbered() {}, answered() {}, failed() {} });
  await until("its turn", () => seen.writes, everyTurn);
  return { name, storage, seen };
}

test("a lease that another has taken and given back is lost as well", async () => {
  const { name, storage, seen } = await holder();
  await putLease(name, undefined);
  assert.equal(await storage.number([]), false);
  assert.equal(seen.writes, false);
  storage.close();
});

test("a tab that ends leaves alone the lease that another has taken", async () => {
  const { name, storage } = await holder();
  const lease = { owner: "another", until: Date.now() + 60_000 };
  await putLease(name, lease);
  storage.close();
  const [meta] = await recordsOf(`tidegate:${name}`, "meta");
  assert.deepEqual(meta!.filter((record) => Object.hasOwn(record as object, "owner")), [lease]);
});

test("a storage that fails is told of, and the client does without", async () => {
  const errors: string[] = [];
  const broken = { open: () => { throw new Error("no space"); } } as unknown as IDBFactory;
  const { client } = opened(indexedDbStorage({ name: "broken", indexedDB: broken, locks: null }), {
    onError: ({ code, message }: { code: string; message: string }) => errors.push(`${code}: ${message}`),
  });
  await client.mutate.add({ id: 1_000_000, text: "kept nowhere" }).confirmed;
  assert.ok(errors.length > 0 && errors[0] === "storage: no space", String(errors));
  client.close();
});

test("where results cannot be kept, mutations are forgotten all the same", async () => {
  const name = `storage-${(names += 1)}`;
  const storage = indexedDbStorage({ name, locks: null, saveAfterMs: 0 });
  const failures: Error[] = [];
  await storage.open({ writer() {}, added() {}, numbered() {}, answered() {}, failed: (error) => failures.push(error) });
  await storage.addMutation({ ticket: "t", name: "add", args: {}, ops: [] });
  await storage.settle("t", 1, false);
  const content = () => ({ layout: { tables: [], places: [] }, rows: [() => "nothing that a database holds"] }) as unknown as Content;
  storage.changed(() => ({ cv: 1, queries: [{ key: "a", resume: undefined, version: 1, content }] }));
  await stored(names, "mutations", 0);
  assert.equal(failures.length, 1, String(failures));
  storage.close();
});

test("the results that were not saved for longest go first", async () => {
  const name = `storage-${(names += 1)}`;
  const storage = indexedDbStorage({ name, locks: null, queriesMax: 2, saveAfterMs: 0 });
  await storage.open({ writer() {}, added() {}, numbered() {}, answered() {}, failed() {} });
  const content = () => ({ layout: { tables: [], places: [] }, rows: [] });
  for (const [index, key] of ["a", "b", "c"].entries()) {
    const from = Date.now();
    while (Date.now() === from); // saved at different times
    storage.changed(() => ({ cv: 1, queries: [{ key, resume: undefined, version: index, content }] }));
    if (index < 2) await stored(names, "contents", index + 1);
  }
  await until("the third is kept", () => keysOf.has("c"), (look) => {
    const timer = setInterval(() => void keys(`tidegate:${name}`).then(look), 5);
    return () => clearInterval(timer);
  });
  storage.close();
  const again = indexedDbStorage({ name, locks: null });
  const { queries } = await again.open({ writer() {}, added() {}, numbered() {}, answered() {}, failed() {} });
  assert.deepEqual([...queries.keys()].sort(), ["b", "c"]);
  again.close();
});

/** Has somebody else hold the lease, or nobody. */
const putLease = (name: string, lease: { owner: string; until: number } | undefined) => putMeta(name, "writer", lease);

function putMeta(name: string, key: string, value: object | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(`tidegate:${name}`);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const transaction = request.result.transaction("meta", "readwrite");
      const meta = transaction.objectStore("meta");
      if (value) meta.put(value, key);
      else meta.delete(key);
      transaction.oncomplete = () => (request.result.close(), resolve());
    };
  });
}

/** Looks again and again: what is waited for has no event of its own. */
function everyTurn(look: () => void): () => void {
  const timer = setInterval(look, 1);
  return () => clearInterval(timer);
}

const keysOf = new Set<string>();
/** Gathers the keys of kept results. */
function keys(database: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const reading = request.result.transaction(["contents"]).objectStore("contents").getAllKeys();
      reading.onsuccess = () => {
        request.result.close();
        for (const key of reading.result) keysOf.add(String(key));
        resolve();
      };
    };
  });
}

/** The records of stores, as they are at one time. */
function recordsOf(database: string, ...stores: string[]): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database);
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const transaction = request.result.transaction(stores);
      const readings = stores.map((store) => transaction.objectStore(store).getAll());
      transaction.oncomplete = () => {
        request.result.close();
        resolve(readings.map(({ result }) => result));
      };
    };
  });
}

/** Waits until a store of the storage of that number has so many records, or more where some are wanted. */
async function stored(number: number, store: string, wanted: number): Promise<void> {
  for (const from = Date.now(); ; ) {
    const [records] = await recordsOf(`tidegate:storage-${number}`, store);
    const count = records!.length;
    if (wanted === 0 ? count === 0 : count >= wanted) return;
    if (Date.now() - from > 10_000) throw new Error(`${store} has ${count} records, not ${wanted}`);
  }
}

test("a kept result that cannot be read is told of, and asked for anew", async () => {
  const errors: string[] = [];
  const broken = { layout: { tables: [], places: [] }, rows: [] };
  const storage: Storage = {
    open: (events) => {
      events.writer(true);
      return Promise.resolve({ clientId: "kept", cv: 5, mutations: [], queries: new Map([[QUERY.key, { cv: 5, resume: undefined, content: broken }]]) });
    },
    changed() {}, addMutation: () => Promise.resolve(), number: () => Promise.resolve(true), tells: () => Promise.resolve(true), answered() {}, settle: () => Promise.resolve(), close() {},
  };
  const { client, view } = opened(storage, { onError: ({ message }: { message: string }) => errors.push(message) });
  await view.complete();
  assert.match(errors.join(), /0 places/);
  await client.mutate.add({ id: 2_000_000, text: "still the same client" }).confirmed;
  client.close();
});
