// The console in a real browser, against the real server: `node --test console.test.mjs` in this folder.
//
// Environment as for board.test.mjs. Screenshots go to artefacts/. Nothing sleeps: every step waits for a condition.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { startServe } from "./server.mjs";

const WAIT_MS_MAX = 20_000;
const FLIGHTS = 120;
const artefacts = fileURLToPath(new URL("artefacts/", import.meta.url));

let dataDir;
let server;
let browser;
let page;
let follower; // a client of its own: an event stream
let isMissing = false; // while something is asked for that there is not
let outage = false; // while the server is down, requests fail
const complaints = []; // console errors, page errors, failed requests

async function ask(method, path, body) {
  const response = await fetch(`${server.url}${path}`, { method, body: typeof body === "string" ? body : JSON.stringify(body) });
  const answer = await response.json();
  assert.ok(response.ok, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer;
}

const sql = (text) => ask("POST", "/v1/sql", { sql: text });

const flight = (id) => ({
  id,
  origin: ["EWR", "JFK", "LGA"][id % 3],
  status: id % 4 === 0 ? "departed" : "scheduled",
  delay: id % 5 === 0 ? null : id / 2,
  details: { gate: `B${id % 40}`, crew: id % 6 },
});

async function load() {
  const columns = [
    { name: "id", type: "int8" },
    { name: "origin", type: "text" },
    { name: "status", type: "text" },
    { name: "delay", type: "float8", nullable: true },
    { name: "details", type: "json" },
  ];
  const tables = { tables: [{ name: "flights", columns, primary_key: ["id"] }] };
  const inserts = Array.from({ length: FLIGHTS }, (_, index) => ({ insert: "flights", row: flight(index + 1) }));
  await ask("POST", "/v1/commits", [tables, { ops: inserts }].map((line) => JSON.stringify(line)).join("\n"));
  await sql("create table airports (code text primary key, name text not null); insert into airports values ('EWR', 'Newark'), ('JFK', 'Kennedy')");
  await sql("create table empty (id bigint primary key)");
  await sql("create materialized view per_origin as select origin, count(*) as n from flights group by origin");
  await ask("PUT", "/v1/queries/late", { sql: "select id, origin, delay from flights where delay > 50 order by delay desc", pin: true });
  const from = { table: "flights", where: { op: "=", args: [{ col: "origin" }, { param: "origin" }] }, limit: 5 };
  await ask("PUT", "/v1/queries/from_airport", { query: from, args: { origin: "text" } });
}

async function start(port = 0) {
  server = await startServe({ port, dataDir });
}

before(async () => {
  await mkdir(artefacts, { recursive: true });
  dataDir = await mkdtemp(join(tmpdir(), "tidegate-console-"));
  await start();
  await load();
  follower = new AbortController();
  const stream = await fetch(`${server.url}/v1/queries/late/changes`, { signal: follower.signal });
  void stream.body.pipeTo(new WritableStream()).catch(() => {}); // ends with the server
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
  page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  page.on("console", (message) => {
    const expected = outage && /WebSocket connection to .* failed|ERR_CONNECTION_|ERR_EMPTY_RESPONSE|status of 503/.test(message.text())
      || isMissing && /status of 404/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !expected) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`page: ${error.stack}`));
  page.on("requestfailed", (request) => {
    const { errorText } = request.failure();
    // A question under way when the page is left is given up.
    if (!outage && errorText !== "net::ERR_ABORTED") complaints.push(`request: ${request.url()} ${errorText}`);
  });
  page.on("response", (response) => {
    // A server that begins says so.
    const isExpected = { 404: isMissing, 503: outage }[response.status()];
    if (response.status() >= 400 && !isExpected) complaints.push(`response: ${response.status()} ${response.url()}`);
  });
  await page.goto(server.url);
});

after(async () => {
  await browser?.close();
  follower?.abort();
  await server?.kill();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

const picture = (name) => page.screenshot({ path: join(artefacts, `console-${name}.png`) });

/** Waits until `condition(arg)` holds in the page; fails with `what`, and with what the page shows then. */
async function until(what, condition, arg) {
  try {
    await page.waitForFunction(condition, arg, { timeout: WAIT_MS_MAX, polling: 20 });
  } catch (error) {
    if (!/Timeout/.test(error.message)) throw error;
    await picture("failure");
    const seen = await page.evaluate(() => document.body.innerText.slice(0, 1_500));
    assert.fail(`${what}: not within ${WAIT_MS_MAX} ms. The page: ${seen}\ncomplaints: ${JSON.stringify(complaints)}`);
  }
}

/** Goes to a page of the console, and waits for its title. */
async function go(hash, title) {
  await page.evaluate((hash) => void (location.hash = hash), hash);
  await until(`the page ${hash} should have the title ${title}`, (title) => document.querySelector("h1")?.textContent === title, title);
}

/** Waits until the rows shown are some, each as its cells' texts joined by `|`; only the first columns asked for. */
const showsRows = (what, rows) =>
  until(`${what}: ${JSON.stringify(rows)}`, (wanted) => {
    const shown = [...document.querySelectorAll("table.rows > tbody > tr")];
    const text = (row) => [...row.cells].slice(0, wanted[0]?.split("|").length ?? 1).map((cell) => cell.innerText).join("|");
    return JSON.stringify(shown.slice(0, wanted.length).map(text)) === JSON.stringify(wanted) && shown.length >= wanted.length;
  }, rows);

const isLive = (count) =>
  until(`${count} should be live`, (count) => document.querySelector(".live-line")?.innerText.replaceAll("\n", " ").startsWith(`Live ${count}`), count);

test("the status shows figures, plots and workers", async () => {
  await until("the newest commit should be shown", () => Number(document.querySelector(".tiles .value")?.textContent) > 0);
  assert.equal(await page.locator(".chart canvas").count(), 6, "plots");
  const tile = (name) => page.locator(".tiles > div", { hasText: name }).locator(".value").textContent();
  assert.equal(await tile("Live queries"), "1", "what is pinned");
  assert.match(await tile("Memory"), /^[\d.]+ MiB$/);
  assert.match(await page.locator("tbody tr").first().innerText(), /worker 0/);
  // The event stream is sent what changes, so that there is a latency to plot.
  const updates = Array.from({ length: 10 }, (_, at) => ({ ops: [{ update: "flights", key: { id: 101 + at }, set: { delay: 101 + at } }] }));
  for (const update of updates) await ask("POST", "/v1/commits", update);
  await until("latencies and rates should be plotted", () => {
    const figures = Object.fromEntries([...document.querySelectorAll(".chart")].map((chart) => [chart.querySelector("h3").textContent, [...chart.querySelectorAll("dd")].map((dd) => dd.textContent)]));
    return figures["Commit to socket"].every((text) => /^[\d.]+ (µs|ms|s)$/.test(text)) && figures["Query advance"].every((text) => text !== "–");
  });
  const cv = await page.locator(".tiles .value").first().textContent();
  await sql("update flights set delay = 1 where id = 1");
  await until("the commit version should advance by itself", (cv) => document.querySelector(".tiles .value").textContent !== cv, cv);
  await picture("status");
});

test("tables are listed, and one is browsed live", async () => {
  await go("#/tables", "Tables");
  await until("the tables should be listed", () => document.querySelectorAll(".list a").length === 5);
  const names = await page.locator(".list .name").allTextContents();
  assert.deepEqual(names, ["airports", "empty", "flights", "per_origin view", "tidegate_client_mutations"], "views marked, the server's own last");
  await page.click("text=flights");
  await isLive("50 rows");
  await showsRows("in the key's order", ["1|JFK|scheduled|1", "2|LGA|scheduled|1", "3|EWR|scheduled|1.5", "4|JFK|departed|2", "5|LGA|scheduled|null"]);
  assert.match(await page.locator("th", { hasText: "id" }).first().innerText(), /int8 · key/);

  await sql("update flights set status = 'boarding' where id = 2");
  await showsRows("an update", ["1|JFK|scheduled", "2|LGA|boarding", "3|EWR|scheduled"]);
  const lit = await page.locator("table.rows .changed").allTextContents();
  assert.deepEqual(lit, ["boarding"], "what changed is lit up, and nothing else");
  await sql("delete from flights where id = 1");
  await showsRows("a delete; the page stays full", ["2|LGA|boarding", "3|EWR|scheduled"]);
  assert.equal(await page.locator("table.rows > tbody > tr").count(), 50);
  await sql("insert into flights values (1, 'JFK', 'scheduled', 0.5, '{}')");
  await showsRows("an insert", ["1|JFK|scheduled|0.5", "2|LGA|boarding|1"]);
  assert.match(await page.locator("tr.new").innerText(), /^1\s+JFK/, "the new row is lit up");

  await page.click("text=Next");
  await showsRows("the second page", ["51|EWR", "52|JFK"]);
  await page.click("text=Next");
  await isLive("20 rows");
  assert.ok(await page.locator("text=Next").isDisabled(), "the last page");
  assert.match(await page.locator(".pager").innerText(), /Rows 101 to 120/);
  await page.click("text=Previous");
  await showsRows("back", ["51|EWR", "52|JFK"]);

  await page.click("th button:has-text('delay')");
  await showsRows("ascending by another column", ["1|JFK|scheduled|0.5", "2|LGA|boarding|1"]);
  await page.click("th button:has-text('delay')");
  await showsRows("descending, NULLs first, ties by the key", ["5|LGA|scheduled|null", "10|JFK|scheduled|null"]);
  assert.equal(await page.locator("th[aria-sort]").getAttribute("aria-sort"), "descending");
  await page.click("text=Next");
  await showsRows("the second page of that order, after 22 NULLs and the 28 longest delays", ["87|EWR|scheduled|43.5", "86|LGA|scheduled|43"]);
  await page.reload();
  await showsRows("the same page from the address alone", ["87|EWR|scheduled|43.5", "86|LGA|scheduled|43"]);
  await page.goBack();
  await showsRows("the page before", ["5|LGA|scheduled|null", "10|JFK|scheduled|null"]);
});

test("an empty table says so, and fills by itself", async () => {
  await go("#/tables/empty", "empty");
  await until("it should say that it is empty", () => document.querySelector(".empty")?.innerText.includes("has no rows"));
  assert.match(await page.innerText("table.rows thead"), /id[^]*int8 · key/, "its columns show all the same");
  await sql("insert into empty values (7)");
  await showsRows("the first row", ["7"]);
});

test("queries are listed with their counts, named or not", async () => {
  await go("#/queries", "Queries");
  await until("the named queries should be listed with their counts", () => {
    const rows = [...document.querySelectorAll("[aria-label='Named queries'] tbody tr")].map((row) => [...row.cells].map((cell) => cell.innerText).join("|"));
    return /^from_airport\|0\|0\|0\|–\|idle$/.test(rows[0]) && /^late\|\d+\|1\|1\|[\d.]+ (µs|ms)\|pinned$/.test(rows[1]) && /^per_origin\|3\|/.test(rows[2]);
  });
  // What the last page showed lives on for a moment, without a name.
  await until("a shape without a name should be listed with its plan", () =>
    [...document.querySelectorAll("[aria-label='Live shapes'] summary")].some((summary) => summary.textContent.startsWith("empty by primary key")));
});

test("a query shows its rows live, and its plan", async () => {
  await page.click("text=late");
  await until("its text should show", () => document.querySelector(".definition")?.textContent.includes("where delay > 50"));
  await showsRows("its rows", ["110|LGA|110", "109|JFK|109"]);
  await sql("update flights set delay = 500 where id = 3");
  await showsRows("a row that enters at the top", ["3|EWR|500", "110|LGA|110"]);
  await page.click("role=tab[name=Plan]");
  await until("the plan should tell what the operators did", () => /^shape \w+[^]*over \d+ commits[^]*state: \d+ keys/.test(document.querySelector(".plan")?.textContent));
  await picture("plan");
});

test("of a query that there is not, it is said so, once", async () => {
  const asked = [];
  const note = (request) => void (request.url().endsWith("/v1/queries/nope") && asked.push(request.url()));
  page.on("request", note);
  isMissing = true;
  await go("#/queries/nope", "nope");
  await until("it should say so", () => document.querySelector(".empty")?.innerText.includes("There is no query of this name"));
  // The status is asked for at the same pace as a query that there is.
  let answers = 0;
  await page.waitForResponse((response) => response.url().endsWith("/v1/status") && (answers += 1) === 3);
  assert.equal(asked.length, 1);
  page.off("request", note);
  isMissing = false;
});

test("a query with parameters takes their values", async () => {
  await go("#/queries/from_airport", "from_airport");
  await until("it should ask for values", () => document.querySelector(".empty")?.innerText.includes("Give every parameter a value"));
  await page.fill(".arguments input", "LGA");
  await page.keyboard.press("Enter");
  const rows = ["2|LGA", "5|LGA", "8|LGA", "11|LGA", "14|LGA"];
  await showsRows("its rows", rows);
  await page.click("text=Open in the playground");
  await until("the playground should open", () => document.querySelector("h1").textContent === "Playground");
  assert.equal(await page.inputValue(".arguments input"), "LGA", "the value is carried over");
  await showsRows("the same rows", rows);

  await go("#/queries/from_airport", "from_airport");
  await page.click("text=Open in the playground");
  await until("it should ask for the value", () => document.querySelector("#query") && document.querySelector(".empty")?.innerText.includes("Give every parameter a value"));
  assert.equal(await page.locator("[role=alert]").count(), 0, "nothing runs before that");
  await page.fill(".arguments input", "LGA");
  await page.keyboard.press("Control+Enter");
  await showsRows("and run then", rows);
});

test("the playground runs SQL and shows what changes", async () => {
  await go("#/playground", "Playground");
  await page.fill("#query", "select origin, count(*) as n\nfrom flights\nwhere status = :status\ngroup by origin");
  await page.fill(".arguments input", "cancelled");
  await page.keyboard.press("Control+Enter");
  await until("an empty result should say so", () => document.querySelector(".empty")?.innerText.includes("No row answers the query now"));
  await sql("update flights set status = 'cancelled' where id in (3, 6, 7)");
  await showsRows("the first rows", ["EWR|2", "JFK|1"]);
  await sql("update flights set status = 'cancelled' where id = 10");
  await showsRows("a change", ["EWR|2", "JFK|2"]);
  assert.deepEqual(await page.locator("table.rows .changed").allTextContents(), ["2"], "the changed cell is lit up");
  assert.match(await page.locator(".live-line").innerText(), /commit \d+:\s+1 changed/);
  await picture("changed");
  await page.click("role=tab[name=Plan]");
  await until("its plan should show", () => document.querySelector(".plan")?.textContent.includes("group by"));
  await page.click("role=tab[name=Rows]");
  await page.reload();
  await showsRows("the same from the address alone", ["EWR|2", "JFK|2"]);
});

test("the playground runs JSON, and shows nested rows", async () => {
  const related = [{ as: "flights", on: [["code", "origin"]], query: { table: "flights", select: ["id"], limit: 2 } }];
  await page.fill("#query", JSON.stringify({ table: "airports", related }));
  await page.keyboard.press("Control+Enter");
  await showsRows("airports", ["EWR|Newark", "JFK|Kennedy"]);
  await page.click("summary:has-text('2 rows') >> nth=0");
  assert.equal(await page.locator("details[open] td").allTextContents().then(String), "3,6");
  await page.click("role=tab[name=Plan]");
  await until("its plan should show", () => /^airports by primary key[^]*flights: flights by index \(origin\)/m.test(document.querySelector(".plan")?.textContent));
  await page.click("role=tab[name=Rows]");
});

test("a query that is stopped keeps its last rows, marked as no longer live", async () => {
  await page.fill("#query", "select code, name from airports order by code limit 1");
  await page.keyboard.press("Control+Enter");
  await showsRows("its rows", ["EWR|Newark"]);
  await isLive("1 row");
  await page.focus("button:has-text('Stop')");
  await page.keyboard.press("Enter");
  await until("it should say so", () => document.querySelector(".live-line")?.innerText.includes("No longer live"));
  await sql("update airports set name = 'Liberty' where code = 'EWR'");
  await page.click("role=tab[name=Plan]");
  await until("its plan should show", () => document.querySelector(".plan")?.textContent.includes("airports"));
  await page.click("role=tab[name=Rows]");
  await showsRows("the rows as they were", ["EWR|Newark"]);
  await picture("stopped");
  await page.click("button:has-text('Watch again')");
  await showsRows("the rows as they are", ["EWR|Liberty"]);
  await isLive("1 row");
  await sql("update airports set name = 'Newark' where code = 'EWR'");
  await showsRows("a change", ["EWR|Newark"]);
});

test("errors show with their place", async () => {
  const cases = [
    ["select origin,\n  colour\nfrom flights", "unknown column colour", "colour"],
    ["select origin from flihgts", "unknown table flihgts; did you mean flights?", "flihgts"],
    ['{"table": "flights",\n "where": {"op": "<<", "args": [1, 2]}}', "operator or function <<", '{"op": "<<", "args": [1, 2]}'],
    ['{"table": "flights",\n "limit" 5}', "This is not JSON", "5"],
    ["delete from flights", "select", undefined],
  ];
  for (const [text, message, place] of cases) {
    await page.fill("#query", text);
    await page.keyboard.press("Control+Enter");
    await until(`${text} should be answered with ${message}`, (message) => document.querySelector("[role=alert]")?.innerText.includes(message), message);
    if (place === undefined) continue;
    await until(`${place} should be marked`, (place) => document.querySelector("[role=alert] mark")?.textContent === place, place);
    await page.click("text=Go there");
    assert.equal(await page.evaluate(() => document.getSelection().toString()), place, "it is selected in the text");
  }
  await page.fill("#query", cases[0][0]);
  await page.keyboard.press("Control+Enter");
  await until("the error should be back", () => document.querySelector("[role=alert] mark")?.textContent === "colour");
  await picture("error");
  await page.setViewportSize({ width: 390, height: 900 });
  await page.fill("#query", "select id, origin, status, delay, details, id as again, colour from flights");
  await page.keyboard.press("Control+Enter");
  await until("the marked place of a long line should be in sight", () => {
    const mark = document.querySelector("[role=alert] mark");
    const [inner, outer] = [mark, mark?.parentElement].map((element) => element?.getBoundingClientRect());
    return mark?.parentElement.scrollLeft > 0 && inner.left >= outer.left && inner.right <= outer.right;
  });
  const height = await page.evaluate(() => document.querySelector("[role=alert] button").offsetHeight);
  assert.ok(height < 40, `the button's words stand in one line, in ${height} px`);
  await picture("error-390");
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("connections are listed with their lag", async () => {
  await go("#/connections", "Connections");
  await until("the event stream and this page should be listed", () => {
    const rows = [...document.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) => cell.innerText));
    return rows.length === 2 && rows[0][6] === "json" && rows[0][4] === "1" && rows[1][6] === "msgpack" && rows.every((row) => row[2] === "none");
  });
  assert.deepEqual(await page.$$eval("tbody th", (cells) => cells.map((cell) => /this page/.test(cell.innerText))), [false, true]);
});

/** Presses Tab until the focus is on what a selector means; each stop on the way has to show that it has the focus. */
async function tabTo(selector) {
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate((selector) => {
      const { activeElement: element } = document;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      return {
        there: element.matches(selector),
        name: element.outerHTML.slice(0, 120),
        isVisible: element === document.body || (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1),
      };
    }, selector);
    assert.ok(stop.isVisible, `the focus does not show on ${stop.name}`);
    if (stop.there) return;
  }
  assert.fail(`Tab does not lead to ${selector}`);
}

test("everything works by keys alone", async () => {
  await page.goto(`${server.url}/#/status`);
  await page.reload();
  await until("the status should show", () => document.querySelector(".tiles") !== null);
  await tabTo("nav a[href='#/tables']");
  await page.keyboard.press("Enter");
  await until("the tables should show", () => document.querySelector(".list a") !== null);
  await tabTo(".list a");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await isLive("50 rows");
  assert.match(page.url(), /#\/tables\/flights$/);
  await tabTo("th button:has(.column)");
  await page.keyboard.press("Enter");
  await showsRows("the other way round", ["120|EWR", "119|LGA"]);
  await tabTo(".scroll ~ .pager button:enabled");
  await page.keyboard.press("Enter");
  await showsRows("the next page", ["70|JFK"]);
  await page.keyboard.press("Home");
  await go("#/playground", "Playground");
  await tabTo("#query");
  await page.keyboard.type("select count(*) as n from flights where id <= :most");
  await page.keyboard.press("Tab");
  await page.keyboard.type("10");
  await tabTo("button[type=submit]");
  await page.keyboard.press("Enter");
  await showsRows("its result", ["10"]);
  await tabTo("[role=tab]");
  await page.keyboard.press("ArrowRight");
  await until("the arrow should choose the plan", () => document.querySelector(".plan") !== null && document.activeElement.textContent === "Plan");
});

test("every page is readable at every width, light and dark", async () => {
  const query = encodeURIComponent("select origin, status, count(*) as n\nfrom flights\ngroup by origin, status\norder by n desc");
  const pages = [
    ["status", "#/status", "Status", ".chart canvas"],
    ["tables", "#/tables", "Tables", ".list a"],
    ["table", "#/tables/flights", "flights", "table.rows td"],
    ["queries", "#/queries", "Queries", "[aria-label='Live shapes'] summary"],
    ["query", "#/queries/late", "late", "table.rows td"],
    ["playground", `#/playground?q=${query}`, "Playground", "table.rows td"],
    ["connections", "#/connections", "Connections", "tbody td"],
  ];
  for (const width of [1280, 1000, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      for (const [name, hash, title, selector] of pages) {
        await go(hash, title);
        await until(`${name} should show ${selector}`, (selector) => document.querySelector(selector) !== null, selector);
        const seen = await page.evaluate(() => ({
          overflow: document.documentElement.scrollWidth - window.innerWidth,
          nameless: [...document.querySelectorAll("a, button, input, textarea, summary")]
            .filter((control) => !(control.innerText.trim() || control.labels?.length || control.ariaLabel || control.offsetParent === null))
            .map((control) => control.outerHTML),
        }));
        assert.ok(seen.overflow <= 0, `${name} is ${seen.overflow} px wider than a window of ${width} px`);
        assert.deepEqual(seen.nameless, [], `${name} has controls without a name`);
        await picture(`${name}-${width}-${colorScheme}`);
      }
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
});

test("while the server is gone the page keeps what it showed, and comes back by itself", async () => {
  await go("#/tables/flights", "flights");
  await isLive("50 rows");
  outage = true;
  const { port } = server;
  await server.kill();
  await until("it should say that the server does not answer", () => document.querySelector(".notice")?.innerText.includes("The server does not answer"));
  await showsRows("kept rows", ["1|JFK", "2|LGA"]);
  await picture("outage");
  await start(port);
  await until("the notice should go", () => document.querySelector(".notice") === null);
  await sql("update flights set status = 'back' where id = 2");
  await showsRows("a change after the restart", ["1|JFK|scheduled", "2|LGA|back"]);
  outage = false;
});

test("nothing complained", () => assert.deepEqual(complaints, []));
