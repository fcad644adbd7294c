// What the compiler knows of schemas, queries and mutations. The assertions are the types; running it checks the JSON
// forms.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  and, bool, count, eq, exists, from, gt, int8, isIn, isNull, json, like, max, named, not, numeric, param, sql, sum, table, text,
  timestamptz, type Mutate, type NewRow, type RowsOf,
} from "../src/index.js";
import { HeldRows } from "../src/optimistic/held.js";
import { PendingRows } from "../src/optimistic/pending.js";
import { Transaction } from "../src/optimistic/transaction.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T => true as T;

const users = table("users", { id: int8(), name: text() }, { key: ["id"] });
const comments = table("comments", { id: int8({ bigint: true }), issue_id: int8(), author_id: int8().orNull(), at: timestamptz() }, { key: ["id"] });
const issues = table(
  "issues",
  { id: int8(), project: int8(), title: text(), state: text<"open" | "closed">(), cost: numeric().orNull(), done: bool(), meta: json<{ a: number }>() },
  { key: ["id"] },
);

test("rows have the columns' types, nested", () => {
  const query = from(issues)
    .where("project", 7)
    .where((c) => and(not(isNull(c.cost)), exists(from(comments).where((d) => gt(d.at, "2013-01-01T00:00:00Z")), { id: "issue_id" })))
    .select("id", "title", "cost")
    .orderBy("title", "desc")
    .limit(5)
    .startAfter({ title: "b" })
    .related("comments", from(comments).orderBy("at").limit(3).relatedOne("author", from(users).select("name"), { author_id: "id" }), { id: "issue_id" })
    .relatedValue("n", count(), from(comments), { id: "issue_id" })
    .relatedValue("newest", max<string>("at"), from(comments), { id: "issue_id" });
  type Row = RowsOf<typeof query>[number];
  holds<Equal<Row["id"], number>>();
  holds<Equal<Row["cost"], string | null>>();
  holds<Equal<Row["n"], number>>();
  holds<Equal<Row["newest"], string | null>>();
  holds<Equal<Row["comments"][number]["id"], bigint>>();
  holds<Equal<Row["comments"][number]["author_id"], number | null>>();
  holds<Equal<Row["comments"][number]["author"], { readonly name: string } | null>>();
  // @ts-expect-error: not selected
  type _Project = Row["project"];
  assert.deepEqual(query.ast, {
    table: "issues",
    where: {
      op: "and",
      args: [
        { op: "=", args: [{ col: "project" }, 7] },
        {
          op: "and",
          args: [
            { op: "not", args: [{ op: "is null", args: [{ col: "cost" }] }] },
            {
              exists: {
                query: { table: "comments", where: { op: ">", args: [{ col: "at" }, "2013-01-01T00:00:00Z"] } },
                on: [["id", "issue_id"]],
              },
            },
          ],
        },
      ],
    },
    select: ["id", "title", "cost"],
    order_by: [["title", "desc"]],
    limit: 5,
    start: { after: { title: "b" } },
    related: [
      {
        as: "comments",
        on: [["id", "issue_id"]],
        query: {
          table: "comments",
          order_by: [["at", "asc"]],
          limit: 3,
          related: [{ as: "author", on: [["author_id", "id"]], one: true, query: { table: "users", select: ["name"] } }],
        },
      },
      { as: "n", on: [["id", "issue_id"]], aggregate: { op: "count" }, query: { table: "comments" } },
      { as: "newest", on: [["id", "issue_id"]], aggregate: { op: "max", col: "at" }, query: { table: "comments" } },
    ],
  });
});

test("groups, parameters, SQL and named queries are typed", () => {
  const groups = from(issues).groupBy(["project"], { n: count(), cost: sum("cost") }).orderBy("n", "desc");
  holds<Equal<RowsOf<typeof groups>[number], { readonly project: number; readonly n: number; readonly cost: string | null }>>();
  const byParam = from(issues).where((c) => eq(c.project, param<number>("p"))).args({ p: 7n });
  assert.deepEqual(byParam.source.args, { p: 7n });
  assert.match(byParam.key, /"args":\{"p":7\}/);
  const flat = sql<{ n: number }>`select count(*) as n from issues where project = ${7} and title = ${"a'b"}`;
  holds<Equal<RowsOf<typeof flat>[number], { n: number }>>();
  assert.deepEqual(flat.source, {
    sql: "select count(*) as n from issues where project = :p1 and title = :p2",
    args: { p1: 7, p2: "a'b" },
  });
  assert.deepEqual(sql`select 1 as one`.source, { sql: "select 1 as one" });
  const open = named<{ id: number }, { project: number }>("open");
  holds<Equal<RowsOf<ReturnType<typeof open>>[number], { id: number }>>();
  assert.deepEqual(open({ project: 7 }).source, { name: "open", args: { project: 7 } });
  // @ts-expect-error: a wrong argument
  open({ project: "7" });
});

test("the compiler refuses what no column has", () => {
  const wrong: (() => unknown)[] = [
    // @ts-expect-error: no such column
    () => from(issues).where("nope", 1),
    // @ts-expect-error: a text for an int8
    () => from(issues).where("project", "7"),
    // @ts-expect-error: not one of the texts
    () => from(issues).where("state", "done"),
    // @ts-expect-error: a text for an int8
    () => from(issues).where((c) => eq(c.project, "7")),
    // @ts-expect-error: a number for a text
    () => from(issues).where((c) => isIn(c.state, [1])),
    // @ts-expect-error: no such column
    () => from(issues).where((c) => like(c.nope, "a%")),
    // @ts-expect-error: no such column
    () => from(issues).select("nope"),
    // @ts-expect-error: no such column
    () => from(issues).related("comments", from(comments), { id: "nope" }),
    // @ts-expect-error: no such column
    () => from(issues).groupBy(["nope"], {}),
    // @ts-expect-error: no such column
    () => table("t", { id: int8() }, { key: ["nope"] }),
    // @ts-expect-error: nothing equals NULL
    () => from(issues).where("cost", null),
    // @ts-expect-error: nothing equals NULL, here none is held either
    () => from(issues).where("title", "<>", null),
  ];
  assert.equal(wrong.length, 12);
  assert.throws(wrong[9]!, /has no key column nope/);
});

test("mutations are typed", () => {
  holds<Equal<NewRow<typeof comments>["author_id"], number | bigint | null | undefined>>();
  holds<Equal<NewRow<typeof comments>["id"], number | bigint>>();
  const defaulted = table("t", { id: int8(), n: int8().default(5), t: text<"a" | "b">().default("a") }, { key: ["id"] });
  holds<Equal<NewRow<typeof defaulted>, { readonly id: number | bigint } & { readonly n?: number | bigint; readonly t?: "a" | "b" }>>();
  const tx = new Transaction(new PendingRows(new HeldRows([])));
  tx.insert(defaulted, { id: 1, t: "b" });
  assert.deepEqual(tx.ops, [{ insert: "t", row: { id: 1, n: 5, t: "b" } }]);
  // @ts-expect-error: the wrong type
  text().default(5);
  const mutators = {
    rename: (tx: Transaction, { id, title }: { id: number; title: string }) => {
      tx.update(issues, { id }, { title });
      // @ts-expect-error: a key column
      () => tx.update(issues, { id }, { id });
      // @ts-expect-error: columns are missing
      () => tx.insert(issues, { id });
      const row = tx.get(issues, { id });
      holds<Equal<typeof row extends undefined | { readonly done: infer D } ? D : never, boolean>>();
    },
    clear: (tx: Transaction) => tx.delete(users, { id: 1 }),
  };
  type Calls = Mutate<typeof mutators>;
  holds<Equal<Parameters<Calls["rename"]>, [{ id: number; title: string }]>>();
  holds<Equal<Parameters<Calls["clear"]>, []>>();
});
