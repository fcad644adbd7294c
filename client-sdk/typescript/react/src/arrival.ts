// What suspended components wait for.
//
// React keeps nothing of a first render that suspends: the next one begins anew, and would ask anew for a query that has
// failed. So what such renders wait for, and how it ended, is kept here, by client and query.

import type { Query, TidegateClient, TidegateError, View } from "@tidegate/client";

/** How long a failure is kept for renders to throw it, milliseconds; whoever renders later asks anew. */
const FAILED_MS = 1_000;

interface Arrival {
  /** Keeps the query alive. */
  readonly view: View<any>;
  /** Resolves when the query has something to show, or has failed. */
  readonly promise: Promise<void>;
  failed: boolean;
}

const arrivals = new WeakMap<TidegateClient<any>, Map<string, Arrival>>();

/** Why a query that was waited for has failed just now; null when it has not, or is asked again already. */
export function failure(client: TidegateClient<any>, { key }: Query<any>): TidegateError | null {
  return arrivals.get(client)?.get(key)?.view.error ?? null;
}

/** Resolves when a query has something to show, or has failed, and keeps it alive until then. */
export function arrival(client: TidegateClient<any>, query: Query<any>): Promise<void> {
  const { key } = query;
  let own = arrivals.get(client);
  if (!own) arrivals.set(client, (own = new Map()));
  const known = own.get(key);
  if (known && !known.failed) return known.promise;
  const view = client.view(query);
  let resolve = (): void => {};
  const made: Arrival = { view, promise: new Promise((done) => (resolve = done)), failed: false };
  own.set(key, made);
  const forget = (): void => {
    view.close();
    if (own.get(key) === made) own.delete(key);
  };
  const look = (): void => {
    if (made.failed || view.status === "connecting") return;
    made.failed = view.error !== null;
    if (made.failed) (setTimeout(forget, FAILED_MS) as { unref?: () => void }).unref?.();
    else forget();
    resolve();
  };
  view.subscribe(look);
  look();
  return made.promise;
}
