// What a mutator is given: it reads rows that are known and says what to do to rows.

import type { Cells, RowOp } from "../wire/messages.js";
import type { KeyOf, NewRow, NewValues, RowOf, Table } from "../query/schema.js";
import type { PendingRows } from "./pending.js";

/** See the file's head. */
export class Transaction {
  readonly #rows: PendingRows;
  /** What was done so far. */
  readonly ops: RowOp[] = [];
  /** Whether every row that was asked for is known. */
  knew = true;

  /** Called by the client: `rows` are those before, with what earlier mutations do. */
  constructor(rows: PendingRows) {
    this.#rows = rows;
  }

  /**
   * A row as it stands now, with earlier mutations and what this one did so far; undefined when it is deleted, or when no
   * view holds all its columns.
   */
  get<T extends Table>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    const row = this.#rows.row(table, key, this.ops);
    this.knew &&= row !== undefined;
    return (row ?? undefined) as RowOf<T> | undefined;
  }

  /** Adds a row; columns that are left out hold the default that the schema says. */
  insert<T extends Table>(table: T, row: NewRow<T>): void {
    const defaults = Object.entries(table.columns).map(([name, { defaultValue }]) => [name, defaultValue]);
    this.ops.push({ insert: table.name, row: given([...defaults, ...Object.entries(row)]) });
  }

  /** Changes columns of a row. */
  update<T extends Table>(table: T, key: KeyOf<T>, set: NewValues<T>): void {
    this.ops.push({ update: table.name, key: given(Object.entries(key)), set: given(Object.entries(set)) });
  }

  /** Takes a row away. */
  delete<T extends Table>(table: T, key: KeyOf<T>): void {
    this.ops.push({ delete: table.name, key: given(Object.entries(key)) });
  }
}

/** The columns of which something is said. */
const given = (columns: readonly (readonly unknown[])[]): Cells => Object.fromEntries(columns.filter(([, value]) => value !== undefined));

/**
 * Named mutations: each says what its arguments do to rows. A mutator runs when it is called and again over each newer
 * state, so it must do the same whenever rows and arguments are the same: times and new keys belong to the arguments.
 */
export type Mutators = { readonly [name: string]: (tx: Transaction, args: any) => void };

/** A mutation under way. */
export interface MutationHandle {
  /**
   * Resolves when the mutation is part of the released state; rejects with the reason when it is refused, and with
   * `closed` when the client is closed before. A mutation that a reload outlives is told of by `onRefused` alone.
   */
  readonly confirmed: Promise<void>;
}

/** Mutations by name. */
export type Mutate<M extends Mutators> = {
  readonly [N in keyof M]: Parameters<M[N]> extends [unknown, infer Args] ? (args: Args) => MutationHandle : () => MutationHandle;
};
