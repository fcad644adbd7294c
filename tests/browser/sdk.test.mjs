// @tidegate/client in a real browser against the real server: IndexedDB, Web Locks and tabs as they are.
//
// The page and the package's compiled modules are handed to the browser without a web server, so that a page can be
// loaded while the Tidegate server is down. `client-sdk/typescript` has to be compiled (`npx tsc --build`).
//
// Environment as for board.test.mjs. Nothing sleeps: every step waits for a condition.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { binary } from "./server.mjs";

const WAIT_MS_MAX = 20_000;
// Nobody listens there. It is a secure context, which Web Locks need.
const ORIGIN = "http://127.0.0.1:48999";
const built = fileURLToPath(new URL("../../client-sdk/typescript/client/build/src/", import.meta.url));

const page = (url) => `<!doctype html><meta charset="utf-8"><title>notes</title><ol></ol>
<script type="module">
  import { from, indexedDbStorage, int8, table, text, TidegateClient } from "/sdk/index.js";
  const notes = table("notes", { id: int8(), text: text() }, { key: ["id"] });
  const client = new TidegateClient({
    url: ${JSON.stringify(url)},
    storage: indexedDbStorage({ name: "notes" }),
    backoffMs: 50, backoffMsMax: 300,
    mutators: { add: (tx, row) => tx.insert(notes, row) },
    onRefused: ({ code }) => (window.refused = code),
  });
  const view = client.view(from(notes));
  Object.assign(window, { client, view, lengths: [] });
  view.subscribe(({ rows, status }) => {
    window.lengths.push(rows.length);
    document.querySelector("ol").replaceChildren(...rows.map((row) => Object.assign(document.createElement("li"), { textContent: row.text })));
  });
</script>`;

let dataDir;
let server;
let browser;
let context;
let outage = false; // while the server is down, refused WebSocket connections are expected
const complaints = [];

async function startServer(port = 0) {
  const child = spawn(binary(), ["serve", "--addr", `127.0.0.1:${port}`, "--data-dir", dataDir, "--log-filter", "warn"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const addr = await new Promise((resolve, reject) => {
    child.once("close", (code) => reject(new Error(`tidegate ended with ${code}`)));
    child.stdout.setEncoding("utf8").once("data", (line) => resolve(JSON.parse(line).addr));
  });
  return { url: `http://${addr}`, port: Number(addr.split(":").at(-1)), kill: () => (child.kill("SIGKILL"), ended) };
}

before(async () => {
  assert.ok(existsSync(join(built, "index.js")), "the TypeScript client is not compiled: run client-sdk/typescript/check.sh");
  dataDir = await mkdtemp(join(tmpdir(), "tidegate-sdk-"));
  server = await startServer();
  await fetch(`${server.url}/v1/sql`, { method: "POST", body: JSON.stringify({ sql: "create table notes (id bigint primary key, text text not null)" }) });
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    // A page that came from no server counts as one of the public network, which may not reach this machine.
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-features=LocalNetworkAccessChecks"],
  });
  context = await browser.newContext();
  await context.route(`${ORIGIN}/**`, async (route) => {
    const { pathname } = new URL(route.request().url());
    if (!pathname.startsWith("/sdk/")) return route.fulfill({ contentType: "text/html", body: page(server.url) });
    return route.fulfill({ contentType: "text/javascript", body: await readFile(join(built, pathname.slice("/sdk/".length))) });
  });
});

after(async () => {
  await browser?.close();
  await server?.kill();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

async function openTab() {
  const tab = await context.newPage();
  tab.on("console", (message) => {
    const expected = outage && /WebSocket connection to .* failed/.test(message.text());
    if (message.type() === "error" && !expected) complaints.push(message.text());
  });
  tab.on("pageerror", (error) => complaints.push(error.stack));
  await tab.goto(ORIGIN);
  return tab;
}

const shown = (tab) => tab.evaluate(() => [...document.querySelectorAll("li")].map((item) => item.textContent));
// Not by animation frames, which tabs in the background do not have.
const until = (tab, condition, arg) => tab.waitForFunction(condition, arg, { timeout: WAIT_MS_MAX, polling: 20 });
const shows = (tab, texts) => until(tab, (wanted) => [...document.querySelectorAll("li")].map((item) => item.textContent).join() === wanted, texts.join());
const add = (tab, id, text) => tab.evaluate(([id, text]) => void window.client.mutate.add({ id, text }), [id, text]);
const settled = (tab) => until(tab, () => window.client.pendingMutations === 0 && window.view.status === "complete");

let one;
let two;

test("a note shows at once, and in the other tab", async () => {
  [one, two] = [await openTab(), await openTab()];
  await Promise.all([settled(one), settled(two)]);
  assert.equal(await one.evaluate(() => typeof navigator.locks), "object", "Web Locks are there");
  await add(one, 1, "first");
  assert.deepEqual(await shown(one), ["first"], "before anything was heard of the server");
  await shows(two, ["first"]);
  await Promise.all([settled(one), settled(two)]);
});

test("a refused note is taken back and says why", async () => {
  await add(two, 1, "again");
  await until(two, () => window.refused === "conflict");
  await shows(two, ["first"]);
  assert.equal(await one.evaluate(() => window.refused), undefined, "the other tab did not make it");
});

test("notes made while the server is gone survive a reload, and are there once when it is back", async () => {
  outage = true;
  await server.kill();
  await until(one, () => window.client.status.state !== "connected");
  await add(one, 2, "offline one");
  await shows(two, ["first", "offline one"]);
  await add(two, 3, "offline two");
  await shows(one, ["first", "offline one", "offline two"]);
  // Both tabs keep results a while after they change.
  const kept = () => one.evaluate(() => new Promise((resolve) => {
    const opening = indexedDB.open("tidegate:notes");
    opening.onsuccess = () => {
      const stores = opening.result.transaction(["mutations", "contents"]);
      const [mutations, contents] = ["mutations", "contents"].map((name) => stores.objectStore(name).getAll());
      stores.oncomplete = () => (opening.result.close(), resolve(mutations.result.length === 2 && contents.result[0]?.rows.length === 1));
    };
  }));
  const deadline = Date.now() + WAIT_MS_MAX;
  while (!(await kept())) assert.ok(Date.now() < deadline, "the first note and the pending ones were not kept");
  await one.reload();
  await shows(one, ["first", "offline one", "offline two"]);
  assert.notEqual(await one.evaluate(() => window.client.status.state), "connected");
  server = await startServer(server.port);
  await Promise.all([settled(one), settled(two)]);
  outage = false;
  assert.deepEqual([await shown(one), await shown(two)], Array(2).fill(["first", "offline one", "offline two"]));
  const lengths = await two.evaluate(() => window.lengths);
  assert.deepEqual(lengths, [...lengths].sort(), "no row went away, not for a moment");
});

test("a tab that is closed leaves its work to the others", async () => {
  await one.close();
  await add(two, 4, "alone");
  await settled(two);
  await shows(two, ["first", "offline one", "offline two", "alone"]);
});

/** What the server has, by the query of the page. */
async function atServer(sql) {
  const response = await fetch(`${server.url}/v1/sql`, { method: "POST", body: JSON.stringify({ sql }) });
  const { results } = await response.json();
  return results[0].rows?.map(([text]) => text);
}

test("without a network the status says so; with it again nothing is lost and nothing is there twice", async () => {
  outage = true;
  await two.evaluate(() => {
    window.states = [];
    window.client.onStatus(({ state }) => window.states.push(state));
  });
  for (const [round, removed] of [[1, 1], [2, 10], [3, 11]]) {
    await context.setOffline(true);
    await until(two, () => window.client.status.state === "waiting");
    await atServer(`insert into notes values (${round * 10}, 'remote ${round}'), (${round * 10 + 1}, 'and ${round}')`);
    await atServer(`delete from notes where id = ${removed}`);
    await add(two, round * 10 + 2, `offline ${round}`);
    assert.ok((await shown(two)).includes(`offline ${round}`));
    await context.setOffline(false);
    await until(two, () => window.client.status.state === "connected");
    await settled(two);
    await shows(two, await atServer("select text from notes order by id"));
  }
  outage = false;
  const rows = await atServer("select text from notes order by id");
  assert.deepEqual(rows, ["offline one", "offline two", "alone", "offline 1", "remote 2", "and 2", "offline 2", "remote 3", "and 3", "offline 3"]);
  const states = await two.evaluate(() => window.states);
  assert.deepEqual([states[0], states.at(-1), new Set(states).size], ["waiting", "connected", 3]);
});

test("nothing complained", () => assert.deepEqual(complaints, []));
