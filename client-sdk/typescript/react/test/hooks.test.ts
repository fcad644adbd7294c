// The hooks in StrictMode, where React mounts everything twice, over a server that the test plays.

import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { add, batch, edit, progress, render, Stage, subscribed } from "./support/stage.js";
import { from, int8, table, text, type Transaction } from "@tidegate/client";
import * as React from "react";
import { TidegateProvider, useConnectionStatus, useMutation, useQuery, useSuspenseQuery, useTidegate } from "../src/index.js";

const h = React.createElement;
const notes = table("notes", { id: int8(), text: text() }, { key: ["id"] });
const mutators = { add: (tx: Transaction, row: { id: number; text: string }) => tx.insert(notes, row) };

const stages: Stage[] = [];
function stage(options = {}): Stage {
  const made = new Stage(options);
  stages.push(made);
  return made;
}
afterEach(() => {
  for (const { client } of stages.splice(0)) client.close();
});
const under = (made: Stage, ...children: React.ReactNode[]) => h(TidegateProvider, { client: made.client }, ...children);

function List({ renders }: { renders?: () => void }) {
  renders?.();
  const { rows, status, error } = useQuery(from(notes));
  return h("p", null, `${status} ${error?.code ?? ""}${rows.map((row) => row.text).join()}`);
}

test("useQuery shows rows and follows them; equal queries share a subscription", async () => {
  const made = stage();
  const shown = await render(under(made, h(List), h(List)));
  await made.accept();
  assert.equal(shown.text, "connecting connecting ");
  assert.deepEqual(made.asked("subscribe").length, 1, "also under StrictMode");
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  assert.equal(shown.text, "complete acomplete a");
  await made.act(batch(1, 7, 1, 6, [add(2, "b")]), progress(6));
  assert.equal(shown.text, "complete a,bcomplete a,b");
  await shown.unmount();
  const ended = (): boolean => made.asked("unsubscribe").length === 1;
  while (!ended()) await new Promise((resolve) => setImmediate(resolve));
});

test("a commit that does not concern a query renders nothing", async () => {
  const made = stage();
  let renders = 0;
  await render(under(made, h(List, { renders: () => (renders += 1) })));
  await made.accept();
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  const before = renders;
  await made.act(progress(6), progress(7));
  assert.equal(renders, before);
});

test("rows that do not change are the same objects, so that memoized rows stay", async () => {
  const made = stage();
  const rendered: string[] = [];
  const Row = React.memo(({ row }: { row: { id: number; text: string } }) => (rendered.push(row.text), h("li", null, row.text)));
  const Rows = () => h("ul", null, ...useQuery(from(notes)).rows.map((row) => h(Row, { key: row.id, row })));
  await render(under(made, h(Rows)));
  await made.accept();
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a"), add(2, "b")]), progress(5));
  rendered.length = 0;
  await made.act(batch(1, 7, 1, 6, [edit(2, "B")]), progress(6));
  assert.deepEqual([...new Set(rendered)], ["B"]);
});

test("another query takes over, and none waits", async () => {
  const made = stage();
  const One = ({ id }: { id: number | null }) => {
    const { rows, status } = useQuery(id === null ? null : from(notes).where("id", id));
    return h("p", null, `${status} ${rows.map((row) => row.text).join()}`);
  };
  const shown = await render(under(made, h(One, { id: null })));
  await made.accept();
  assert.deepEqual([shown.text, made.asked("subscribe")], ["connecting ", []]);
  await shown.rerender(under(made, h(One, { id: 1 })));
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  assert.equal(shown.text, "complete a");
  await shown.rerender(under(made, h(One, { id: 2 })));
  assert.equal(shown.text, "connecting ");
  await made.act(subscribed(2, 8), batch(2, 8, 0, 6, [add(2, "b")]), progress(6));
  assert.equal(shown.text, "complete b");
});

test("held rows show in the first paint", async () => {
  const made = stage();
  await render(under(made, h(List)));
  await made.accept();
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a"), add(2, "b")]), progress(5));
  const seen: string[] = [];
  const Detail = () => {
    const { rows, status } = useQuery(from(notes).where("id", 2));
    seen.push(`${status} ${rows.map((row) => row.text).join()}`);
    return null;
  };
  await render(under(made, h(Detail)));
  assert.equal(seen[0], "partial b");
});

class Boundary extends React.Component<{ children?: React.ReactNode }, { code?: string }> {
  override state: { code?: string } = {};
  static getDerivedStateFromError(error: { code: string }) {
    return { code: error.code };
  }
  override render() {
    return this.state.code ?? this.props.children;
  }
}
const faulted = (sub: number) => ({ faulted: { sub, code: "query_faulted", message: "division by zero", retry: false } });

test("useSuspenseQuery waits, however long, and throws failures to the boundary", async () => {
  const made = stage();
  const Waiting = () => h("p", null, useSuspenseQuery(from(notes)).rows.map((row) => row.text).join());
  const shown = await render(under(made, h(Boundary, null, h(React.Suspense, { fallback: "waiting" }, h(Waiting)))));
  await made.accept();
  assert.equal(shown.text, "waiting");
  // Longer than a query lives without a view.
  const from_ = Date.now();
  while (Date.now() - from_ < 30) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(made.asked("unsubscribe"), []);
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  assert.equal(shown.text, "a");
  const complain = console.error;
  console.error = () => {}; // React tells of errors that boundaries catch
  await made.act(faulted(1));
  console.error = complain;
  assert.equal(shown.text, "query_faulted");
});

test("useSuspenseQuery throws to the boundary what fails before there are rows; after a reset it asks again", async () => {
  const made = stage();
  let left = 100;
  const Waiting = () => {
    left -= 1;
    if (left < 0) return "renders without end";
    return h("p", null, useSuspenseQuery(from(notes)).rows.map((row) => row.text).join());
  };
  const tree = (reset: number) => under(made, h(Boundary, { key: reset }, h(React.Suspense, { fallback: "waiting" }, h(Waiting), h(Waiting))));
  const shown = await render(tree(0));
  await made.accept();
  assert.equal(shown.text, "waiting");
  const complain = console.error;
  console.error = () => {};
  await made.act(faulted(1));
  assert.equal(shown.text, "query_faulted");
  assert.equal(made.asked("subscribe").length, 1, "the failure is not asked for anew");
  // What has just failed is thrown again.
  left = Infinity;
  for (let reset = 1; made.asked("subscribe").length === 1; reset += 1) await shown.rerender(tree(reset));
  console.error = complain;
  assert.equal(shown.text, "waiting");
  assert.equal(made.asked("subscribe").length, 2);
  await made.act(subscribed(2, 8), batch(2, 8, 0, 5, [add(1, "a")]), progress(5));
  assert.equal(shown.text, "aa");
  await shown.unmount();
  while (made.asked("unsubscribe").length === 0) await new Promise((resolve) => setImmediate(resolve));
});

test("useMutation shows at once, and tells how it stands", async () => {
  const made = stage({ mutators, clientId: "c" });
  let write = (_row: { id: number; text: string }): unknown => undefined;
  const Form = () => {
    const [add, { pending, error }] = useMutation(useTidegate<typeof mutators>().mutate.add);
    write = add;
    return h("p", null, `${pending} ${error?.code ?? "ok"} `);
  };
  const shown = await render(under(made, h(Form), h(List)));
  await made.accept();
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, []), progress(5));
  await React.act(async () => void write({ id: 1, text: "new" }));
  assert.equal(shown.text, "1 ok complete new");
  const own = {
    subscribed: {
      sub: 0, epoch: 9, fp: "0123456789abcdef", resumed: false,
      tables: [{ name: "tidegate_client_mutations", columns: [{ name: "client_id", type: "text" }, { name: "last_mutation_id", type: "int8" }], key: [0] }],
      places: [{ parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false }],
    },
  };
  await made.act(own, batch(0, 9, 0, 5, []), progress(5));
  assert.equal(made.asked("push")[0].mutations[0].id, 1);
  await made.act({ push_result: { id: 1, error: { code: "conflict", message: "there is one" } } });
  assert.equal(shown.text, "0 conflict complete ");
  await React.act(async () => void write({ id: 2, text: "again" }));
  assert.equal(shown.text, "1 ok complete again");
  await made.act({ push_result: { id: 2, error: null } }, batch(0, 9, 1, 6, [["+", 0, 1, ["c", 2]]]), batch(1, 7, 1, 6, [add(2, "again")]), progress(6));
  assert.equal(shown.text, "0 ok complete again");
});

test("useConnectionStatus follows the connection; rows stay while it is gone", async () => {
  const made = stage();
  const Status = () => h("b", null, `${useConnectionStatus().state} `);
  const shown = await render(under(made, h(Status), h(List)));
  assert.match(shown.text, /^connecting /);
  await made.accept();
  await made.act(subscribed(1, 7), batch(1, 7, 0, 5, [add(1, "a")]), progress(5));
  assert.equal(shown.text, "connected complete a");
  await made.lose();
  assert.equal(shown.text, "waiting complete a");
});

test("a hook without a provider says so", async () => {
  const complain = console.error;
  console.error = () => {};
  await assert.rejects(render(h(List)), /no <TidegateProvider> above/);
  console.error = complain;
});
