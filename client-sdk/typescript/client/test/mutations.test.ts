// Optimistic mutations against a real server, which is the oracle: what a client shows at once, and says to be complete,
// has to be what the server makes of it.
//
// Seen to fail: without looking behind the edge of a full limit; with a pending insert judged by the columns that it
// gives alone; with pending rows taken for released ones when children are looked for.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  and, between, bool, count, eq, exists, from, gt, ilike, int8, isIn, isNull, like, lt, ne, not, numeric, or, ownBackend, param, table, text,
  named, sql, timestamptz, type Query, type Transaction, type TidegateClient,
  type TidegateError, type View,
} from "../src/index.js";
import { batch, progress, Stage, subscribed } from "./support/memory.js";
import { OWN } from "./support/script.js";
import { random, type Random } from "./support/random.js";
import { connect, startServer, until, type Server } from "./support/server.js";

const issues = table(
  "issues",
  { id: int8(), project: int8(), rank: int8().orNull(), title: text(), open: bool(), cost: numeric().orNull(), at: timestamptz() },
  { key: ["id"] },
);
const comments = table("comments", { id: int8(), issue_id: int8(), body: text() }, { key: ["id"] });

const mutators = {
  addIssue: (tx: Transaction, row: { id: number; project: number; title: string; rank?: number | null; open?: boolean; cost?: string | null }) =>
    tx.insert(issues, { open: true, at: "2013-02-04T05:00:00Z", cost: null, rank: null, ...row }),
  setIssue: (tx: Transaction, { id, ...set }: { id: number; project?: number; rank?: number | null; title?: string; open?: boolean; cost?: string | null }) =>
    tx.update(issues, { id }, set),
  bump: (tx: Transaction, { id }: { id: number }) => {
    const row = tx.get(issues, { id });
    tx.update(issues, { id }, { rank: (row?.rank ?? 0) + 1 });
  },
  removeIssue: (tx: Transaction, { id }: { id: number }) => tx.delete(issues, { id }),
  comment: (tx: Transaction, row: { id: number; issue_id: number; body: string }) => tx.insert(comments, row),
  moveComment: (tx: Transaction, { id, issue_id }: { id: number; issue_id: number }) => tx.update(comments, { id }, { issue_id }),
  removeComment: (tx: Transaction, { id }: { id: number }) => tx.delete(comments, { id }),
  both: (tx: Transaction, { issue, comment }: { issue: number; comment: number }) => {
    tx.insert(issues, { id: issue, project: 1, title: "both", open: true, at: "2013-02-04T05:00:00Z" });
    tx.insert(comments, { id: comment, issue_id: issue, body: "first" });
  },
};

let server: Server;
const clients: { close(): void }[] = [];
before(async () => {
  server = await startServer();
  await server.sql(`create table issues (id bigint primary key, project bigint not null, rank bigint, title text not null,
    open boolean not null, cost numeric, at timestamptz not null);
    create table comments (id bigint primary key, issue_id bigint not null, body text not null)`);
});
after(async () => {
  for (const client of clients) client.close();
  await server.stop();
});

/** A client with views that are complete. */
async function looking<R>(queries: readonly Query<R>[], options = {}): Promise<{ client: TidegateClient<typeof mutators>; views: View<R>[] }> {
  const client = connect<typeof mutators>(server, { mutators, ...options });
  clients.push(client);
  const views = queries.map((query) => client.view(query));
  await Promise.all(views.map((view) => view.complete()));
  return { client, views };
}

test("a mutation shows at once, is confirmed, and others see it", async () => {
  const query = from(issues).where("project", 100).related("comments", from(comments), { id: "issue_id" });
  const { client, views: [view] } = await looking([query]);
  const other = await looking([query]);
  const { confirmed } = client.mutate.addIssue({ id: 100, project: 100, title: "new" });
  assert.deepEqual([view!.rows[0]?.title, view!.status, client.pendingMutations], ["new", "partial", 1]);
  // The server might have comments of such an issue already.
  client.mutate.comment({ id: 100, issue_id: 100, body: "at once" });
  assert.deepEqual(view!.rows[0]?.comments, [{ id: 100, issue_id: 100, body: "at once" }]);
  client.mutate.bump({ id: 100 });
  client.mutate.bump({ id: 100 });
  assert.equal(view!.rows[0]?.rank, 2, "a mutator reads what pending mutations made");
  const row = view!.rows[0];
  await confirmed;
  await client.mutate.bump({ id: 100 }).confirmed;
  assert.equal(client.pendingMutations, 0);
  assert.deepEqual(view!.rows, [{ ...row, rank: 3 }]);
  await until("the other client", () => other.views[0]!.rows[0]?.rank === 3, (look) => other.views[0]!.subscribe(look));
});

test("a refused mutation is taken back and says why", async () => {
  const refusals: string[] = [];
  const { client, views: [view] } = await looking([from(issues).where("project", 101)], {
    onRefused: (error: TidegateError, { name }: { name: string }) => refusals.push(`${name} ${error.code}: ${error.message}`),
  });
  await client.mutate.addIssue({ id: 101, project: 101, title: "first" }).confirmed;
  const before = view!.rows;
  const refused = client.mutate.addIssue({ id: 101, project: 101, title: "second" });
  const behind = client.mutate.addIssue({ id: 1010, project: 101, title: "behind" });
  assert.equal(view!.rows[0]?.title, "second");
  const message = 'ops[0]: table issues, key {"id":101}: a row with this key exists already';
  await assert.rejects(refused.confirmed, { code: "conflict", message });
  assert.deepEqual(view!.rows[0], before[0]);
  await behind.confirmed;
  assert.deepEqual([view!.rows.length, refusals, client.pendingMutations], [2, [`addIssue conflict: ${message}`], 0]);
});

test("a mutator that fails, or one too many, changes nothing", async () => {
  const failing = { ...mutators, fail: (tx: Transaction) => { tx.delete(issues, { id: 1 }); throw new Error("no"); } };
  const client = connect(server, { mutators: failing, mutationsMax: 1 });
  clients.push(client);
  assert.throws(() => client.mutate.fail(), /no/);
  assert.equal(client.pendingMutations, 0);
  client.mutate.removeIssue({ id: 999 });
  assert.throws(() => client.mutate.removeIssue({ id: 999 }), { code: "queue_full" });
});

test("SQL and named queries are partial while a mutation is pending, which may concern them", async () => {
  await server.put("/v1/queries/with_comments", {
    query: { table: "issues", where: { op: "and", args: [{ op: "=", args: [{ col: "project" }, { param: "p" }] }, { exists: { query: { table: "comments" }, on: [["id", "issue_id"]] } }] } },
    args: { p: "int8" },
  });
  const counted = sql<{ n: number }>`select count(*) as n from comments where issue_id = ${103}`;
  const commented = named<{ id: number }, { p: number }>("with_comments")({ p: 103 });
  const { client, views: [view, count, withComments] } = await looking<any>([from(issues).where("project", 103), counted, commented]);
  const statuses = () => [view!, count!, withComments!].map(({ status }) => status);
  await client.mutate.addIssue({ id: 103, project: 103, title: "a" }).confirmed;
  assert.deepEqual(statuses(), ["complete", "complete", "complete"]);
  const updates: string[] = [];
  count!.subscribe(({ rows, status }) => updates.push(`${rows[0].n} ${status}`));
  const { confirmed } = client.mutate.comment({ id: 103, issue_id: 103, body: "x" });
  assert.deepEqual(statuses(), ["complete", "partial", "partial"], "no comment shows in the first");
  assert.deepEqual([count!.rows[0].n, withComments!.rows.length], [0, 0]);
  await confirmed;
  assert.deepEqual([count!.rows[0].n, withComments!.rows.length, statuses()], [1, 1, ["complete", "complete", "complete"]]);
  assert.ok(updates.includes("0 partial") && !updates.includes("0 complete"), updates.join());
  assert.equal(updates.at(-1), "1 complete");
});

test("mutations wait for the connection, in order", async () => {
  const client = connect<typeof mutators>(server, { mutators });
  clients.push(client);
  const view = client.view(from(issues).where("project", 102));
  client.mutate.addIssue({ id: 102, project: 102, title: "made before the connection" });
  await client.mutate.setIssue({ id: 102, title: "changed" }).confirmed;
  assert.deepEqual((await view.complete()).map(({ title }) => title), ["changed"]);
});

test("mutations go to an own backend in order, again when it fails, and are confirmed by its count", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const posted: string[] = [];
  let fail = true;
  const stage = new Stage<typeof mutators>({
    mutators,
    clientId: "c",
    backoffMs: 1,
    backend: ownBackend(async (mutations) => {
      posted.push(mutations.map(({ clientId, id, name }) => `${clientId} ${id} ${name}`).join());
      if (fail) {
        fail = false;
        throw new Error("unreachable");
      }
      return mutations.flatMap(({ id }) => (id === 9 ? [{ id, error: { code: "forbidden", message: "not yours" } }] : []));
    }),
  });
  clients.push(stage.client);
  const peer = await stage.accept();
  const added = stage.client.mutate.addIssue({ id: 1, project: 1, title: "a" });
  const refused = stage.client.mutate.removeIssue({ id: 2 });
  peer.say(subscribed(0, 1, false, OWN), batch(0, 1, 0, 5, [["+", 0, 1, ["c", 7]]]), progress(5));
  await assert.rejects(refused.confirmed, { code: "forbidden" });
  assert.deepEqual(posted, ["c 8 addIssue,c 9 removeIssue", "c 8 addIssue,c 9 removeIssue"]);
  assert.deepEqual(peer.asked("push"), [], "nothing goes over the socket");
  peer.say(batch(0, 1, 1, 6, [["~", 0, 1, ["c", 9]]]), progress(6));
  await added.confirmed;
  assert.equal(stage.client.pendingMutations, 0);
  assert.deepEqual(warned.mock.calls.map(({ arguments: [text] }) => text), ["tidegate: the backend is asked again: Error: unreachable"]);
});

// --- what is shown at once is what the server makes of it -------------------------------------------------------------

const queries = [
  from(issues),
  from(issues).where("project", 1).orderBy("rank", "desc").orderBy("title"),
  from(issues).where((c) => and(gt(c.rank, 2), not(isNull(c.cost)))).select("id", "title"),
  from(issues).where((c) => or(eq(c.open, true), isIn(c.project, [2, 3]))).orderBy("title", "desc").limit(4),
  from(issues).where((c) => or(like(c.title, "a%"), ilike(c.title, "%B_"))).orderBy("cost", "asc", "nulls first"),
  from(issues).where((c) => and(between(c.rank, 1, 3), ne(c.project, 3))).orderBy("rank").startAfter({ rank: 1 }),
  from(issues).orderBy("rank").startAt({ rank: null }).limit(3),
  from(issues).where((c) => lt(c.cost, param("most"))).args({ most: "2.50" }),
  from(issues).where(() => exists(from(comments), { id: "issue_id" })),
  from(issues).where("open", true).related("comments", from(comments).orderBy("body", "desc").limit(2), { id: "issue_id" }),
  from(issues).where("project", 2).relatedOne("comment", from(comments), { id: "issue_id" }).relatedValue("n", count(), from(comments), { id: "issue_id" }),
  from(comments).relatedOne("issue", from(issues).select("id", "title"), { issue_id: "id" }),
  from(issues).groupBy(["project"], { n: count() }),
];

function someMutation(r: Random, client: TidegateClient<typeof mutators>): { confirmed: Promise<void> } {
  const id = r.below(12);
  const some = <T>(values: readonly T[]): T => values[r.below(values.length)]!;
  const values = {
    project: 1 + r.below(3), rank: some([null, 0, 1, 2, 3, 4]), title: some(["a", "ab", "B", "xbz", "c"]), open: some([true, false]),
    cost: some([null, "1", "1.0", "2.5", "10"]),
  };
  const { mutate } = client;
  switch (r.below(9)) {
    case 0:
    case 1:
      return mutate.addIssue({ id, ...values });
    case 2:
      return mutate.setIssue({ id, ...values });
    case 3:
      return mutate.setIssue({ id, ...some([{ rank: values.rank }, { title: values.title }, { project: values.project }, { open: values.open }, { cost: values.cost }]) });
    case 4:
      return mutate.removeIssue({ id });
    case 5:
    case 6:
      return mutate.comment({ id: r.below(20), issue_id: id, body: values.title });
    case 7:
      return r.below(2) === 0 ? mutate.moveComment({ id: r.below(20), issue_id: id }) : mutate.removeComment({ id: r.below(20) });
    default:
      return mutate.both({ issue: id, comment: r.below(20) });
  }
}

test("view_equals_fresh_query, ahead of the server", async () => {
  let [complete, partial] = [0, 0];
  for (let seed = 1; seed <= 6; seed += 1) {
    const r = random(seed);
    await server.sql("delete from issues; delete from comments");
    const { client, views } = await looking(queries as readonly Query<unknown>[]);
    for (let step = 0; step < 60; step += 1) {
      const ahead = Array.from({ length: 1 + r.below(3) }, () => someMutation(r, client));
      const shown = views.map((view) => ({ rows: JSON.stringify(view.rows), status: view.status }));
      const outcomes = await Promise.allSettled(ahead.map(({ confirmed }) => confirmed));
      // A refused mutation was shown, and then was not to be.
      if (outcomes.some(({ status }) => status === "rejected")) continue;
      views.forEach((view, index) => {
        assert.equal(view.status, "complete");
        if (shown[index]!.status === "partial") return void (partial += 1);
        complete += 1;
        const what = `seed ${seed}, step ${step}: ${JSON.stringify(queries[index]!.ast)}`;
        assert.equal(shown[index]!.rows, JSON.stringify(view.rows), what);
      });
    }
    client.close();
  }
  assert.ok(complete > 2 * partial, `${complete} complete, ${partial} partial`);
});

test("a new query is answered at once from rows that are held, then completed", async () => {
  await server.sql(`delete from issues; delete from comments;
    insert into issues values (1, 1, 1, 'a', true, null, '2013-02-04'), (2, 1, 2, 'b', false, null, '2013-02-04'), (3, 2, 3, 'c', true, null, '2013-02-04');
    insert into comments values (1, 1, 'x'), (2, 1, 'y'), (3, 3, 'z')`);
  const { client } = await looking<unknown>([from(issues), from(comments)]);
  const detail = from(issues).where("project", 1).orderBy("rank", "desc")
    .related("comments", from(comments).orderBy("body", "desc").limit(1), { id: "issue_id" });
  const view = client.view(detail);
  assert.equal(view.status, "partial");
  const atOnce = JSON.stringify(view.rows);
  assert.deepEqual(view.rows.map(({ id, comments: own }) => [id, own.map(({ body }) => body)]), [[2, []], [1, ["y"]]]);
  assert.equal(JSON.stringify(await view.complete()), atOnce);
  // Nothing can be said of computed values.
  assert.equal(client.view(from(issues).groupBy(["project"], { n: count() })).status, "connecting");
});
