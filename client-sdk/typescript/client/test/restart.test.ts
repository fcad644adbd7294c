// A server that is killed and comes back: the client continues where it was.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { from, int8, sql, table, text, type Transaction } from "../src/index.js";
import { connect, startServer, until } from "./support/server.js";

const notes = table("notes", { id: int8({ bigint: true }), text: text() }, { key: ["id"] });

for (const codec of ["json", "msgpack"] as const) {
  test(`a killed server is resumed from, in ${codec}`, async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "tidegate-ts-"));
    let server = await startServer({ dataDir });
    const mutators = { add: (tx: Transaction, row: { id: bigint; text: string }) => tx.insert(notes, row) };
    const client = connect<typeof mutators>(server, { codec, mutators });
    try {
      await server.sql("create table notes (id bigint primary key, text text not null); insert into notes values (9007199254740993, 'a'), (2, 'b')");
      const view = client.view(from(notes));
      const flat = client.view(sql<{ n: number }>`select count(*) as n from notes where id > ${9007199254740992n}`);
      await Promise.all([view.complete(), flat.complete()]);
      assert.deepEqual([view.rows, flat.rows], [[{ id: 2n, text: "b" }, { id: 9007199254740993n, text: "a" }], [{ n: 1 }]]);
      const statuses = new Set<string>();
      view.subscribe(({ status, rows }) => statuses.add(`${status} ${rows.length > 0}`));
      const before = view.rows;
      await server.stop();
      await until("the loss", () => client.status.state !== "connected", (look) => client.onStatus(look));
      const { confirmed } = client.mutate.add({ id: 3n, text: "made meanwhile" });
      assert.equal(view.rows.length, 3);
      server = await startServer({ dataDir, port: server.port });
      await confirmed;
      await server.sql("delete from notes where id = 2");
      await until("the last change", () => view.rows.every(({ id }) => id !== 2n), (look) => view.subscribe(look));
      assert.deepEqual(view.rows.map(({ id }) => id), [3n, 9007199254740993n]);
      assert.equal(view.rows[1], before[1], "what stayed is the same object");
      assert.deepEqual([...statuses], ["complete true"], "never an empty flash");
    } finally {
      client.close();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
}
