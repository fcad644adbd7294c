// Decides when results are kept: a while after they changed, all at one commit, each whole only when it changed.

import type { LiveQuery } from "../live.js";
import type { SavedQuery, Storage } from "./storage.js";

/** How long results may change before they are kept, milliseconds. */
const SAVE_AFTER_MS = 500;

/** See the file's head. */
export class Keeper {
  /** The list that was kept last, by the query's key. */
  readonly #saved = new Map<string, readonly unknown[]>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saving = false;
  #again = false;

  constructor(
    readonly storage: Storage,
    /** The queries to keep, and the commit version that they stand at. */
    readonly present: () => { readonly queries: Iterable<LiveQuery>; readonly cv: number },
    readonly failed: (error: Error) => void,
  ) {}

  /** Something was released. */
  changed(): void {
    if (this.#saving) this.#again = true;
    else this.#timer ??= setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  /** Keeps everything as it is now. */
  async save(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { queries, cv } = this.present();
    const saved = new Map<string, SavedQuery>();
    for (const { query, subscription } of queries) {
      const content = subscription.complete ? subscription.content() : undefined;
      if (!content) continue;
      const list = subscription.tree!.list;
      const kept = this.#saved.get(query.key) === list;
      saved.set(query.key, { cv, resume: subscription.resumeAt(cv), content: kept ? undefined : content });
      this.#saved.set(query.key, list);
    }
    this.#saving = true;
    try {
      await this.storage.saveQueries(saved);
    } catch (error) {
      this.#saved.clear();
      this.failed(error as Error);
    }
    this.#saving = false;
    if (this.#again) {
      this.#again = false;
      this.changed();
    }
  }

  /** Keeps nothing any more. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
