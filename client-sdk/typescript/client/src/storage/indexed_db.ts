// A storage in IndexedDB, shared by all tabs of an origin that use its name.
//
// One tab at a time is the writer, who sends the mutations of all: the holder of a Web Lock, or where there are none
// the holder of a lease that is kept in the database. Tabs tell each other of mutations over a BroadcastChannel, once
// the database has them. What is there is read anew when something was added: a message may be late, when the mutation
// is settled already. What is told while a tab reads is taken in afterwards, since what it reads may be older.

import { uniqueName } from "../name.js";
import type { Mutation } from "../state/mutations.js";
import type { Content } from "../state/subscription.js";
import type { ErrorBody, Resume } from "../wire/messages.js";
import { Keeper, type SavedQuery } from "./keeper.js";
import type { KeptQuery, Numbered, Storage, StorageEvents, Stored, StoredQuery } from "./storage.js";
import { leaseWriter, lockWriter, type LockManagerLike, type Writer } from "./writer.js";

/** Settings of a storage. */
export interface IndexedDbOptions {
  /** Names the storage within its origin: one for each user and server. */
  readonly name: string;
  /** Most results that are kept; those that were not saved for longest go first. Default: 100. */
  readonly queriesMax?: number;
  /** How long results may change before they are kept, milliseconds. Default: 500. */
  readonly saveAfterMs?: number;
  /** Default: the global one. */
  readonly indexedDB?: IDBFactory;
  /** Web Locks; null for none. Default: the browser's, where it has them. */
  readonly locks?: LockManagerLike | null;
  /** How long a lease lasts where there are no Web Locks, milliseconds; it is renewed thrice in that time. Default: 6,000. */
  readonly leaseMs?: number;
}

const VERSION = 1;
const [QUERIES, CONTENTS, MUTATIONS, META] = ["queries", "contents", "mutations", "meta"] as const;
const CLIENT_ID = "client_id";

interface Position {
  readonly cv: number;
  readonly resume: Resume | undefined;
  readonly savedAt: number;
  /** Who saved the content. */
  readonly by: string;
}

interface KeptMutation extends Mutation {
  /** The tab that made it. */
  readonly maker?: string;
}

type Message =
  | { readonly added: true }
  | { readonly numbered: readonly Numbered[] }
  | { readonly answered: { readonly id: number; readonly error: ErrorBody | null } };

/** A storage that outlives reloads and is shared by tabs. */
export function indexedDbStorage(options: IndexedDbOptions): Storage {
  return new IndexedDbStorage(options);
}

class IndexedDbStorage implements Storage {
  readonly #options: IndexedDbOptions;
  readonly #name: string;
  readonly #tab = uniqueName();
  #opening: Promise<IDBDatabase> | undefined;
  #database: IDBDatabase | undefined;
  #channel: BroadcastChannel | undefined;
  #writer: Writer | undefined;
  #keeper: Keeper | undefined;
  #closed = false;
  /** Whether this tab is the writer, and whether its client knows. */
  #elected = false;
  #writes = false;
  /** Ends when what was read and told so far is taken in. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Ends when it is sure whose the ids are that were given last: others may tell of the same ones. */
  #numbering: Promise<unknown> = Promise.resolve();
  /** Whether reading anew waits for its turn. */
  #readDue = false;
  /** The ids of mutations that are forgotten when results are kept, by their tickets. */
  readonly #settled = new Map<string, number>();
  /** What others are still to be told, also when the storage is closed. */
  readonly #telling = new Set<Promise<unknown>>();

  constructor(options: IndexedDbOptions) {
    this.#options = options;
    this.#name = `tidegate:${options.name}`;
  }

  open(events: StorageEvents): Promise<Stored> {
    const opened = this.#load(events);
    // One step later than whoever waits for `opened`.
    this.#turn = opened.then(() => undefined).catch(() => {});
    return opened;
  }

  async #load(events: StorageEvents): Promise<Stored> {
    this.#listen(events);
    this.#keeper = new Keeper(this.#options.saveAfterMs ?? 500, (queries) => this.#save(queries), events.failed);
    const database = await (this.#opening = this.#connect());
    const [clientId, positions, contents, mutations] = await inTransaction(database, "readwrite", async (stores) => {
      const meta = stores(META);
      let id = (await result(meta.get(CLIENT_ID))) as string | undefined;
      if (id === undefined) await result(meta.put((id = uniqueName()), CLIENT_ID));
      return [id, await records<Position>(stores(QUERIES)), await records<Content>(stores(CONTENTS)), await mutationsOf(stores)] as const;
    });
    const queries = new Map<string, StoredQuery>();
    for (const [key, { cv, resume }] of positions) {
      const content = contents.get(key);
      if (content) queries.set(key, { cv, resume, content });
    }
    if (this.#closed) {
      database.close();
    } else {
      // Who made them may have gone before it could tell.
      if (mutations.some(({ id }) => id === undefined)) this.#tell({ added: true });
      this.#elect(events);
    }
    const cv = Math.max(0, ...[...queries.values()].map((query) => query.cv));
    return { clientId, cv, queries, mutations };
  }

  changed(present: () => { readonly cv: number; readonly queries: readonly KeptQuery[] }): void {
    this.#keeper?.changed(present);
  }

  async #save(queries: ReadonlyMap<string, SavedQuery>): Promise<void> {
    const savedAt = Date.now();
    const settled = new Map(this.#settled);
    const kept = this.#write(async (stores) => {
      if (settled.size > 0) await forget(stores, settled);
      const [positions, contents] = [stores(QUERIES), stores(CONTENTS)];
      for (const [key, { cv, resume, content }] of queries) {
        // Another tab may have saved its own since, of another commit; that stays as it is until the result changes.
        if (!content && ((await result(positions.get(key))) as Position | undefined)?.by !== this.#tab) continue;
        positions.put({ cv, resume, savedAt, by: this.#tab } satisfies Position, key);
        if (content) contents.put(content, key);
      }
      const all = [...(await records<Position>(positions))].sort(([, a], [, b]) => b.savedAt - a.savedAt);
      for (const [key] of all.slice(this.#options.queriesMax ?? 100)) {
        positions.delete(key);
        contents.delete(key);
      }
    });
    // Where results find no room, mutations are not to pile up as well.
    await kept.catch(() => this.#write((stores) => forget(stores, settled)));
    for (const [ticket, id] of settled) {
      this.#settled.delete(ticket);
      this.answered(id, null);
    }
    await kept;
  }

  addMutation(mutation: Mutation): Promise<void> {
    // The key counts up, so that mutations of all tabs are kept in the order in which they were made.
    const kept: KeptMutation = { ...mutation, maker: this.#tab };
    return this.#writeAndTell(async (stores) => void stores(MUTATIONS).add(kept), { added: true });
  }

  number(ids: readonly Numbered[]): Promise<boolean> {
    const byTicket = new Map(ids);
    const note = (mutation: Mutation, cursor: IDBCursorWithValue): void => {
      const id = byTicket.get(mutation.ticket);
      if (id !== undefined) cursor.update({ ...mutation, id });
    };
    const noted = this.#writeAndTell(async (stores) => {
      const own = await this.#writer!.holds(stores(META));
      if (own) await eachMutation(stores, note);
      return own;
    }, { numbered: ids });
    this.#numbering = Promise.allSettled([noted]);
    return noted;
  }

  async tells({ maker }: KeptMutation): Promise<boolean> {
    if (!this.#writes || !this.#writer) return false;
    // Told twice is better than not at all.
    return maker === undefined || !(await this.#writer.isThere(maker).catch(() => false));
  }

  answered(id: number, error: ErrorBody | null): void {
    this.#tell({ answered: { id, error } });
  }

  async settle(ticket: string, id: number, refused: boolean): Promise<void> {
    if (refused) await this.#writeAndTell((stores) => forget(stores, new Map([[ticket, id]])), { answered: { id, error: null } });
    else this.#settled.set(ticket, id);
  }

  close(): void {
    this.#keeper?.close();
    this.#writer?.end();
    this.#closed = true;
    this.#database?.close();
    if (this.#channel) this.#channel.onmessage = null;
    void Promise.allSettled(this.#telling).then(() => {
      this.#channel?.close();
      this.#channel = undefined;
    });
  }

  #listen(events: StorageEvents): void {
    if (typeof BroadcastChannel === "undefined") return;
    this.#channel = new BroadcastChannel(this.#name);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => {
      if ("added" in data) this.#readAnew(events);
      else if ("numbered" in data) this.#next(events, () => events.numbered(data.numbered));
      else this.#next(events, () => events.answered(data.answered.id, data.answered.error));
    };
    // A process that has nothing else to do may end.
    (this.#channel as { unref?: () => void }).unref?.();
  }

  #tell(message: Message): void {
    this.#channel?.postMessage(message);
  }

  /** Writes, and then tells others, unless nothing was written. */
  #writeAndTell<T>(work: (stores: Stores) => Promise<T>, message: Message): Promise<T> {
    const told = this.#write(work).then((written) => {
      if (written !== false) this.#tell(message);
      return written;
    });
    this.#telling.add(told);
    const done = (): boolean => this.#telling.delete(told);
    told.then(done, done);
    return told;
  }

  /** Has a step take its turn. */
  #next(events: StorageEvents, step: () => void | Promise<void>): void {
    const open = (): void | Promise<void> => (this.#closed ? undefined : step());
    this.#turn = this.#turn.then(() => this.#numbering).then(open).catch((error: Error) => {
      if (!this.#closed) events.failed(error);
    });
  }

  /** Takes in the mutations that the database has. */
  #readAnew(events: StorageEvents): void {
    if (this.#readDue) return;
    this.#readDue = true;
    this.#next(events, async () => {
      this.#readDue = false;
      const all = await inTransaction(this.#database!, "readonly", mutationsOf);
      if (this.#closed) return;
      // The writer has given all other ids itself; what has one may have been settled while it was read.
      const mutations = this.#writes ? all.filter(({ id }) => id === undefined) : all;
      // An id may have been given by a tab that could not tell of it any more.
      events.numbered(mutations.flatMap(({ ticket, id }) => (id === undefined ? [] : [[ticket, id] as const])));
      events.added(mutations);
    });
  }

  async #connect(): Promise<IDBDatabase> {
    const factory = this.#options.indexedDB ?? globalThis.indexedDB;
    const request = factory.open(this.#name, VERSION);
    request.onupgradeneeded = () => {
      for (const store of [QUERIES, CONTENTS, META]) request.result.createObjectStore(store);
      request.result.createObjectStore(MUTATIONS, { autoIncrement: true });
    };
    const database = await result(request);
    // A newer version of the application waits for older tabs to let go.
    database.onversionchange = () => database.close();
    return (this.#database = database);
  }

  /** Becomes the writer when it is this tab's turn. A new writer looks at what others have kept before it sends. */
  #elect(events: StorageEvents): void {
    const tell = (): void => events.writer((this.#writes = this.#elected));
    const told = (writes: boolean): void => {
      this.#elected = writes;
      // Who is it no more is told before anything else; the ids that it gave last are none.
      if (!writes) tell();
      this.#readAnew(events);
      if (writes) this.#next(events, tell);
    };
    const { locks = (globalThis.navigator as { locks?: LockManagerLike } | undefined)?.locks ?? null } = this.#options;
    this.#writer = locks
      ? lockWriter(locks, this.#name, this.#tab, told)
      : leaseWriter((step) => this.#write(async (stores) => step(stores(META))), this.#options.leaseMs ?? 6_000, this.#tab, told);
  }

  /** Writes in a transaction, which begins at once when the database is open, and takes place when it is closed later. */
  async #write<T>(work: (stores: Stores) => Promise<T>): Promise<T> {
    if (this.#closed) throw new Error("the storage is closed");
    const database = this.#database ?? (await this.#opening!);
    return inTransaction(database, "readwrite", work);
  }
}

type Stores = (name: string) => IDBObjectStore;

/** Runs work in one transaction over all stores; resolves when it is durable. */
function inTransaction<T>(database: IDBDatabase, mode: IDBTransactionMode, work: (stores: Stores) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction([QUERIES, CONTENTS, MUTATIONS, META], mode);
    const done = work((name) => transaction.objectStore(name));
    transaction.oncomplete = () => done.then(resolve, reject);
    transaction.onabort = () => reject(transaction.error ?? new Error("the transaction was aborted"));
    done.catch(() => transaction.abort());
  });
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB failed"));
  });
}

async function records<T>(store: IDBObjectStore): Promise<Map<string, T>> {
  const [keys, values] = [result(store.getAllKeys()), result(store.getAll())];
  const all = (await values) as T[];
  return new Map((await keys).map((key, index) => [String(key), all[index]!]));
}

/** The mutations in the order in which they were made. */
const mutationsOf = async (stores: Stores): Promise<Mutation[]> => (await result(stores(MUTATIONS).getAll())) as Mutation[];

function eachMutation(stores: Stores, visit: (mutation: Mutation, cursor: IDBCursorWithValue) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = stores(MUTATIONS).openCursor();
    request.onerror = () => reject(request.error ?? new Error("IndexedDB failed"));
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor) return resolve();
      visit(cursor.value as Mutation, cursor);
      cursor.continue();
    };
  });
}

const forget = (stores: Stores, settled: ReadonlyMap<string, number>): Promise<void> =>
  eachMutation(stores, ({ ticket }, cursor) => {
    if (settled.has(ticket)) cursor.delete();
  });
