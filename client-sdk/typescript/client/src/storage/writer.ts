// Which of several tabs sends mutations: one at a time, and another when it is gone. And which tabs are there.

/** What is needed of Web Locks. */
export interface LockManagerLike {
  request<T>(name: string, options: { signal?: AbortSignal; ifAvailable?: boolean }, held: (lock: unknown) => Promise<T>): Promise<T>;
}

/** The key of the writer's lease. */
const LEASE = "writer";
/** The key of the tabs that are there, each with the moment until which it counts as there. */
const TABS = "tabs";
/** How long those that are gone are remembered, milliseconds. */
const GONE_MS = 3_600_000;

interface Lease {
  readonly owner: string;
  readonly until: number;
}
type Tabs = Readonly<Record<string, number>>;

/** A tab that is the writer, or waits to be. */
export interface Writer {
  /** Whether it is the writer, asked in a transaction over the store that holds the lease. */
  holds(store: IDBObjectStore): Promise<boolean>;
  /** Whether a tab is there. */
  isThere(tab: string): Promise<boolean>;
  /** Lets another be the writer; the tab is there no more. */
  end(): void;
}

/** Waits for a Web Lock, and holds it until it ends or the tab is gone; so long it holds one of its own, too. */
export function lockWriter(locks: LockManagerLike, name: string, tab: string, told: (writes: boolean) => void): Writer {
  const waiting = new AbortController();
  const lockOf = (tab: string): string => `${name}:${tab}`;
  let release = (): void => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  const hold = (lock: string, begun: () => void): void => {
    const holding = (): Promise<void> => {
      begun();
      return held;
    };
    locks.request(lock, { signal: waiting.signal }, holding).catch(() => {}); // given up while waiting
  };
  hold(lockOf(tab), () => {});
  hold(name, () => told(true));
  return {
    holds: () => Promise.resolve(true),
    isThere: (other) => locks.request(lockOf(other), { ifAvailable: true }, (lock) => Promise.resolve(lock === null)),
    end() {
      waiting.abort();
      release();
    },
  };
}

/** Runs a step in a transaction over the store that holds the leases. */
export type InLeaseStore = <T>(step: (store: IDBObjectStore) => Promise<T>) => Promise<T>;

/** Takes a lease when nobody holds one, and renews it until it ends; with it, that the tab is there. */
export function leaseWriter(inStore: InLeaseStore, leaseMs: number, tab: string, told: (writes: boolean) => void): Writer {
  let writes = false;
  let ended = false;
  const take = async (store: IDBObjectStore): Promise<boolean> => {
    const lease = await read<Lease>(store, LEASE);
    // A writer that hung may find that another held the lease since. It does not know then what the other has done, and
    // is to begin anew.
    const mine = lease?.owner === tab || (!writes && (!lease || lease.until < Date.now()));
    if (mine) store.put({ owner: tab, until: Date.now() + leaseMs } satisfies Lease, LEASE);
    return mine;
  };
  const become = (mine: boolean): void => {
    if (ended || mine === writes) return;
    writes = mine;
    told(mine);
  };
  const renew = async (store: IDBObjectStore): Promise<boolean> => {
    const now = Date.now();
    const others = Object.entries((await read<Tabs>(store, TABS)) ?? {}).filter(([, until]) => until > now - GONE_MS);
    store.put({ ...Object.fromEntries(others), [tab]: now + leaseMs } satisfies Tabs, TABS);
    return take(store);
  };
  const look = async (): Promise<void> => become(await inStore(renew).catch(() => false));
  const timer = setInterval(() => void look(), leaseMs / 3);
  (timer as { unref?: () => void }).unref?.();
  void look();
  return {
    async holds(store) {
      const mine = writes && (await take(store));
      become(mine);
      return mine;
    },
    async isThere(other) {
      const until = async (): Promise<number | undefined> => (await inStore((store) => read<Tabs>(store, TABS)))?.[other];
      const before = await until();
      if (before === undefined || before < Date.now()) return false;
      await new Promise((resolve) => setTimeout(resolve, leaseMs));
      // One that has ended meanwhile was there; one that was gone already has not renewed it.
      return (await until()) !== before;
    },
    end() {
      ended = true;
      clearInterval(timer);
      const release = async (store: IDBObjectStore): Promise<void> => {
        const { [tab]: _, ...others } = (await read<Tabs>(store, TABS)) ?? {};
        store.put(others satisfies Tabs, TABS);
        if ((await read<Lease>(store, LEASE))?.owner === tab) store.delete(LEASE);
      };
      void inStore(release).catch(() => {});
    },
  };
}

function read<T>(store: IDBObjectStore, key: string): Promise<T | undefined> {
  const request = store.get(key) as IDBRequest<T | undefined>;
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("IndexedDB failed"));
  });
}
