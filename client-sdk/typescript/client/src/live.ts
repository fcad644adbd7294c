// One query kept live for everybody who asks for it: its state as readers see it, and who is told of changes.

import type { Backoff } from "./connection/backoff.js";
import type { TidegateError } from "./error.js";
import type { Query } from "./query/query.js";
import type { KeptQuery } from "./storage/storage.js";
import type { Content, Subscription } from "./state/subscription.js";
import { changeList, type Change, type ResultTree, type RootChanges } from "./state/tree.js";

/**
 * How much a view knows: nothing yet; some rows, from earlier or from other views, or with pending mutations whose
 * effect cannot be known here; the whole result at the client's commit version; or that the query has failed.
 */
export type ViewStatus = "connecting" | "partial" | "complete" | "error";

/** What a view shows. The same object until something changes. */
export interface ViewState<Row> {
  /** In the query's order. Whatever does not change from one state to the next is the same object. */
  readonly rows: readonly Row[];
  readonly status: ViewStatus;
  /** Why the query has failed, else null. It is asked again when that may help. */
  readonly error: TidegateError | null;
}

/** One step from a state to the next. */
export interface Update<Row> extends ViewState<Row> {
  /** The commit version that everything the client shows stands at, but for pending mutations. */
  readonly cv: number;
  /** What happened to which row: removed rows first. */
  readonly changes: readonly Change<Row>[];
}

/** Told of updates. */
export type Listener<Row> = (update: Update<Row>) => void;

const NO_ROWS: readonly never[] = Object.freeze([]);

/** See the file's head. */
export class LiveQuery {
  readonly listeners = new Set<Listener<any>>();
  /** Views that are open. */
  users = 0;
  /** Ends the query a while after its last view has closed. */
  linger: ReturnType<typeof setTimeout> | undefined;
  /** Asks again after a failure. */
  retry: ReturnType<typeof setTimeout> | undefined;
  #state: ViewState<any> = { rows: NO_ROWS, status: "connecting", error: null };
  /** The version of the result that the state shows. */
  #version: object | undefined;
  /** The tree whose rows the state shows. */
  #tree: ResultTree | undefined;
  /** Undefined while the server is not asked: before the first time, and after a failure. */
  subscription: Subscription | undefined;

  constructor(
    readonly query: Query<any>,
    /** The query's. */
    readonly key: string,
    /** The waits before it is asked again. */
    readonly backoff: Backoff,
  ) {}

  /** The server is asked. Rows that are shown stay until the subscription's first release. */
  ask(subscription: Subscription): void {
    const { rows } = this.#state;
    this.#state = { rows, status: rows.length > 0 ? "partial" : "connecting", error: null };
    this.subscription = subscription;
  }

  /** What readers see. A list is made only when somebody asks for it, so that one that nobody reads costs nothing. */
  get state(): ViewState<any> {
    this.#bringUpToDate();
    return this.#state;
  }

  /** The result may have changed; what to tell, if anything. */
  refresh(cv: number, changes: RootChanges): Update<any> | undefined {
    if (this.listeners.size === 0) return undefined;
    const { rows } = this.#state;
    const tree = this.#tree;
    if (!this.#bringUpToDate()) return undefined;
    const list = tree === this.#tree ? changeList(changes) : replacement(rows, this.#state.rows);
    return { ...this.#state, cv, changes: list };
  }

  /** Whether that changed the state. */
  #bringUpToDate(): boolean {
    const { tree, complete, uncertain } = this.subscription ?? {};
    if (!tree) return false;
    const status = complete && !uncertain ? "complete" : "partial";
    if (tree.version === this.#version && status === this.#state.status) return false;
    this.#version = tree.version;
    this.#tree = tree;
    if (complete) this.backoff.reset();
    // What changed need not show.
    if (tree.list === this.#state.rows && status === this.#state.status) return false;
    this.#state = { rows: tree.list, status, error: null };
    return true;
  }

  /** What a storage can keep, at commit version `cv`; undefined before the result is there. */
  kept(cv: number): KeptQuery | undefined {
    const { subscription } = this;
    if (!subscription?.tree || !subscription.complete) return undefined;
    const content = (): Content => subscription.content()!;
    return { key: this.key, resume: subscription.resumeAt(cv), version: subscription.tree.version, content };
  }

  /** The query has failed; what was shown stays to be seen. */
  fail(cv: number, error: TidegateError): Update<any> {
    this.#state = { rows: this.state.rows, status: "error", error };
    this.subscription = undefined;
    return { ...this.#state, cv, changes: [] };
  }
}

function replacement(before: readonly object[], after: readonly object[]): Change<any>[] {
  return [
    ...before.map((row) => ({ op: "remove" as const, row })),
    ...after.map((row) => ({ op: "add" as const, row })),
  ];
}
