// A live query for a table of rows: which row is which from one state to the next, and what in it just changed.

import { TidegateError, type Query, type Update, type ViewState, type ViewStatus } from "@tidegate/client";
import { useTidegate } from "@tidegate/react";
import { useEffect, useState } from "react";
import { stringified } from "./values.js";

/** Most rows of one result that the console holds. */
export const ROWS_MAX = 50_000;

const TOO_MANY = new TidegateError(
  "too_many_rows",
  `The result has more than ${ROWS_MAX} rows, which is what the console holds; give the query a limit`,
);

/** A row of any query. */
export type Row = Readonly<Record<string, unknown>>;

/** What changed in a row when it became what it is. */
export interface Mark {
  /** Counts up, so that a second change shows as one. */
  readonly number: number;
  /** The members that differ; undefined for a row that is new. */
  readonly columns: ReadonlySet<string> | undefined;
}

/** How many rows the last change concerned. */
export interface LastChange {
  readonly cv: number;
  readonly added: number;
  readonly edited: number;
  readonly removed: number;
}

/** What a table of rows shows. */
export interface LiveRows {
  readonly rows: readonly Row[];
  readonly status: ViewStatus;
  readonly error: TidegateError | null;
  readonly last: LastChange | undefined;
  /** Whether the rows are what they were when they were stopped. */
  readonly isStopped?: boolean;
  /** The same for a row from change to change. */
  readonly keyOf: (row: Row) => number;
  readonly markOf: (row: Row) => Mark | undefined;
}

/** Names rows: an edited row keeps the name of what it was. */
class Names {
  readonly #names = new WeakMap<Row, number>();
  readonly #marks = new WeakMap<Row, Mark>();
  #next = 0;
  #changes = 0;

  readonly keyOf = (row: Row): number => {
    const known = this.#names.get(row);
    if (known !== undefined) return known;
    this.#next += 1;
    this.#names.set(row, this.#next);
    return this.#next;
  };

  readonly markOf = (row: Row): Mark | undefined => this.#marks.get(row);

  /** Takes note of an update; the first result of a query marks nothing. */
  note(update: Update<Row>, isFirst: boolean): void {
    this.#changes += 1;
    for (const change of update.changes) {
      if (change.op === "edit") this.#names.set(change.row, this.keyOf(change.old));
      if (isFirst || change.op === "remove") continue;
      const columns = change.op === "edit" ? differing(change.old, change.row) : undefined;
      this.#marks.set(change.row, { number: this.#changes, columns });
    }
  }
}

function differing(old: Row, row: Row): ReadonlySet<string> {
  return new Set(Object.keys(row).filter((column) => !same(row[column], old[column])));
}

/** Documents come anew with every change of their row. */
function same(one: unknown, other: unknown): boolean {
  const areDocuments = typeof one === "object" && typeof other === "object";
  return one === other || (areDocuments && stringified(one) === stringified(other));
}

function summary({ cv, changes }: Update<Row>): LastChange {
  const of = (op: string): number => changes.filter((change) => change.op === op).length;
  return { cv, added: of("add"), edited: of("edit"), removed: of("remove") };
}

/**
 * A query's rows, live. While another query loads, its own rows are not there yet. Without a query it waits; once it is
 * stopped, the last rows stay.
 */
export function useLive(query: Query<Row> | undefined, isStopped = false): LiveRows {
  const client = useTidegate();
  const key = query?.key;
  const [state, setState] = useState<{ key: string | undefined; live: LiveRows }>();
  useEffect(() => {
    if (!query || isStopped) return undefined;
    const names = new Names();
    const view = client.view(query);
    let last: LastChange | undefined;
    const show = ({ rows, status, error }: ViewState<Row>): void =>
      setState({ key, live: { rows, status, error, last, keyOf: names.keyOf, markOf: names.markOf } });
    let hadResult = view.status === "complete";
    view.subscribe((update) => {
      if (update.rows.length > ROWS_MAX) {
        view.close();
        return show({ rows: [], status: "error", error: TOO_MANY });
      }
      names.note(update, !hadResult);
      if (hadResult && update.changes.length > 0) last = summary(update);
      hadResult ||= update.status === "complete";
      show(update);
    });
    show(view.state);
    return () => view.close();
  }, [client, key, isStopped]);
  const live = state && state.key === key ? state.live : WAITING;
  return isStopped ? { ...live, isStopped } : live;
}

const WAITING: LiveRows = {
  rows: [],
  status: "connecting",
  error: null,
  last: undefined,
  keyOf: () => 0,
  markOf: () => undefined,
};
