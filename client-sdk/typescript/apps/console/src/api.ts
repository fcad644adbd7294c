// What the console asks of the HTTP API, with the form of the answers.

import type { QuerySource } from "@tidegate/client";
import { stringified } from "./values.js";

/** An answer takes at most so long, milliseconds; then the server counts as not answering. */
const ANSWER_MS_MAX = 10_000;

/** The server answered with an error. Anything else that `ask` throws means that it did not answer. */
export class Refusal extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** There is nothing of that name. */
export class NotFound extends Refusal {}

export interface Status {
  readonly server: string;
  readonly ready: boolean;
  readonly reason: string | null;
  readonly cv: number;
  readonly source: { readonly url: string; readonly lag_seconds: number };
  readonly uptime_seconds: number;
  readonly connections: number;
  readonly subscriptions: number;
  readonly queries: number;
  readonly bindings: number;
  readonly workers: readonly { readonly worker: number; readonly cv: number; readonly queue: number; readonly families: number }[];
  readonly drain_queue: number;
  readonly outbox_bytes: number;
  readonly tables: readonly { readonly name: string; readonly rows: number }[];
  readonly store_bytes: number;
  readonly log_bytes: number;
  readonly memory_bytes: number | null;
}

interface ShapeState {
  /** The live shape's number; null when none is live. */
  readonly shape: number | null;
  readonly rows: number;
  readonly bindings: number;
  readonly subscribers: number;
  readonly last_advance_us: number;
}

export interface NamedQuery extends ShapeState {
  readonly name: string;
  readonly args: Readonly<Record<string, string>>;
  readonly pin: boolean;
  readonly idle_ttl_ms: number | null;
  readonly fault: string | null;
  readonly sql?: string;
  readonly query?: unknown;
}

export interface LiveShape extends ShapeState {
  readonly shape: number;
  readonly plan: readonly string[];
  readonly worker: number;
}

export interface Queries {
  readonly queries: readonly NamedQuery[];
  readonly live: readonly LiveShape[];
  readonly live_total: number;
}

export interface Connections {
  readonly cv: number;
  readonly total: number;
  readonly connections: readonly {
    readonly conn: string;
    readonly client_id: string | null;
    readonly codec: string;
    readonly subscriptions: number;
    readonly connected_seconds: number;
    readonly released_cv: number;
    readonly lag_commits: number;
    readonly outbox_bytes: number;
  }[];
}

export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  /** Its place in the primary key, from 1; null when it is no part of it. */
  readonly key: number | null;
}

/** Asks for JSON. */
export async function json<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(path, { ...init, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  const body = await response.json();
  if (!response.ok) throw new (response.status === 404 ? NotFound : Refusal)(body.error.code, body.error.message);
  return body as T;
}

/** Asks for text. */
export async function text(path: string): Promise<string> {
  const response = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.text();
}

const posted = (body: unknown): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: stringified(body),
});

/** Runs one statement and answers its rows as objects. */
async function statement(sql: string, args: Readonly<Record<string, unknown>> = {}): Promise<Record<string, unknown>[]> {
  const { results } = await json<{ results: { columns: { name: string }[]; rows: unknown[][] }[] }>("/v1/sql", posted({ sql, args }));
  const { columns, rows } = results[0]!;
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));
}

/** A table's columns in their order. */
export async function columnsOf(table: string): Promise<readonly TableColumn[]> {
  const rows = await statement(`show columns from "${table.replaceAll('"', '""')}"`);
  return rows.map((row) => row as unknown as TableColumn);
}

/** A materialized view, kept up to date by its query. */
export interface View {
  readonly name: string;
  readonly rows: number;
}

/** The materialized views. */
export async function views(): Promise<readonly View[]> {
  const rows = await statement("show views");
  return rows.map((row) => row as unknown as View);
}

/** How a query is maintained, one line a fact. */
export async function planOf(source: QuerySource): Promise<readonly string[]> {
  const { plan } = await json<{ plan: readonly string[] }>("/v1/explain", posted({ ...source, analyze: true }));
  return plan;
}
