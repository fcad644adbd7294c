// An application's hold on a live query. Views of equal queries share one subscription.

import { closed } from "./error.js";
import type { LiveQuery, Listener, ViewState } from "./live.js";

/** A live result; close it when it is no longer needed. */
export class View<Row> {
  readonly #live: LiveQuery;
  readonly #close: () => void;
  /** What is to be done when it is closed. */
  readonly #ends = new Set<() => void>();
  #closed = false;

  /** Called by the client. */
  constructor(live: LiveQuery, close: () => void) {
    this.#live = live;
    this.#close = close;
  }

  /** Rows, status and error together: the same object until one of them changes. */
  get state(): ViewState<Row> {
    return this.#live.state as ViewState<Row>;
  }

  /** The rows in the query's order. */
  get rows(): ViewState<Row>["rows"] {
    return this.state.rows;
  }

  /** How much the view knows. */
  get status(): ViewState<Row>["status"] {
    return this.state.status;
  }

  /** Why the query has failed, else null. */
  get error(): ViewState<Row>["error"] {
    return this.state.error;
  }

  /** Calls `listener` at each update; returns what ends that. */
  subscribe(listener: Listener<Row>): () => void {
    const own: Listener<Row> = (update) => listener(update);
    const end = (): void => {
      this.#ends.delete(end);
      this.#live.listeners.delete(own);
    };
    this.#ends.add(end);
    this.#live.listeners.add(own);
    return end;
  }

  /**
   * Resolves with the rows as soon as they are complete; rejects when the query fails, and with `closed` when the view or
   * its client is closed before.
   */
  complete(): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const { rows, status, error } = this.state;
        if (this.#closed) reject(closed("view"));
        else if (error) reject(error);
        else if (status === "complete") resolve(rows);
        else return;
        end();
        this.#ends.delete(look);
      };
      const end = this.subscribe(look);
      this.#ends.add(look);
      look();
    });
  }

  /** Ends this hold; the last one's end ends the subscription a little later. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const end of this.#ends) end();
    this.#close();
  }
}
