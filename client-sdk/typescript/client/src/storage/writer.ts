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

/** Waits for a Web Lock, and holds it until the function that it returns is called or the tab is gone. */
export function lockWriter(locks: LockManagerLike, name: string, told: (writes: boolean) => void): () => void {
  const waiting = new AbortController();
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  locks
    .request(name, { signal: waiting.signal }, () => {
      told(true);
      return held;
    })
    .catch(() => {}); // given up while waiting
  return () => {
    waiting.abort();
    release();
  };
}

/** Runs a step in a transaction over the store that holds the lease. */
export type InLeaseStore = (step: (store: IDBObjectStore) => Promise<boolean>) => Promise<boolean>;

/** Takes a lease when nobody holds one, and renews it until the function that it returns is called. */
export function leaseWriter(inStore: InLeaseStore, leaseMs: number, told: (writes: boolean) => void): () => void {
  const owner = uniqueName();
  let writes = false;
  let ended = false;
  const take = (store: IDBObjectStore): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const request = store.get(LEASE) as IDBRequest<Lease | undefined>;
      request.onerror = () => reject(request.error ?? new Error("IndexedDB failed"));
      request.onsuccess = () => {
        const lease = request.result;
        const mine = !lease || lease.owner === owner || lease.until < Date.now();
        if (mine) store.put({ owner, until: Date.now() + leaseMs } satisfies Lease, LEASE);
        resolve(mine);
      };
    });
  const look = async (): Promise<void> => {
    const mine = await inStore(take).catch(() => false);
    if (ended || mine === writes) return;
    writes = mine;
    told(mine);
  };
  const timer = setInterval(() => void look(), leaseMs / 3);
  (timer as { unref?: () => void }).unref?.();
  void look();
  return () => {
    ended = true;
    clearInterval(timer);
    if (writes) void inStore((store) => Promise.resolve(Boolean(store.delete(LEASE)))).catch(() => {});
  };
}
