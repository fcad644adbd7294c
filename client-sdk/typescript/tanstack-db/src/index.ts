// A live query as a TanStack DB collection: its rows are the collection's, kept fresh commit by commit.

import type { CollectionConfig, SyncConfig } from "@tanstack/db";
import type { MutationHandle, Query, TidegateClient, Update } from "@tidegate/client";

/** What a collection is made of. */
export interface TidegateCollectionConfig<Row extends object, Key extends string | number> {
  readonly client: TidegateClient<any>;
  /** The rows; `related` rows below them are values like others. */
  readonly query: Query<Row>;
  readonly getKey: (row: Row) => Key;
  /** Names the collection. Default: the query. */
  readonly id?: string;
  /** Writes a row that was inserted into the collection, by a mutator of the client. */
  readonly insert?: (row: Row) => MutationHandle;
  /** Writes a row that was changed. */
  readonly update?: (row: Row, changes: Partial<Row>) => MutationHandle;
  /** Writes that a row was taken away. */
  readonly remove?: (row: Row) => MutationHandle;
}

/** The parts of a transaction that a handler looks at. */
interface Written<Row> {
  readonly transaction: { readonly mutations: readonly { readonly modified: Row; readonly changes: Partial<Row>; readonly original: unknown }[] };
}

/** What `createCollection` takes: a collection that is ready once the query's result is whole. */
export function tidegateCollectionOptions<Row extends object, Key extends string | number>(
  config: TidegateCollectionConfig<Row, Key>,
): CollectionConfig<Row, Key> & { readonly id: string } {
  const { client, query, getKey, insert, update, remove } = config;
  const sync: SyncConfig<Row, Key>["sync"] = ({ begin, write, commit, markReady }) => {
    const view = client.view(query);
    const apply = (changes: Update<Row>["changes"]): void => {
      if (changes.length === 0) return;
      begin();
      for (const change of changes) {
        write({ type: ({ add: "insert", edit: "update", remove: "delete" } as const)[change.op], value: change.row });
      }
      commit();
    };
    const ready = (): void => {
      // Without its rows a failed query is not ready for ever: those that it has are what there is.
      if (view.status === "complete" || view.status === "error") markReady();
    };
    view.subscribe(({ changes }) => {
      apply(changes);
      ready();
    });
    apply(view.rows.map((row) => ({ op: "add", row })));
    ready();
    return () => view.close();
  };
  /** The collection shows a write until it is part of the released state, or was refused. */
  const handler = (send: (mutation: Written<Row>["transaction"]["mutations"][number]) => MutationHandle) =>
    async ({ transaction }: Written<Row>): Promise<void> => {
      await Promise.all(transaction.mutations.map((mutation) => send(mutation).confirmed));
    };
  return {
    id: config.id ?? `tidegate:${query.key}`,
    getKey,
    sync: { sync, rowUpdateMode: "full" },
    ...(insert && { onInsert: handler(({ modified }) => insert(modified)) as never }),
    ...(update && { onUpdate: handler(({ modified, changes }) => update(modified, changes)) as never }),
    ...(remove && { onDelete: handler(({ original }) => remove(original as Row)) as never }),
  };
}
