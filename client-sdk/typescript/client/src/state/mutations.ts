// The queue of mutations that are not both answered and visible yet.
//
// Ids are gapless per client id across connections and processes, so none is given before the server's own count, the
// subscription 0, was seen. Every connection sends again from the first mutation in the queue; whoever applied one
// already acknowledges it without effect. Of several tabs with one queue, only the writer numbers and sends.

import type { ErrorBody, RowOp } from "../wire/messages.js";
import type { Effect } from "./effect.js";

/** A mutation in the queue. */
export interface Mutation {
  /** Names it in this package, before it has an id and after. */
  readonly ticket: string;
  /** The mutator and its arguments. */
  readonly name: string;
  readonly args: unknown;
  /** What it did to rows when it was called. */
  readonly ops: readonly RowOp[];
  /** Its id for the server, once it has one. */
  id?: number | undefined;
}

interface Pending extends Mutation {
  answer?: "applied" | "refused";
}

/** Where tabs share a queue, ids need not be in the order in which mutations were made or heard of. */
const byId = (a: Mutation, b: Mutation): number => (a.id ?? Infinity) - (b.id ?? Infinity) || 0;

/** See the file's head. */
export class Mutations {
  #queue: Pending[] = [];
  /** The last id that was given, by this process or before it, as far as is known. */
  #lastId = 0;
  /** The last id that is in the released state, as far as is known. */
  #confirmed = 0;
  /** Whether that is of what is released now, and not of before the connection was made or the page loaded. */
  #current = false;
  /** Whether this connection has shown the server's count, so that mutations may be sent. */
  #ready = false;
  /** Whether this process numbers and sends the queue. */
  #writes = true;

  /** How many wait. */
  get length(): number {
    return this.#queue.length;
  }

  /** All that are not refused and not in the released state, in order. */
  get pending(): readonly Mutation[] {
    return this.#queue.filter(({ answer, id = Infinity }) => answer !== "refused" && id > this.#confirmed);
  }

  /** Whether the released state is sure not to have a pending mutation. */
  ahead({ id }: Mutation): boolean {
    return id === undefined || this.#current;
  }

  /** Queues mutations that are not there yet, and sends them when the connection is ready. */
  add(mutations: readonly Mutation[], effects: Effect[]): void {
    const known = new Set(this.#queue.map(({ ticket }) => ticket));
    const added = mutations.filter(({ ticket }) => !known.has(ticket)).map((mutation) => ({ ...mutation }));
    this.#queue.push(...added);
    this.#queue.sort(byId);
    this.#send(added, effects);
  }

  /** Whether this process numbers and sends the queue. */
  setWriter(writes: boolean, effects: Effect[]): void {
    if (this.#writes === writes) return;
    this.#writes = writes;
    this.#send(this.#queue, effects);
  }

  /** A tab has given mutations their ids. */
  numbered(ids: readonly (readonly [ticket: string, id: number])[], effects: Effect[]): void {
    const byTicket = new Map(ids);
    for (const pending of this.#queue) {
      // The writer's own ids stand.
      pending.id = (this.#writes && pending.id) || byTicket.get(pending.ticket) || pending.id;
    }
    this.#queue.sort(byId);
    this.#lastId = Math.max(this.#lastId, ...byTicket.values());
    this.#settle(effects);
  }

  /** The connection ended. */
  disconnect(): void {
    this.#ready = false;
  }

  /**
   * The server's count on this connection: its last id of this client, released or not. Undefined when the server
   * cannot tell, so that what is sent shows why.
   */
  counted(count: number | undefined, effects: Effect[]): void {
    if (this.#ready) return;
    this.#ready = true;
    const last = count ?? this.#lastId;
    let first = this.#queue[0]?.id ?? 0;
    if (last + 1 < first) {
      // The server has lost what it once confirmed (another database, or one restored): the queue starts over from
      // its count, or nothing would ever be taken again.
      for (const pending of this.#queue) {
        if (pending.answer === "refused") this.#remove(pending, effects);
        pending.id = undefined;
        delete pending.answer;
      }
      first = 0;
    }
    // Ids given before the connection was lost stand; without any, the server's count goes on.
    this.#lastId = Math.max(first > 0 ? this.#lastId : 0, last);
    this.#confirmed = Math.min(this.#confirmed, last);
    // What the server has it acknowledges, whatever it holds.
    this.#send(this.#queue, effects, count);
  }

  /** Whether one before it, which the server answers first, has no answer. */
  awaits(id: number): boolean {
    return this.#queue.some((pending) => pending.id! < id && !pending.answer);
  }

  /** A mutation was answered; `error` says why it was refused. */
  answered(id: number, error: ErrorBody | null, effects: Effect[]): void {
    const pending = this.#queue.find((other) => other.id === id);
    if (!pending) return;
    if (!error) {
      pending.answer ??= "applied";
    } else {
      if (pending.answer !== "refused") effects.push({ kind: "refused", ticket: pending.ticket, error });
      pending.answer = "refused";
      // Nothing counts ids there, so nothing would ever take it out.
      if (error.code === "read_only") this.#remove(pending, effects);
    }
    this.#settle(effects);
  }

  /** The server's count in the state that is released now; undefined when the connection has not shown it yet. */
  released(count: number | undefined, effects: Effect[]): void {
    this.#current = count !== undefined;
    this.#confirmed = count ?? this.#confirmed;
    this.#settle(effects);
  }

  /** Takes out what is answered and visible. */
  #settle(effects: Effect[]): void {
    for (const pending of [...this.#queue]) {
      if (pending.id === undefined || pending.id > this.#confirmed || !pending.answer) continue;
      if (pending.answer === "applied") effects.push({ kind: "confirmed", ticket: pending.ticket });
      this.#remove(pending, effects);
    }
  }

  #remove(pending: Pending, effects: Effect[]): void {
    this.#queue = this.#queue.filter((other) => other !== pending);
    effects.push({ kind: "settled", ticket: pending.ticket, id: pending.id!, refused: pending.answer === "refused", writer: this.#writes });
  }

  /** Sends what is due; of what is counted, the id alone. */
  #send(due: readonly Pending[], effects: Effect[], counted = 0): void {
    if (!this.#ready || !this.#writes || due.length === 0) return;
    const mutations = due.map((pending) => {
      const id = (pending.id ??= this.#lastId + 1);
      this.#lastId = Math.max(this.#lastId, id);
      return { ...pending, id, ops: id > counted ? pending.ops : [] };
    });
    effects.push({ kind: "write", mutations });
  }
}
