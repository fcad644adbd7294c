// Mutations as an application makes them: runs mutators, keeps what they did until it is settled, and tells how it ended.

import { TidegateError } from "../error.js";
import { uniqueName } from "../name.js";
import { stringify } from "../wire/codec.js";
import type { Effect } from "../state/effect.js";
import type { Mutation } from "../state/mutations.js";
import type { State } from "../state/state.js";
import type { Storage } from "../storage/storage.js";
import type { ClientMessage, ErrorBody } from "../wire/messages.js";
import type { Poster } from "./poster.js";
import { HeldRows } from "./held.js";
import { PendingRows, tableOf } from "./pending.js";
import { Transaction, type MutationHandle, type Mutators } from "./transaction.js";

/** What a queue works with. */
export interface QueueOptions {
  readonly state: State;
  readonly mutators: Mutators;
  readonly mutationsMax: number;
  readonly storage: Storage | undefined;
  readonly poster: Poster | undefined;
  /** Sends a message on the present connection. */
  readonly send: (message: ClientMessage) => void;
  /** Carries the state machine's effects out. */
  readonly carryOut: (effects: readonly Effect[]) => void;
  readonly refused: (error: TidegateError, mutation: Mutation) => void;
  readonly failed: (error: Error) => void;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: TidegateError) => void;
}

/** See the file's head. */
export class MutationQueue {
  readonly #options: QueueOptions;
  readonly #waiters = new Map<string, Waiter>();
  /** Mutations that this process is to tell of: its own, and those that it found when it began. */
  readonly #told = new Map<string, Mutation>();
  /** Mutations that cannot be run again, of which was told. */
  readonly #failing = new Set<string>();
  readonly #process = uniqueName();
  #made = 0;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /**
   * Runs a mutator, shows what it does and sends it when that is possible.
   *
   * @throws {TidegateError} `queue_full`, when too many wait already; `no_mutator`, when there is none of that name.
   */
  mutate(name: string, args: unknown): MutationHandle {
    const { state, mutationsMax, storage } = this.#options;
    const mutator = this.#mutator(name);
    if (state.mutations.length >= mutationsMax) {
      throw new TidegateError("queue_full", `${mutationsMax} mutations wait for their confirmation already; try again later`);
    }
    const tx = new Transaction(this.rows());
    mutator(tx, args);
    this.#made += 1;
    const mutation: Mutation = { ticket: `${this.#process}-${this.#made}`, name, args, ops: tx.ops };
    const confirmed = new Promise<void>((resolve, reject) => this.#waiters.set(mutation.ticket, { resolve, reject }));
    // Nobody has to listen; `onRefused` tells of refusals too.
    confirmed.catch(() => {});
    this.#told.set(mutation.ticket, mutation);
    storage?.addMutation(mutation).catch(this.#options.failed);
    this.#options.carryOut(state.mutate([mutation]));
    return { confirmed };
  }

  /**
   * What pending mutations do: each mutator runs anew over the rows as they are now. What one did when it was called
   * stands where it cannot be run again: because there is none of that name, it throws, it asks for a row that is not
   * known, or the rows may have its effect already.
   */
  rows(): PendingRows {
    const { mutations, subscriptions } = this.#options.state;
    const rows = new PendingRows(new HeldRows(subscriptions));
    for (const mutation of mutations.pending) {
      const tx = new Transaction(rows);
      if (mutations.ahead(mutation) && this.#again(mutation, tx)) {
        // These operations are what the server was or will be sent.
        if (mutations.pushes && stringify(tx.ops) !== stringify(mutation.ops)) {
          for (const op of [...tx.ops, ...mutation.ops]) rows.doubtful.add(tableOf(op));
        }
      } else {
        tx.undo();
        rows.add(...mutation.ops);
      }
    }
    return rows;
  }

  #again({ ticket, name, args }: Mutation, tx: Transaction): boolean {
    try {
      this.#mutator(name)(tx, args);
      return tx.knew;
    } catch (error) {
      if (!this.#failing.has(ticket)) {
        this.#failing.add(ticket);
        const { code = "mutator", message } = error as TidegateError;
        const told = new TidegateError(code, `${name} cannot run again, what it did at first stands: ${message}`);
        queueMicrotask(() => this.#options.failed(told));
      }
      return false;
    }
  }

  #mutator(name: string): Mutators[string] {
    const { mutators } = this.#options;
    if (Object.hasOwn(mutators, name)) return mutators[name]!;
    throw new TidegateError("no_mutator", `there is no mutator ${name}`);
  }

  /** Mutations that were found in a storage. */
  found(mutations: readonly Mutation[]): void {
    for (const mutation of mutations) this.#told.set(mutation.ticket, mutation);
  }

  /** Notes the ids of mutations, then sends them. */
  async write({ mutations, pushes }: Effect & { kind: "write" }): Promise<void> {
    const { storage, send, poster, state } = this.#options;
    try {
      if (storage) await storage.number(mutations.map(({ ticket, id }) => [ticket, id]));
    } catch (error) {
      this.#options.failed(error as Error);
    }
    if (pushes) {
      send({ push: { mutations: mutations.map(({ id, ops }) => ({ id, ops })), json_cells: true } });
    } else {
      poster?.add(mutations.map(({ id, name, args }) => ({ clientId: state.clientId!, id, name, args })));
    }
  }

  /** A mutation is in the released state. */
  confirmed(ticket: string): void {
    this.#told.delete(ticket);
    this.#waiters.get(ticket)?.resolve();
    this.#waiters.delete(ticket);
  }

  /** A mutation was refused. */
  refused(ticket: string, error: ErrorBody): void {
    const mutation = this.#told.get(ticket);
    this.#told.delete(ticket);
    const told = TidegateError.of(error);
    this.#waiters.get(ticket)?.reject(told);
    this.#waiters.delete(ticket);
    if (mutation) this.#options.refused(told, mutation);
  }

  /** A mutation has left the queue. */
  settled({ ticket, id, writer }: Effect & { kind: "settled" }): void {
    const { storage } = this.#options;
    this.#failing.delete(ticket);
    if (!storage || !writer) return;
    // Also for those who missed the answer.
    storage.answered(id, null);
    storage.settle(ticket).catch(this.#options.failed);
  }

  /** Ends it: whoever waits is told. */
  close(): void {
    this.#options.poster?.close();
    for (const { reject } of this.#waiters.values()) {
      reject(new TidegateError("closed", "the client was closed before the mutation was confirmed"));
    }
    this.#waiters.clear();
  }
}
