// One subscription's state: what is shown, which epoch the connection is in, and what waits for release.

import type { Batch, ClientMessage, Layout, QuerySource, Resume, Subscribed } from "../wire/messages.js";
import type { Codec } from "../wire/value.js";
import { fold, readOp, type RowStep, type WaitingBatch } from "./batch.js";
import type { LocalQuery } from "../query/ast.js";
import { rowKey, sameValue, shapeOf, type Row, type Shape } from "./shape.js";
import { ResultTree, type NetChange, type RootChanges } from "./tree.js";
import { Violation, type Invariant } from "./violation.js";

const ANOTHER_FP = "another fingerprint";

/** An epoch of the present connection. */
interface Live {
  readonly epoch: number;
  readonly fp: string;
  readonly shape: Shape;
  /** Whether seq 0 is a difference to the tree. */
  readonly resumed: boolean;
  nextSeq: number;
  lastCv: number;
  /** The cv of seq 0, once all its parts are here. */
  completeAt: number | undefined;
  /** Whether the tree is of this epoch. */
  released: boolean;
  waiting: WaitingBatch[];
}

/** A release of one subscription that was checked and can be applied. */
export interface Prepared {
  readonly net: readonly NetChange[];
  readonly batches: number;
}

/** The rows of a result with their layout. */
export interface Content {
  readonly layout: Layout;
  readonly rows: readonly (readonly [table: number, places: number, row: Row])[];
}

/** What a client keeps of a subscription to continue from, on another connection or after a reload. */
export interface Held {
  readonly resume: Resume | undefined;
  readonly content: Content;
}

/** See the file's head. */
export class Subscription {
  /** The result; undefined before there is one. */
  tree: ResultTree | undefined;
  /** Whether the tree is of a release of this process, and not of a store or of rows that happened to be held. */
  complete = false;
  /** Whether the tree stands at one commit, so that it has to move together with the others. */
  stands = false;
  /** Whether what pending mutations make of the result cannot be known here. */
  uncertain = false;
  /** Under which epoch and up to which cv the tree was released, when that is not the present epoch. */
  #heldAt: Resume | undefined;
  #offered: Resume | undefined;
  #live: Live | undefined;

  constructor(
    readonly sub: number,
    /** What to ask for; undefined for subscription 0, which nobody asks for. */
    readonly source: QuerySource | undefined,
    /** The query, when it can be evaluated here. */
    readonly local?: LocalQuery,
  ) {}

  /** Whether the present connection has answered. */
  get answered(): boolean {
    return this.#live !== undefined;
  }

  /** Whether batches wait for their release. */
  get waits(): boolean {
    return this.#live !== undefined && this.#live.waiting.length > 0;
  }

  /** Whether all parts of seq 0 are here. */
  get snapshotHere(): boolean {
    return this.#live?.completeAt !== undefined;
  }

  /** The message that asks for the subscription on a new connection. */
  subscribe(): ClientMessage | undefined {
    if (!this.source) return undefined;
    this.#offered = this.tree && this.#heldAt;
    return { subscribe: { sub: this.sub, ...this.source, resume: this.#offered } };
  }

  /** Ends the present epoch; the tree stays, at cv `released`. Returns how many operations wait less. */
  retire(released: number): number {
    const live = this.#live;
    if (!live) return 0;
    this.#live = undefined;
    if (live.released) this.#heldAt = { epoch: live.epoch, cv: released, fp: live.fp };
    return countOps(live.waiting);
  }

  /** Makes the next connection ask for a snapshot, because what is held cannot be continued. */
  distrust(): void {
    this.#heldAt = undefined;
    if (this.#live) this.#live.released = false;
  }

  /**
   * A new epoch; the present one is retired already.
   *
   * @throws {Violation} for a layout that is none, or a resume that was not asked for.
   */
  begin(subscribed: Subscribed): void {
    const { epoch, fp, resumed, tables, places } = subscribed;
    const layout = { tables, places };
    const held = this.tree?.shape;
    const shape = held && sameValue(held.layout, layout) ? held : shapeOf(layout, this.local?.tables);
    const offered = this.#offered;
    this.#offered = undefined;
    if (resumed) {
      if (!offered) throw this.#broken("messages_are_well_formed", "resumed unasked");
      if (offered.fp !== fp || held !== shape) throw this.#broken("fp_is_constant", ANOTHER_FP);
    }
    this.#live = {
      epoch, fp, shape, resumed, nextSeq: 0, lastCv: 0, completeAt: undefined, released: false, waiting: [],
    };
  }

  /**
   * Takes a batch in; `cvMin` is the connection's. Returns how many operations now wait more; undefined for a batch
   * of another epoch, which is passed over.
   *
   * @throws {Violation} when the batch does not follow the one before, or does not fit the layout.
   */
  batch(batch: Batch, cvMin: number | undefined, codec: Codec): number | undefined {
    const live = this.#live;
    if (!live || live.epoch !== batch.epoch) return undefined;
    if (batch.seq !== live.nextSeq) throw this.#broken("seq_is_gapless", `expected batch ${live.nextSeq}, got ${batch.seq}`);
    if (batch.fp !== live.fp) throw this.#broken("fp_is_constant", ANOTHER_FP);
    const passed = Math.max(live.lastCv - 1, live.completeAt === undefined ? -1 : (cvMin ?? -1));
    if (batch.cv <= passed) throw this.#broken("batches_precede_progress", `a batch of cv ${batch.cv} came after ${passed}`);
    const ops = batch.ops.map((op) => readOp(op, live.shape, codec));
    live.nextSeq += 1;
    live.lastCv = batch.cv;
    if (live.completeAt === undefined && !batch.more) live.completeAt = batch.cv;
    live.waiting.push({ cv: batch.cv, ops });
    return ops.length;
  }

  /** The operations that wait, for a look ahead of their release. */
  *waitingOps(): Iterable<RowStep> {
    for (const batch of this.#live?.waiting ?? []) yield* batch.ops;
  }

  /** Whether seq 0 of the present epoch can be shown at `cvMin`, or is shown already. */
  ready(cvMin: number): boolean {
    const completeAt = this.#live?.completeAt;
    return completeAt !== undefined && completeAt <= cvMin;
  }

  /**
   * Checks what `cvMin` releases; undefined when that is nothing. Changes nothing.
   *
   * @throws {Violation} when an operation does not fit what is held.
   */
  prepare(cvMin: number): Prepared | undefined {
    const live = this.#live;
    if (!live || !this.ready(cvMin)) return undefined;
    const due = live.waiting.filter((batch) => batch.cv <= cvMin);
    if (due.length === 0) return undefined;
    const { tree } = this;
    const base = live.released || live.resumed ? tree : undefined;
    // A snapshot of the layout that is shown becomes a difference to it, so that what stays is the same object.
    const replaced = !base && tree?.shape === live.shape ? tree : undefined;
    return { net: fold(this.sub, live.shape, due, base, replaced), batches: due.length };
  }

  /** Applies what was prepared. Returns how many operations wait less. */
  apply(prepared: Prepared, changes: RootChanges): number {
    const live = this.#live!;
    const waited = countOps(live.waiting.splice(0, prepared.batches));
    live.released = true;
    this.complete = true;
    this.stands = true;
    if (this.tree?.shape !== live.shape) this.tree = new ResultTree(live.shape);
    this.tree.release(prepared.net, changes);
    return waited;
  }

  /** Where the released rows can be continued from, when they stand at `cv`. */
  resumeAt(cv: number): Resume | undefined {
    const live = this.#live?.released ? this.#live : undefined;
    return live ? { epoch: live.epoch, cv, fp: live.fp } : this.#heldAt;
  }

  /** The released rows, for a store; undefined before the first release. */
  content(): Content | undefined {
    const { tree } = this;
    if (!tree || !this.stands) return undefined;
    const rows = tree.shape.layout.tables.flatMap((_, table) =>
      [...tree.releasedRows(table)].map(({ places, row }) => [table, places, row] as const),
    );
    return { layout: tree.shape.layout, rows };
  }

  /** Shows what a store held, until the first release. */
  restore({ resume, content: { layout, rows } }: Held, stands: boolean, changes: RootChanges): void {
    const tree = new ResultTree(shapeOf(layout, this.local?.tables));
    const net = rows.map(([table, places, row]): NetChange => {
      const key = rowKey(row, layout.tables[table]!);
      return { table, key, new: { key, row, places } };
    });
    tree.release(net, changes);
    this.tree = tree;
    this.#heldAt = resume;
    this.stands = stands;
  }

  #broken(invariant: Invariant, what: string): Violation {
    return new Violation(invariant, `subscription ${this.sub}: ${what}`);
  }
}

const countOps = (batches: readonly WaitingBatch[]): number => batches.reduce((sum, { ops }) => sum + ops.length, 0);
