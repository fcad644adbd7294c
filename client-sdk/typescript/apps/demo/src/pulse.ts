// How all of the page's queries stand together: whether each has its whole result, the commit that they show, and how
// many rows change.

import type { Query, TidegateClient, View, ViewState } from "@tidegate/client";
import { useQuery } from "@tidegate/react";
import { useEffect, useSyncExternalStore } from "react";
import { client } from "./client.js";

interface Watched {
  readonly view: View<unknown>;
  users: number;
}

/** The same object until something changes. */
export interface PulseState {
  readonly cv: number;
  /** Whether every query shows its whole result. */
  readonly complete: boolean;
}

class Pulse {
  readonly #client: TidegateClient<any>;
  readonly #watched = new Map<string, Watched>();
  readonly #listeners = new Set<() => void>();
  #state: PulseState = { cv: 0, complete: false };
  #changes = 0;

  constructor(client: TidegateClient<any>) {
    this.#client = client;
  }

  /** Counts a query in, until the function that it returns is called. */
  watch(query: Query): () => void {
    let watched = this.#watched.get(query.key);
    if (!watched) {
      watched = { view: this.#client.view(query), users: 0 };
      watched.view.subscribe(({ changes }) => {
        this.#changes += changes.length;
        this.#look();
      });
      this.#watched.set(query.key, watched);
      this.#look();
    }
    const { view } = watched;
    watched.users += 1;
    return () => {
      watched.users -= 1;
      if (watched.users > 0) return;
      this.#watched.delete(query.key);
      view.close();
      this.#look();
    };
  }

  /** How many rows have changed since the last call. */
  takeChanges(): number {
    const changes = this.#changes;
    this.#changes = 0;
    return changes;
  }

  readonly state = (): PulseState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #look(): void {
    const { cv } = this.#client;
    const complete = [...this.#watched.values()].every(({ view }) => view.status === "complete");
    if (cv === this.#state.cv && complete === this.#state.complete) return;
    this.#state = { cv, complete };
    for (const listener of [...this.#listeners]) listener();
  }
}

export const pulse = new Pulse(client);
export const usePulse = (): PulseState => useSyncExternalStore(pulse.subscribe, pulse.state);

/** As `useQuery`, of a query that the page's pulse counts in. */
export function useLive<Row>(query: Query<Row> | null): ViewState<Row> {
  useEffect(() => (query ? pulse.watch(query) : undefined), [query?.key]);
  return useQuery(query);
}
