// Decides when results are kept: a while after they changed, all at one commit, each whole only when it changed.

import type { Content } from "../state/subscription.js";
import type { Resume } from "../wire/messages.js";
import type { KeptQuery } from "./storage.js";

/** A result to be kept; without `content` it has the one that is kept already. */
export interface SavedQuery {
  readonly cv: number;
  readonly resume: Resume | undefined;
  readonly content: Content | undefined;
}

/** See the file's head. */
export class Keeper {
  /** What was kept last, by the query's key. */
  readonly #versions = new Map<string, unknown>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #saving = false;
  #again = false;

  constructor(
    /** How long results may change before they are kept, milliseconds. */
    readonly afterMs: number,
    readonly save: (queries: ReadonlyMap<string, SavedQuery>) => Promise<void>,
    readonly failed: (error: Error) => void,
  ) {}

  /** Results have changed. */
  changed(present: () => { readonly cv: number; readonly queries: readonly KeptQuery[] }): void {
    if (this.#saving) this.#again = true;
    else this.#timer ??= setTimeout(() => void this.#keep(present), this.afterMs);
  }

  /** Keeps nothing any more. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#again = false;
  }

  async #keep(present: () => { readonly cv: number; readonly queries: readonly KeptQuery[] }): Promise<void> {
    this.#timer = undefined;
    const { cv, queries } = present();
    const saved = new Map<string, SavedQuery>();
    for (const query of queries) {
      const same = this.#versions.get(query.key) === query.version;
      saved.set(query.key, { cv, resume: query.resume, content: same ? undefined : query.content() });
      this.#versions.set(query.key, query.version);
    }
    this.#saving = true;
    try {
      await this.save(saved);
    } catch (error) {
      this.#versions.clear();
      this.failed(error as Error);
    }
    this.#saving = false;
    if (!this.#again) return;
    this.#again = false;
    this.changed(present);
  }
}
