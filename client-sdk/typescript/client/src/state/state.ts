// The client's state machine: messages and calls in, effects out. No I/O and no clock; the connection drives it, and
// tests do.
//
// It guarantees `commit_is_atomic_for_a_client`: batches wait until `progress` covers them, then all subscriptions take
// their part in one step. A subscription that shows a result but has to catch up first, after a reconnect or in a new
// epoch, holds the step back until it can take part, so that everything shown stays at one commit. Pending mutations
// are laid over the result of each step anew.

import type { Batch, ClientMessage, ErrorBody, QuerySource, ServerMessage, Subscribed, Welcome } from "../wire/messages.js";
import type { LocalQuery } from "../query/ast.js";
import type { Codec } from "../wire/value.js";
import type { Effect } from "./effect.js";
import { Mutations, type Mutation } from "./mutations.js";
import { Subscription, type Held, type Prepared } from "./subscription.js";
import type { RootChanges } from "./tree.js";
import { malformed, Violation } from "./violation.js";

/** The version of the protocol that is spoken here. */
const PROTOCOL = 1;
/** The subscription that the server announces by itself: the client's own row of the mutations table. */
const OWN = 0;
/** The place of `last_mutation_id` in that row. */
const COUNT = 1;
/** Refusals of the moment: the connection is made anew. */
const PASSING = ["not_ready", "shutting_down", "slow_client"];
/** Refusals after which asking again may succeed. */
const RETRIED = ["too_many_subscriptions", "internal"];
/** Errors of mutations that may be taken when they are sent again. */
const UNTAKEN = [...PASSING, ...RETRIED, "schema_changed"];

/** What a state machine is made with. */
export interface StateOptions {
  /** Most operations that may wait for their release. */
  readonly waitingOpsMax: number;
  /** Lays pending mutations over the subscriptions' results, and adds which changed and how. */
  readonly overlay?: (subscriptions: readonly Subscription[], results: Results) => void;
}

/** The changes of root rows in the step at hand, by subscription. */
export type Results = Map<number, RootChanges>;

/** See the file's head. */
export class State {
  readonly #options: StateOptions;
  readonly #subscriptions = new Map<number, Subscription>();
  readonly mutations = new Mutations();
  /** Names the client across connections and processes; needed for mutations. */
  clientId: string | undefined;
  #nextSub = 1;
  /** The present connection's codec; undefined without one. */
  #codec: Codec | undefined;
  /** What the present connection was welcomed with; no other is the same object. */
  welcome: Welcome | undefined;
  /** The present connection's last progress. */
  #cvMin: number | undefined;
  /** The commit version that everything shown stands at. */
  #released = 0;
  /** Subscriptions with batches that wait. */
  readonly #waiting = new Set<Subscription>();
  #waitingOps = 0;
  /** Subscriptions that show a result and have to catch up before anything is released. */
  readonly #catchingUp = new Set<Subscription>();
  #heldBack = false;
  /** Whether pending mutations may lie over some result. */
  #overlaid = false;
  /** Another object whenever released rows or pending mutations may have changed. */
  version: object = {};

  constructor(options: StateOptions) {
    this.#options = options;
  }

  /** The commit version that everything shown stands at. */
  get cv(): number {
    return this.#released;
  }

  /** All subscriptions of the application. */
  get subscriptions(): readonly Subscription[] {
    return [...this.#subscriptions.values()].filter(({ sub }) => sub !== OWN);
  }

  /** A connection is there: introduces the client and asks again for everything. */
  connect(codec: Codec, token: string | undefined): Effect[] {
    this.#codec = codec;
    const effects: Effect[] = [send({ hello: { client_id: this.clientId, token } })];
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.stands) this.#catchingUp.add(subscription);
      const message = subscription.subscribe();
      if (message) effects.push(send(message));
    }
    return effects;
  }

  /** The connection is gone. What is shown stays; what waited for its release is dropped, to come again. */
  disconnect(): void {
    this.#codec = undefined;
    this.welcome = undefined;
    this.#cvMin = undefined;
    this.#heldBack = false;
    this.#catchingUp.clear();
    this.#waiting.clear();
    this.#waitingOps = 0;
    this.mutations.disconnect();
    this.#subscriptions.delete(OWN);
    for (const subscription of this.#subscriptions.values()) subscription.retire(this.#released);
  }

  /** Adds a subscription. */
  subscribe(source: QuerySource, local?: LocalQuery): { subscription: Subscription; effects: Effect[] } {
    const subscription = new Subscription(this.#nextSub, source, local);
    this.#nextSub += 1;
    this.#subscriptions.set(subscription.sub, subscription);
    const effects = this.#codec ? [send(subscription.subscribe()!)] : [];
    return { subscription, effects };
  }

  /** Ends a subscription; one that has ended already is passed over. */
  unsubscribe(sub: number): Effect[] {
    const effects: Effect[] = [];
    if (!this.#end(sub)) return effects;
    if (this.#codec) effects.push(send({ unsubscribe: { sub } }));
    this.#releaseHeldBack(effects);
    return effects;
  }

  /**
   * Shows what a store held, until the first release. `stands` when it is of one commit with everything else that is
   * shown.
   *
   * @throws {Error} when it cannot be read.
   */
  restore(subscription: Subscription, held: Held & { readonly cv: number }, stands: boolean): Effect[] {
    const changes: RootChanges = new Map();
    subscription.restore(held, stands, changes);
    if (stands) this.#released = held.cv;
    return this.#lay(new Map([[subscription.sub, changes]]));
  }

  /** Queues mutations, also such that a store or another tab had. */
  mutate(mutations: readonly Mutation[]): Effect[] {
    return this.change((queue, effects) => queue.add(mutations, effects));
  }

  /** Has something happen to the queue of mutations, and lays what is pending then over the results. */
  change(step: (queue: Mutations, effects: Effect[]) => void): Effect[] {
    const effects: Effect[] = [];
    step(this.mutations, effects);
    return [...this.#lay(new Map()), ...effects];
  }

  /** Lays them over the result of a new subscription, which has no rows but those of others. */
  overlayNew(subscription: Subscription): void {
    if (this.#overlaid) this.#options.overlay?.([subscription], new Map());
  }

  /** Takes a message of the present connection in. */
  receive(message: ServerMessage): Effect[] {
    const effects: Effect[] = [];
    if (!this.#codec) return effects;
    try {
      this.#take(message, this.#codec, effects);
    } catch (error) {
      // Whatever else goes wrong here does because a message is not of the form that it should have.
      effects.push(reconnect(error instanceof Violation ? error : malformed((error as Error).message)));
    }
    return effects;
  }

  #take(message: ServerMessage, codec: Codec, effects: Effect[]): void {
    if (message.batch) this.#batch(message.batch, codec, effects);
    else if (message.progress) this.#progress(message.progress.cv_min, effects);
    else if (message.subscribed) this.#subscribed(message.subscribed);
    else if (message.welcome) {
      const { protocol } = message.welcome;
      if (protocol !== PROTOCOL) throw malformed(`protocol ${protocol} instead of ${PROTOCOL}`);
      this.welcome = message.welcome;
      effects.push({ kind: "welcomed" });
    } else if (message.faulted) this.#faulted(message.faulted, effects);
    else if (message.error) this.#error(message.error, effects);
    else if (message.push_result) {
      const { id, error } = message.push_result;
      // Nothing of it was taken where the log cannot be written, nor of those behind it, which leave a gap.
      if (error && (UNTAKEN.includes(error.code) || this.mutations.awaits(id))) effects.push(reconnect(error));
      else effects.push(...this.change((queue, own) => queue.answered(id, error, own)));
    } else if (message.goaway) {
      effects.push(reconnect(message.goaway, message.goaway.retry_after_ms));
    }
  }

  #subscribed(subscribed: Subscribed): void {
    const { sub } = subscribed;
    if (sub === OWN && this.clientId !== undefined && !this.#subscriptions.has(OWN)) {
      this.#subscriptions.set(OWN, new Subscription(OWN, undefined));
    }
    // Unsubscribed in the meantime: its frames are under way still.
    const subscription = this.#subscriptions.get(sub);
    if (!subscription) return;
    this.#waitingOps -= subscription.retire(this.#released);
    this.#waiting.delete(subscription);
    subscription.begin(subscribed);
    if (subscription.stands) this.#catchingUp.add(subscription);
  }

  #batch(batch: Batch, codec: Codec, effects: Effect[]): void {
    const subscription = this.#subscriptions.get(batch.sub);
    const ops = subscription?.batch(batch, this.#cvMin, codec);
    if (!subscription || ops === undefined) return;
    this.#waitingOps += ops;
    this.#waiting.add(subscription);
    const max = this.#options.waitingOpsMax;
    if (this.#waitingOps > max) {
      throw new Violation("queues_are_bounded", `more than ${max} operations wait for progress`);
    }
    if (batch.sub === OWN && subscription.snapshotHere) {
      // The count is looked at ahead of its release: what it covers need not be sent again.
      let count = 0;
      for (const { entry } of subscription.waitingOps()) if (entry) count = Number(entry.row[COUNT]);
      this.mutations.counted(count, effects);
    }
  }

  #progress(to: number, effects: Effect[]): void {
    const from = this.#cvMin;
    if (!Number.isSafeInteger(to) || (from !== undefined && to < from)) {
      throw new Violation("progress_is_irrevocable", `cv_min went from ${from} back to ${to}`);
    }
    this.#cvMin = to;
    this.#release(to, effects);
  }

  /** Shows everything up to `cvMin`, all subscriptions in one step. */
  #release(cvMin: number, effects: Effect[]): void {
    for (const subscription of this.#catchingUp) if (subscription.ready(cvMin)) this.#catchingUp.delete(subscription);
    this.#heldBack = this.#catchingUp.size > 0;
    if (this.#heldBack) return;
    // Everything is checked before anything is applied, so that a violation leaves the shown state whole.
    const prepared: [Subscription, Prepared][] = [];
    for (const subscription of this.#waiting) {
      try {
        const release = subscription.prepare(cvMin);
        if (release) prepared.push([subscription, release]);
      } catch (violation) {
        subscription.distrust();
        throw violation;
      }
    }
    this.#released = cvMin;
    const results: Results = new Map();
    for (const [subscription, release] of prepared) {
      const { complete, tree } = subscription;
      const changes: RootChanges = new Map();
      this.#waitingOps -= subscription.apply(release, changes);
      if (!complete || subscription.tree !== tree || changes.size > 0) results.set(subscription.sub, changes);
      if (!subscription.waits) this.#waiting.delete(subscription);
    }
    results.delete(OWN);
    const settled: Effect[] = [];
    const own = this.#subscriptions.get(OWN)?.tree;
    this.mutations.released(own && Number([...own.releasedRows(0)][0]?.row[COUNT] ?? 0), settled);
    effects.push(...this.#lay(results, true), ...settled);
  }

  /** The release that `results` begins, with pending mutations laid over; empty when nothing changes. */
  #lay(results: Results, always = false): Effect[] {
    this.version = {};
    const pending = this.mutations.length > 0;
    if (pending || this.#overlaid) this.#options.overlay?.(this.subscriptions, results);
    this.#overlaid = pending;
    return always || results.size > 0 ? [{ kind: "released", cv: this.#released, results }] : [];
  }

  #releaseHeldBack(effects: Effect[]): void {
    if (!this.#heldBack || this.#cvMin === undefined) return;
    try {
      this.#release(this.#cvMin, effects);
    } catch (violation) {
      effects.push(reconnect(violation as Violation));
    }
  }

  #faulted(error: ErrorBody & { sub: number; retry: boolean }, effects: Effect[]): void {
    const { sub, retry } = error;
    const known = this.#end(sub);
    if (sub === OWN) {
      if (retry) effects.push(reconnect(error));
      // What is sent shows why nothing can be written.
      else this.mutations.counted(undefined, effects);
    } else if (known) effects.push({ kind: "ended", sub, error, retry });
    this.#releaseHeldBack(effects);
  }

  #error(error: ErrorBody & { sub?: number }, effects: Effect[]): void {
    const { code, sub } = error;
    const subscription = sub === undefined ? undefined : this.#subscriptions.get(sub);
    if (!subscription || subscription.answered) {
      effects.push({ kind: "complaint", error });
    } else if (PASSING.includes(code)) {
      effects.push(reconnect(error));
    } else {
      this.#faulted({ ...error, sub: subscription.sub, retry: RETRIED.includes(code) }, effects);
    }
  }

  /** Takes a subscription out; whether it was there. */
  #end(sub: number): boolean {
    const subscription = this.#subscriptions.get(sub);
    if (!subscription) return false;
    this.#subscriptions.delete(sub);
    this.version = {};
    this.#waitingOps -= subscription.retire(this.#released);
    this.#waiting.delete(subscription);
    this.#catchingUp.delete(subscription);
    return true;
  }
}

const send = (message: ClientMessage): Effect => ({ kind: "send", message });
const reconnect = (error: ErrorBody, afterMs = 0): Effect => ({ kind: "reconnect", error, afterMs });
