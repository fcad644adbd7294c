// Settings of a client, each with its unit and default.

import type { Connect } from "./connection/transport.js";
import type { Wakeups } from "./connection/wakeups.js";
import type { TidegateError } from "./error.js";
import type { Backend } from "./optimistic/poster.js";
import type { Mutators } from "./optimistic/transaction.js";
import type { SchemaCheck } from "./query/schema_check.js";
import type { Storage } from "./storage/storage.js";
import type { Codec } from "./wire/value.js";

/** Settings of a client. */
export interface ClientOptions<M extends Mutators> {
  /** The server: `https://…`, or the address of its WebSocket. */
  readonly url: string;
  /** The encoding of messages. Default: `msgpack`. */
  readonly codec?: Codec;
  /** A WebSocket class where there is no global one, such as that of the package `ws`. */
  readonly WebSocket?: unknown;
  /** Makes connections of another kind, in the place of WebSockets. */
  readonly connect?: Connect;
  /** Asked for a token before every connection, and by `refreshToken`. Default: no token. */
  readonly token?: () => string | undefined | Promise<string | undefined>;
  /**
   * Names the client across connections and processes; needed for mutations. No two clients may use one name at the
   * same time, unless they share a storage. Default: the storage's, else a random one where there are mutators.
   */
  readonly clientId?: string;
  /** What can be written, by name. */
  readonly mutators?: M;
  /** Brings mutations to the application's own backend, in the place of the server's embedded store: `ownBackend(post)`. */
  readonly backend?: Backend;
  /** Tells `onError` where the schema is not what the server has: `schemaCheck()`. Default: nothing does. */
  readonly checkSchema?: SchemaCheck | undefined;
  /** Keeps results and mutations over reloads. Default: none. */
  readonly storage?: Storage;
  /** Told of every mutation that is refused, also of those that a reload has outlived. */
  readonly onRefused?: (error: TidegateError, mutation: { readonly name: string; readonly args: unknown }) => void;
  /** Told of what concerns no view: refused messages, a storage that fails, mutators that cannot run again, a schema that does not fit. Default: `console.warn`. */
  readonly onError?: (error: TidegateError) => void;
  /** How long a connection may take to be made and welcomed, milliseconds. Default: 10,000. */
  readonly connectTimeoutMs?: number;
  /** After how long a silence the server is asked for a sign of life, milliseconds. Default: 35,000. */
  readonly pingMs?: number;
  /** After how long a silence the server counts as gone, milliseconds; more than `pingMs`. Default: 60,000. */
  readonly silenceMsMax?: number;
  /** The first wait before reconnecting, milliseconds; doubles with every failure. Default: 100. */
  readonly backoffMs?: number;
  /** The longest wait before reconnecting, unless the server asks for a longer one, milliseconds. Default: 30,000. */
  readonly backoffMsMax?: number;
  /** How long a query lives on without a view, milliseconds. Default: 5,000. */
  readonly lingerMs?: number;
  /** Most mutations that may wait for their confirmation; further ones are refused. Default: 1,000. */
  readonly mutationsMax?: number;
  /** Most row operations that may wait for their release; a server that sends more is reconnected to. Default: 10,000,000. */
  readonly waitingOpsMax?: number;
  /** When to connect at once, or to doubt a connection. Default: the browser's `online`, `offline` and `visibilitychange`. */
  readonly wakeups?: Wakeups;
}
