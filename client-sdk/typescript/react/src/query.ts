// Live queries in components.
//
// A component's first render already opens its query, so that rows that are held show in the first paint; a render that
// React throws away leaves nothing behind, since a query without a subscriber ends by itself after a while. Components
// with equal queries share one subscription.

import type { Query, TidegateClient, View, ViewState } from "@tidegate/client";
import { useMemo, useSyncExternalStore } from "react";
import { arrival, failure } from "./arrival.js";
import { useTidegate } from "./context.js";

const IDLE: ViewState<never> = Object.freeze({ rows: Object.freeze([]), status: "connecting", error: null });
const NOTHING = { subscribe: () => () => {}, state: () => IDLE };

/** A query's state as React reads it. */
interface Store<Row> {
  readonly subscribe: (changed: () => void) => () => void;
  readonly state: () => ViewState<Row>;
}

function storeOf<Row>(client: TidegateClient<any>, query: Query<Row>): Store<Row> {
  let view: View<Row> = client.view(query);
  // It lives on for a while, until the component subscribes.
  view.close();
  return {
    subscribe: (changed) => {
      view = client.view(query);
      const stop = view.subscribe(changed);
      return () => {
        stop();
        view.close();
      };
    },
    state: () => view.state,
  };
}

function useStore<Row>(client: TidegateClient<any>, query: Query<Row> | null | undefined): ViewState<Row> {
  // Equal queries have equal keys, so that a query may be written where it is used.
  const store = useMemo<Store<Row>>(() => (query ? storeOf(client, query) : NOTHING), [client, query?.key]);
  return useSyncExternalStore(store.subscribe, store.state, store.state);
}

/**
 * The rows of a live query with what is known of them. Whatever does not change is the same object from render to
 * render, so that memoized components stay as they are. Without a query it waits.
 */
export function useQuery<Row>(query: Query<Row> | null | undefined): ViewState<Row> {
  return useStore(useTidegate(), query);
}

/**
 * As `useQuery`, but waits in the nearest `<Suspense>` until there are rows, and throws the query's failure to the
 * nearest error boundary.
 *
 * @throws {TidegateError} when the query has failed.
 */
export function useSuspenseQuery<Row>(query: Query<Row>): ViewState<Row> {
  const client = useTidegate();
  const error = failure(client, query);
  if (error) throw error;
  const state = useStore(client, query);
  if (state.status === "connecting") throw arrival(client, query);
  if (state.error) throw state.error;
  return state;
}
