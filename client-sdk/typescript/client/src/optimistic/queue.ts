// Mutations as an application makes them: runs mutators, keeps what they did until it is settled, and tells how it ended.

import { closed, TidegateError } from "../error.js";
import { uniqueName } from "../name.js";
import type { Effect } from "../state/effect.js";
import type { Mutation } from "../state/mutations.js";
import { sameValue } from "../state/shape.js";
import type { State } from "../state/state.js";
import type { Storage } from "../storage/storage.js";
import { checkNesting } from "../wire/codec.js";
import type { ClientMessage, ErrorBody, PushedMutation } from "../wire/messages.js";
import type { Poster } from "./poster.js";
import { HeldRows } from "./held.js";
import { PendingRows } from "./pending.js";
import { Transaction, type MutationHandle, type Mutators } from "./transaction.js";

/** What a queue works with. */
export interface QueueOptions {
  readonly state: State;
  readonly mutators: Mutators;
  readonly mutationsMax: number;
  readonly storage: Storage | undefined;
  /** Brings mutations to the application's own backend; without one they are pushed over the socket. */
  readonly poster: Poster | undefined;
  /** A mutation was answered; with an error it was refused. */
  readonly answered: (id: number, error: ErrorBody | null) => void;
  /** Sends a message on the present connection, or says why it is too large. */
  readonly send: (message: ClientMessage) => ErrorBody | undefined;
  /** Carries the state machine's effects out. */
  readonly carryOut: (effects: readonly Effect[]) => void;
  readonly refused: (error: TidegateError, mutation: Mutation) => void;
  readonly failed: (error: Error) => void;
}

/** A mutation of which this process may have to tell how it ends. */
interface Told {
  readonly mutation: Mutation;
  /** Who waits; nobody for one that another process made. */
  readonly resolve?: () => void;
  readonly reject?: (error: TidegateError) => void;
  /** Whether it was told that it cannot be run again. */
  stuck?: true;
}

/** Mutations with their ids, to be sent. */
type Written = (Effect & { kind: "write" })["mutations"];

/** The message that pushes mutations, whose cells are in their JSON form. */
const pushOf = (mutations: readonly PushedMutation[]): ClientMessage => ({
  push: { mutations: mutations.map(({ id, ops }) => ({ id, ops })), json_cells: true },
});

/** See the file's head. */
export class MutationQueue {
  readonly #options: QueueOptions;
  /** By ticket: this process's own mutations, and those that it found. */
  readonly #told = new Map<string, Told>();
  /** What pending mutations do, and at which version of the state. */
  #rows: PendingRows | undefined;
  #version: object | undefined;
  #closed = false;

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /**
   * Runs a mutator, shows what it does and sends it when that is possible.
   *
   * @throws {TidegateError} `queue_full`, when too many wait already; `no_mutator`, when there is none of that name;
   * `closed`, after `close`.
   * @throws {TypeError} when what it does to rows has no place in a message.
   */
  mutate(name: string, args: unknown): MutationHandle {
    const { state, mutationsMax, storage } = this.#options;
    if (this.#closed) throw closed("client");
    const mutator = this.#mutator(name);
    if (state.mutations.length >= mutationsMax) {
      throw new TidegateError("queue_full", `${mutationsMax} mutations wait already`);
    }
    const tx = new Transaction(this.rows());
    mutator(tx, args);
    checkNesting(tx.ops);
    const mutation: Mutation = { ticket: uniqueName(), name, args, ops: tx.ops };
    const confirmed = new Promise<void>((resolve, reject) => this.#told.set(mutation.ticket, { mutation, resolve, reject }));
    // Nobody has to listen; `onRefused` tells of refusals too.
    confirmed.catch(() => {});
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
    const { state, poster } = this.#options;
    if (this.#rows && this.#version === state.version) return this.#rows;
    this.#version = state.version;
    const rows = (this.#rows = new PendingRows(new HeldRows(state.subscriptions)));
    for (const mutation of state.mutations.pending) {
      const { ops } = (state.mutations.ahead(mutation) && this.#again(mutation, rows)) || mutation;
      for (const op of ops) rows.ops.push(op);
      // The server was or will be sent what it did when it was called.
      if (!poster && !sameValue(ops, mutation.ops)) rows.doubtful.push(ops, mutation.ops);
    }
    return rows;
  }

  #again({ ticket, name, args }: Mutation, rows: PendingRows): Transaction | undefined {
    try {
      const tx = new Transaction(rows);
      this.#mutator(name)(tx, args);
      return tx.knew ? tx : undefined;
    } catch (error) {
      const own = this.#told.get(ticket);
      if (own && !own.stuck) {
        own.stuck = true;
        const told = error instanceof TidegateError ? error : new TidegateError("mutator", `${name} cannot run again: ${error}`);
        queueMicrotask(() => this.#options.failed(told));
      }
      return undefined;
    }
  }

  #mutator(name: string): Mutators[string] {
    const { mutators } = this.#options;
    if (Object.hasOwn(mutators, name)) return mutators[name]!;
    throw new TidegateError("no_mutator", `no mutator ${name}`);
  }

  /** Mutations that a storage has: those of others, and those that were made here. */
  found(mutations: readonly Mutation[]): void {
    for (const mutation of mutations) this.#told.set(mutation.ticket, { mutation, ...this.#told.get(mutation.ticket) });
    this.#options.carryOut(this.#options.state.mutate(mutations));
  }

  /** Notes the ids of mutations, then sends them. When the connection is gone by then, the next one has them sent anew. */
  async write({ mutations }: Effect & { kind: "write" }): Promise<void> {
    const { storage, poster, state } = this.#options;
    const { welcome } = state;
    try {
      if (storage && !(await storage.number(mutations.map(({ ticket, id }) => [ticket, id])))) return;
    } catch (error) {
      this.#options.failed(error as Error);
    }
    if (welcome !== state.welcome) return;
    if (poster) poster.add(mutations.map(({ id, name, args }) => ({ clientId: state.clientId!, id, name, args })));
    else this.#push(mutations);
  }

  /**
   * Sends mutations in as many messages as the server's limits take. One that is too large by itself is refused, and sent
   * without its operations, since the server has to count its id.
   */
  #push(mutations: Written): void {
    const { state, send, answered } = this.#options;
    const half = mutations.length >> 1;
    const isMany = mutations.length > (state.welcome?.limits?.mutations_max ?? Infinity);
    const error = isMany || send(pushOf(mutations));
    if (!error) return;
    if (half > 0) {
      this.#push(mutations.slice(0, half));
      this.#push(mutations.slice(half));
    } else if (error !== true) {
      const { id } = mutations[0]!;
      // Not before what it did is told.
      queueMicrotask(() => answered(id, error));
      send(pushOf([{ id, ops: [] }]));
    }
  }

  /** A mutation is in the released state. */
  confirmed(ticket: string): void {
    this.#told.get(ticket)?.resolve?.();
    this.#told.delete(ticket);
  }

  /** A mutation was refused. */
  refused(ticket: string, error: ErrorBody): void {
    const { storage, refused } = this.#options;
    const told = this.#told.get(ticket);
    if (!told) return;
    this.#told.delete(ticket);
    const reason = TidegateError.of(error);
    told.reject?.(reason);
    if (told.reject) refused(reason, told.mutation);
    else void storage?.tells(told.mutation).then((tells) => tells && refused(reason, told.mutation));
  }

  /** Ends it: whoever waits is told. */
  close(): void {
    this.#closed = true;
    this.#options.poster?.close();
    for (const { reject } of this.#told.values()) reject?.(closed("client"));
    this.#told.clear();
  }
}
