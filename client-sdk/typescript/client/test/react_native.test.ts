// The client where there is no more than React Native has: the bundle in a context of the language's own objects,
// timers, a console and a WebSocket, against a real server. What it lacks is named, so that a use of it fails here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import WebSocket from "ws";
import { startServer, until } from "./support/server.js";

const GIVEN = { WebSocket, setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, console };
const LACKING = [
  "TextDecoder", "TextEncoder", "crypto", "structuredClone", "navigator", "indexedDB", "BroadcastChannel", "URL",
  "AbortController", "document", "window", "addEventListener", "Buffer", "process", "fetch", "atob", "btoa",
];

/** Makes a client and a view in the context; what it shows comes out as text. */
const APPLICATION = `
  const { TidegateClient, from, sql, table, int8, text, numeric, timestamptz, json } = tidegate;
  const notes = table("notes", { id: int8({ bigint: true }), text: text(), cost: numeric().orNull(), at: timestamptz(), doc: json().orNull() }, { key: ["id"] });
  const client = new TidegateClient({
    url, codec: "json", backoffMs: 20, backoffMsMax: 100,
    mutators: {
      add: (tx, row) => tx.insert(notes, row),
      louder: (tx, { id }) => tx.update(notes, { id }, { text: tx.get(notes, { id }).text + "!" }),
    },
  });
  const view = client.view(from(notes).where((c) => tidegate.gt(c.cost, "1.50")).orderBy("at", "desc"));
  const count = client.view(sql\`select count(*) as n from notes\`);
  ({ client, view, count, shown: () => JSON.stringify(view.rows, (_, value) => typeof value === "bigint" ? String(value) : value) });
`;

interface Application {
  readonly client: {
    readonly mutate: Record<"add" | "louder", (args: object) => { readonly confirmed: Promise<void> }>;
    readonly status: { readonly state: string };
    onStatus(look: () => void): () => void;
    wake(): void;
    close(): void;
  };
  readonly view: { readonly status: string; complete(): Promise<unknown>; subscribe(look: () => void): () => void };
  readonly count: { readonly rows: readonly { readonly n: number }[]; complete(): Promise<unknown> };
  shown(): string;
}

test("the client works with no more than React Native has, in JSON", async () => {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("../src/index.js", import.meta.url))],
    bundle: true,
    format: "iife",
    globalName: "tidegate",
    write: false,
  });
  const server = await startServer();
  await server.sql(`create table notes (id bigint primary key, text text not null, cost numeric, at timestamptz not null, doc jsonb);
    insert into notes values (9007199254740993, 'long', 2.50, '2013-02-04T05:00:00.000001Z', '{"a": [1, null]}'), (2, 'cheap', 1.50, '2013-02-04', null)`);
  const context = createContext({ ...GIVEN, url: server.url });
  for (const name of LACKING) assert.equal(runInContext(`typeof ${name}`, context), "undefined", name);
  runInContext(outputFiles[0]!.text, context);
  const { client, view, count, shown } = runInContext(APPLICATION, context) as Application;
  try {
    await view.complete();
    const long = { id: "9007199254740993", text: "long", cost: "2.50", at: "2013-02-04T05:00:00.000001Z", doc: { a: [1, null] } };
    assert.deepEqual(JSON.parse(shown()), [long]);
    const { confirmed } = client.mutate.add({ id: 3n, text: "neu é \u{1f30a}", cost: "10", at: "2014-01-01T00:00:00Z" });
    const added = { id: "3", text: "neu é \u{1f30a}", cost: "10", at: "2014-01-01T00:00:00Z", doc: null };
    assert.deepEqual(JSON.parse(shown()), [added, long], "at once");
    await confirmed;
    await client.mutate.louder({ id: 9007199254740993n }).confirmed;
    assert.deepEqual(JSON.parse(shown()), [added, { ...long, text: "long!" }]);
    await count.complete();
    assert.equal(count.rows[0]!.n, 3);
    // The application came to the front.
    client.wake();
    assert.equal(client.status.state, "connected");
    await server.sql("delete from notes where id = 3");
    await until("the removal", () => !shown().includes("neu"), (look) => view.subscribe(look));
  } finally {
    client.close();
    await server.stop();
  }
});
