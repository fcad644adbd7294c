// What a client keeps over reloads, and shares with other tabs.

import type { Mutation } from "../state/mutations.js";
import type { Content } from "../state/subscription.js";
import type { ErrorBody, Resume } from "../wire/messages.js";

/** A result with the commit version that it stands at. */
export interface StoredQuery {
  readonly cv: number;
  readonly resume: Resume | undefined;
  readonly content: Content;
}

/** A result that can be kept. */
export interface KeptQuery {
  /** The query's key. */
  readonly key: string;
  readonly resume: Resume | undefined;
  /** The same as long as the result is. */
  readonly version: unknown;
  /** Gathers the rows. */
  content(): Content;
}

/** What was kept. */
export interface Stored {
  /** Names the client for the server; the same for all who share the storage. */
  readonly clientId: string;
  /** The newest commit version of these results. */
  readonly cv: number;
  /** Results by the query's key. */
  readonly queries: ReadonlyMap<string, StoredQuery>;
  /** Mutations that were not settled, in the order in which they were made, whoever made them. */
  readonly mutations: readonly Mutation[];
}

/** A mutation's ticket with its id. */
export type Numbered = readonly [ticket: string, id: number];

/** What a storage tells of others who share it. */
export interface StorageEvents {
  /** Whether this client is the one to send mutations. */
  writer(writes: boolean): void;
  /** What others have made, in order; also what is known already. */
  added(mutations: readonly Mutation[]): void;
  /** The writer has given mutations their ids. */
  numbered(ids: readonly Numbered[]): void;
  /** A mutation was answered; with an error it was refused. */
  answered(id: number, error: ErrorBody | null): void;
  /** The storage has failed; what is shown goes on without it. */
  failed(error: Error): void;
}

/** Keeps what has to outlive a reload. Calls take effect in order. */
export interface Storage {
  /** Loads what is kept, and begins to tell of others. Called once, first. */
  open(events: StorageEvents): Promise<Stored>;
  /** Results have changed: `present` gives those that are live, and the commit version that all of them stand at. */
  changed(present: () => { readonly cv: number; readonly queries: readonly KeptQuery[] }): void;
  /** Keeps a mutation, and tells others. */
  addMutation(mutation: Mutation): Promise<void>;
  /**
   * Notes mutations' ids before they are sent, and tells others. Resolves with whether they are noted and may be sent:
   * they are not when another is the one to send by now, who gives them other ids.
   */
  number(ids: readonly Numbered[]): Promise<boolean>;
  /**
   * Whether this client is the one to tell that a mutation, which another has made, was refused: its maker tells while
   * it is there, else who sends.
   */
  tells(mutation: Mutation): Promise<boolean>;
  /** Tells others that a mutation was answered. */
  answered(id: number, error: ErrorBody | null): void;
  /**
   * Forgets a mutation, and then tells others that it was answered, for those who missed it. A refused one is forgotten
   * at once, another when results are kept the next time, so that what is kept never lacks what it did.
   */
  settle(ticket: string, id: number, refused: boolean): Promise<void>;
  /** Ends it; another may be the writer then. */
  close(): void;
}
