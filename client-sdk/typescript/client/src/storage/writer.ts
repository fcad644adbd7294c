// Which of several tabs sends mutations: one at a time, and another when it is gone.

import { uniqueName } from "../name.js";

/** What is needed of Web Locks. */
export interface LockManagerLike {
  request(name: string, options: { signal: AbortSignal }, held: () => Promise<void>): Promise<unknown>;
}

/** The key of the lease. */
const LEASE = "writer";

interface Lease {
  readonly owner: string;
  readonly until: number;
}

/** A tab that is the writer, or waits to be. */
export interface Writer {
  /** Whether it is the writer, asked in a transaction over the store that holds the lease. */
  holds(store: IDBObjectStore): Promise<boolean>;
  /** Lets another be the writer. */
  end(): void;
}

/** Waits for a Web Lock, and holds it until it ends or the tab is gone. */
export function lockWriter(locks: LockManagerLike, name: string, told: (writes: boolean) => void): Writer {
  const waiting = new AbortController();
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  locks
    .request(name, { signal: waiting.signal }, () => {
      told(true);
      return held;
    })
    .catch(() => {}); // given up while waiting
  const end = (): void => {
    waiting.abort();
    release();
  };
  return { holds: () => Promise.resolve(true), end };
}

/** Runs a step in a transaction over the store that holds the lease. */
export type InLeaseStore = (step: (store: IDBObjectStore) => Promise<boolean>) => Promise<boolean>;

/** Takes a lease when nobody holds one, and renews it until it ends. */
export function leaseWriter(inStore: InLeaseStore, leaseMs: number, told: (writes: boolean) => void): Writer {
  const owner = uniqueName();
  let writes = false;
  let ended = false;
  const withLease = (store: IDBObjectStore, step: (lease: Lease | undefined) => boolean): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const request = store.get(LEASE) as IDBRequest<Lease | undefined>;
      request.onerror = () => reject(request.error ?? new Error("IndexedDB failed"));
      request.onsuccess = () => resolve(step(request.result));
    });
  const take = (store: IDBObjectStore): Promise<boolean> =>
    withLease(store, (lease) => {
      // A writer that hung may find that another held the lease since. It does not know then what the other has done, and
      // is to begin anew.
      const mine = lease?.owner === owner || (!writes && (!lease || lease.until < Date.now()));
      if (mine) store.put({ owner, until: Date.now() + leaseMs } satisfies Lease, LEASE);
      return mine;
    });
  const become = (mine: boolean): void => {
    if (ended || mine === writes) return;
    writes = mine;
    told(mine);
  };
  const look = async (): Promise<void> => become(await inStore(take).catch(() => false));
  const timer = setInterval(() => void look(), leaseMs / 3);
  (timer as { unref?: () => void }).unref?.();
  void look();
  return {
    async holds(store) {
      const mine = writes && (await take(store));
      become(mine);
      return mine;
    },
    end() {
      ended = true;
      clearInterval(timer);
      const release = (store: IDBObjectStore) => withLease(store, (lease) => lease?.owner === owner && Boolean(store.delete(LEASE)));
      if (writes) void inStore(release).catch(() => {});
    },
  };
}
