// What `@tidegate/client` offers.

export { TidegateClient } from "./client.js";
export type { ClientOptions } from "./options.js";
export type { ConnectionStatus } from "./connection/connection.js";
export { webSocket, type Connect, type Transport, type TransportEvents } from "./connection/transport.js";
export type { Wakeups } from "./connection/wakeups.js";
export { TidegateError } from "./error.js";
export type { Listener, Update, ViewState, ViewStatus } from "./live.js";
export { ownBackend, type Backend, type PostedMutation, type PostMutations } from "./optimistic/poster.js";
export type { Mutate, MutationHandle, Mutators, Transaction } from "./optimistic/transaction.js";
export type { Expression, QueryAst } from "./query/ast.js";
export { avg, count, from, max, min, sum, type AggregateOf, type QueryBuilder } from "./query/builder.js";
export {
  and, between, call, distinctFrom, eq, exists, gt, gte, ilike, isIn, isNotNull, isNull, like, lt, lte, ne, not, or, param,
  type Condition, type Term,
} from "./query/condition.js";
export { named, remote, sql, type Query, type RowsOf } from "./query/query.js";
export {
  bool, bytea, date, float8, int8, json, numeric, table, text, timestamptz, uuid,
  type Column, type Columns, type KeyOf, type NewRow, type NewValues, type RowOf, type Table,
} from "./query/schema.js";
export { schemaCheck, type SchemaCheck } from "./query/schema_check.js";
export type { Mutation } from "./state/mutations.js";
export type { Change } from "./state/tree.js";
export type { Content } from "./state/subscription.js";
export { indexedDbStorage, type IndexedDbOptions } from "./storage/indexed_db.js";
export type { KeptQuery, Numbered, Storage, StorageEvents, Stored, StoredQuery } from "./storage/storage.js";
export type { Cells, ErrorBody, QuerySource, Resume, RowOp } from "./wire/messages.js";
export type { Codec, ColumnType, Json, Value } from "./wire/value.js";
export { View } from "./view.js";
