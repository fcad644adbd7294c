// Brings mutations to the application's own backend: in order, one request at a time, again until it answers. It stands
// apart from the client so that an application downloads it only when it asks for it.

import type { Backoff } from "../connection/backoff.js";
import type { ErrorBody } from "../wire/messages.js";

/** A mutation as the backend is given it. */
export interface PostedMutation {
  readonly clientId: string;
  /** 1, 2, 3, … for each client; what was applied before is to be acknowledged without effect. */
  readonly id: number;
  readonly name: string;
  readonly args: unknown;
}

/**
 * Brings mutations to the application's backend, which applies each with the client's `last_mutation_id` in one
 * transaction. Resolves with those that it refused; rejects when it cannot be reached, to be called again.
 */
export type PostMutations = (
  mutations: readonly PostedMutation[],
) => Promise<readonly { readonly id: number; readonly error: ErrorBody }[] | void>;

/** What brings mutations, given whom to tell of answers and how long to wait between failures. */
export type Backend = (answered: (id: number, error: ErrorBody | null) => void, backoff: Backoff) => Poster;

/** A backend for the option `backend`. */
export const ownBackend =
  (post: PostMutations): Backend =>
  (answered, backoff) => new Poster(post, answered, backoff);

/** See the file's head. */
export class Poster {
  #queue: PostedMutation[] = [];
  #running = false;
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly post: PostMutations,
    readonly answered: (id: number, error: ErrorBody | null) => void,
    readonly backoff: Backoff,
  ) {}

  /** Queues mutations that are not queued yet. */
  add(mutations: readonly PostedMutation[]): void {
    const queued = new Set(this.#queue.map(({ id }) => id));
    this.#queue.push(...mutations.filter(({ id }) => !queued.has(id)));
    if (!this.#running) void this.#run();
  }

  /** Sends nothing any more. */
  close(): void {
    this.#queue = [];
    clearTimeout(this.#retry);
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      const sent = [...this.#queue];
      try {
        const refused = new Map((await this.post(sent))?.map(({ id, error }) => [id, error]));
        this.#queue.splice(0, sent.length);
        this.backoff.reset();
        for (const { id } of sent) this.answered(id, refused.get(id) ?? null);
      } catch (error) {
        // Nothing is left when it was closed meanwhile.
        if (this.#queue.length === 0) break;
        console.warn(`tidegate: the backend is asked again: ${error}`);
        await new Promise((resume) => (this.#retry = setTimeout(resume, this.backoff.next(0))));
      }
    }
    this.#running = false;
  }
}
