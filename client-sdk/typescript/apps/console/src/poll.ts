// Asks for something again and again, as long as somebody looks and the page is visible. What there is not is asked for
// once: it is looked for again when somebody comes back to it.

import { useMemo, useSyncExternalStore } from "react";
import { json, NotFound } from "./api.js";

/** The time between an answer and the next question, milliseconds. */
const PAUSE_MS = 1_000;

/** What is known. After a failure the last answer stays. */
export interface Polled<T> {
  readonly answer: T | undefined;
  /** Why the last question was not answered. */
  readonly error: Error | undefined;
}

/** See the file's head. */
export class Poll<T> {
  readonly #listeners = new Set<() => void>();
  #state: Polled<T> = { answer: undefined, error: undefined };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking = false;

  constructor(readonly ask: () => Promise<T>) {}

  readonly state = (): Polled<T> => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) {
      document.addEventListener("visibilitychange", this.#look);
      this.#look();
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      document.removeEventListener("visibilitychange", this.#look);
      clearTimeout(this.#timer);
    };
  };

  readonly #look = (): void => {
    clearTimeout(this.#timer);
    if (!this.#asking && !document.hidden && this.#listeners.size > 0) void this.#once();
  };

  async #once(): Promise<void> {
    this.#asking = true;
    try {
      this.#state = { answer: await this.ask(), error: undefined };
    } catch (error) {
      this.#state = { ...this.#state, error: error as Error };
    }
    this.#asking = false;
    for (const listener of [...this.#listeners]) listener();
    clearTimeout(this.#timer);
    if (this.#state.error instanceof NotFound) return;
    this.#timer = setTimeout(this.#look, PAUSE_MS);
  }
}

export function usePoll<T>(poll: Poll<T>): Polled<T> {
  return useSyncExternalStore(poll.subscribe, poll.state);
}

/** Follows the JSON at a path. */
export function usePolled<T>(path: string): Polled<T> {
  return usePoll(useMemo(() => new Poll(() => json<T>(path)), [path]));
}
