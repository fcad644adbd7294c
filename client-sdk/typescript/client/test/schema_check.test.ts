// A schema beside what a real server has: what does not fit is told, once, and nothing else is.

import assert from "node:assert/strict";
import { test } from "node:test";
import { count, from, int8, max, schemaCheck, sql, table, text, timestamptz, type TidegateError } from "../src/index.js";
import { connect, startServer } from "./support/server.js";

test("columns of another type and columns that are not there are told once", async () => {
  const server = await startServer();
  const told: TidegateError[] = [];
  const client = connect(server, { checkSchema: schemaCheck(), onError: (error) => void told.push(error) });
  try {
    await server.sql(`create table issues (id bigint primary key, project bigint not null, title text not null);
      create table result (id bigint primary key, title text)`);
    const columns = { id: int8(), project: int8(), title: text() };
    const issues = table("issues", columns, { key: ["id"] });
    const fewer = table("issues", { id: int8(), title: text() }, { key: ["id"] });
    const result = table("result", { id: int8(), title: text() }, { key: ["id"] });
    const fitting = [
      from(issues).related("others", from(issues).select("title"), { project: "project" }),
      from(issues).relatedValue("title_max", max<string>("title"), from(issues), { id: "id" }),
      from(fewer),
      from(result).groupBy(["id"], { title: count() }),
      sql`select id from issues`,
    ];
    for (const query of fitting) await client.view<object>(query).complete();
    assert.deepEqual(told, []);

    const stale = table("issues", { ...columns, project: text(), closed: timestamptz() }, { key: ["id"] });
    await client.view(from(stale).select("title")).complete();
    assert.deepEqual(told, [], "columns that the query does not show");
    for (const query of [from(stale), from(stale).limit(1), from(issues).related("stale", from(stale), { id: "id" })]) await client.view<object>(query).complete();
    assert.deepEqual(told.map(({ code, message }) => [code, message]), [
      [
        "schema_mismatch",
        "the schema declares issues.project as text, at the server it is int8; " +
          "the schema declares issues.closed as timestamptz, the server has no such column: run tidegate-codegen again",
      ],
    ]);
  } finally {
    client.close();
    await server.stop();
  }
});
