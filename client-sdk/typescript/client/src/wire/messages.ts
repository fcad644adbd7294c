// The protocol's messages, as docs/protocol.md describes them.

import type { ColumnType, Json } from "./value.js";

/** A query as it is asked for: exactly one of `query`, `sql` and `name`. */
export interface QuerySource {
  readonly query?: Json;
  readonly sql?: string;
  readonly name?: string;
  readonly args?: { readonly [name: string]: unknown };
}

/** What a client holds of a subscription: the epoch it had, and the commit version its rows stand at. */
export interface Resume {
  readonly epoch: number;
  readonly cv: number;
  readonly fp: string;
}

/** One row operation of a mutation. */
export type RowOp =
  | { readonly insert: string; readonly row: Cells }
  | { readonly update: string; readonly key: Cells; readonly set: Cells }
  | { readonly delete: string; readonly key: Cells };

/** A mutation as it is pushed. */
export interface PushedMutation {
  readonly id: number;
  readonly ops: readonly RowOp[];
}

/** Columns with their values, in their JSON form; an int8 may be a bigint. */
export interface Cells {
  readonly [column: string]: unknown;
}

/** A message from the client. */
export type ClientMessage =
  | { readonly hello: { readonly client_id?: string | undefined; readonly token?: string | undefined } }
  | { readonly subscribe: { readonly sub: number; readonly resume?: Resume | undefined } & QuerySource }
  | { readonly unsubscribe: { readonly sub: number } }
  | { readonly push: { readonly mutations: readonly PushedMutation[]; readonly json_cells: true } }
  | { readonly auth: { readonly token: string } }
  | { readonly ping: { readonly t: number } }
  | { readonly ack: { readonly cv: number } };

/** A column that travels. */
export interface ColumnLayout {
  readonly name: string;
  readonly type: ColumnType;
}

/** A table's columns that travel, and which of them are the key. */
export interface TableLayout {
  readonly name: string;
  readonly columns: readonly ColumnLayout[];
  readonly key: readonly number[];
}

/** `[column, "asc" | "desc", "nulls first" | "nulls last"]`. */
export type OrderTerm = readonly [column: number, direction: "asc" | "desc", nulls: "nulls first" | "nulls last"];

/** A node of the result's tree. Columns are indices into its table's. */
export interface PlaceLayout {
  readonly parent: number | null;
  readonly as: string | null;
  readonly table: number;
  readonly columns: readonly number[];
  /** Pairs of parent and child column. */
  readonly on: readonly (readonly [number, number])[];
  readonly order: readonly OrderTerm[];
  readonly one: boolean;
  /** Shows its first row's one column, or what `or` says. */
  readonly value?: { readonly or: Json };
}

/** A result's tables and tree. */
export interface Layout {
  readonly tables: readonly TableLayout[];
  readonly places: readonly PlaceLayout[];
}

/** What `subscribed` says. */
export interface Subscribed extends Layout {
  readonly sub: number;
  readonly epoch: number;
  readonly fp: string;
  readonly resumed: boolean;
}

/** An operation of a batch. */
export type Op =
  | readonly ["+" | "~", table: number, places: number, cells: readonly unknown[]]
  | readonly ["-", table: number, key: readonly unknown[]];

/** What `batch` carries. */
export interface Batch {
  readonly sub: number;
  readonly epoch: number;
  readonly seq: number;
  readonly cv: number;
  readonly fp: string;
  readonly more?: boolean;
  readonly ops: readonly Op[];
}

/** A stable code and a text for people. */
export interface ErrorBody {
  readonly code: string;
  readonly message: string;
}

/** Those of the server's limits that are kept to here; one that is not named is none. */
export interface Limits {
  /** Bytes of a message. */
  readonly message_bytes_max?: number;
  /** Mutations of a `push`. */
  readonly mutations_max?: number;
}

/** What `welcome` says. */
export interface Welcome {
  readonly protocol: number;
  readonly server: string;
  readonly conn: string;
  readonly cv: number;
  readonly limits?: Limits;
}

/** A message from the server, by its kind. Members that are not named here are passed over. */
export interface ServerMessage {
  readonly welcome?: Welcome;
  readonly subscribed?: Subscribed;
  readonly batch?: Batch;
  readonly progress?: { readonly cv_min: number };
  readonly faulted?: ErrorBody & { readonly sub: number; readonly retry: boolean };
  readonly error?: ErrorBody & { readonly sub?: number };
  readonly push_result?: { readonly id: number; readonly error: ErrorBody | null };
  readonly goaway?: ErrorBody & { readonly retry_after_ms?: number };
  readonly pong?: { readonly t: unknown };
}
