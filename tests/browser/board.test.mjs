// The departure board in a real browser, against the real server: `node --test` in this folder.
//
// Environment: TIDEGATE_BIN (default: the workspace's release, then debug build), CHROMIUM (default
// /usr/bin/chromium). Screenshots go to artefacts/. Nothing sleeps: every step waits for a condition.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { startDemo } from "./server.mjs";

const WAIT_MS_MAX = 20_000;
const CHROMIUM_ARGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
const artefacts = fileURLToPath(new URL("artefacts/", import.meta.url));

let dataDir;
let server;
let browser;
let page;
let outage = false; // while the server is down, refused WebSocket connections are expected
const complaints = []; // console errors, page errors, failed requests

before(async () => {
  await mkdir(artefacts, { recursive: true });
  dataDir = await mkdtemp(join(tmpdir(), "tidegate-board-"));
  server = await startDemo({ dataDir });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: CHROMIUM_ARGS });
  page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  page.on("console", (message) => {
    const expected = outage && /WebSocket connection to .* failed/.test(message.text());
    if (message.type() === "error" && !expected) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`page: ${error.stack}`));
  page.on("requestfailed", (request) => complaints.push(`request: ${request.url()} ${request.failure()?.errorText}`));
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`response: ${response.status()} ${response.url()}`);
  });
  await page.goto(server.url);
});

after(async () => {
  await browser?.close();
  await server?.kill();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

/** Waits until `condition(arg)` holds in the page; fails with `what`, and with what the page shows then. */
async function until(what, condition, arg) {
  try {
    await page.waitForFunction(condition, arg, { timeout: WAIT_MS_MAX });
  } catch (error) {
    if (!/Timeout/.test(error.message)) throw error;
    await picture("failure");
    const seen = await page.evaluate(() => ({
      ...document.documentElement.dataset,
      clock: document.querySelector("#clock").dateTime,
      rows: document.querySelectorAll("#board tr[data-id]").length,
      messages: [...document.querySelectorAll("#notice, .state")].map((line) => line.textContent).filter(Boolean),
    }));
    assert.fail(`${what}: not within ${WAIT_MS_MAX} ms. The page: ${JSON.stringify(seen)}; complaints: ${JSON.stringify(complaints)}`);
  }
}

const boardText = () => page.evaluate(() => document.querySelector("#board table").innerText);

/** Waits until the rows' text changes. Call it when the page is complete: what loads late would count as a change. */
async function boardChanges(when) {
  const text = await boardText();
  const changed = (old) => {
    const now = document.querySelector("#board table").innerText;
    return now !== old && document.querySelector("#board tr[data-id]") !== null;
  };
  await until(`the board should change by itself ${when}, but its text stays the same`, changed, text);
}

const picture = (name) => page.screenshot({ path: join(artefacts, `${name}.png`), fullPage: true });

test("the board shows rows", async () => {
  await until("the board should be live and show flights", () => {
    const rows = document.querySelectorAll("#board-next tr[data-id]").length;
    const { state, complete } = document.documentElement.dataset;
    return state === "live" && complete === "true" && rows > 0;
  });
  // From here on, everything the page ever renders is looked at, right after it is rendered.
  await page.evaluate(() => {
    const problems = new Set();
    window.boardWatch = { problems, renders: 0 };
    const look = () => {
      window.boardWatch.renders += 1;
      const rows = [...document.querySelectorAll("#board tr[data-id]")];
      const origin = document.querySelector("#board").dataset.origin;
      if (rows.length === 0) problems.add("the board was empty");
      if (rows.some((row) => row.dataset.origin !== origin)) problems.add(`a flight from elsewhere stood on the board of ${origin}`);
      if (new Set(rows.map((row) => row.dataset.id)).size < rows.length) problems.add("a flight stood both among the next and the gone");
      const left = [...document.querySelectorAll("#board-left tr[data-id]")];
      if (left.some((row) => row.dataset.status === "scheduled")) problems.add("a scheduled flight stood among the gone");
      const table = document.querySelector("#counts table");
      const sum = [...table.querySelectorAll("[data-count]")].reduce((n, td) => n + Number(td.textContent.replaceAll(",", "")), 0);
      if (sum !== Number(table.dataset.rows)) problems.add(`the counts sum to ${sum} of ${table.dataset.rows} rows`);
      const hours = [...document.querySelectorAll("#blizzard-chart [data-n]")].reduce((n, bar) => n + Number(bar.dataset.n), 0);
      if (hours !== Number(table.dataset.rows)) problems.add(`the chart's hours sum to ${hours} of ${table.dataset.rows} rows`);
    };
    new MutationObserver(look).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true, attributes: true });
  });
});

test("the board changes by itself", async () => {
  await boardChanges("while the replay runs");
});

test("the clock and the commit version advance", async () => {
  await until("the clock should show the replay's time", () => document.querySelector("#clock").dateTime !== "");
  const seen = await page.evaluate(() => ({
    clock: document.querySelector("#clock").dateTime,
    cv: Number(document.documentElement.dataset.cv),
  }));
  await until(`the clock should advance from ${seen.clock}`, ({ clock }) => document.querySelector("#clock").dateTime > clock, seen);
  await until(`the commit version should advance from ${seen.cv}`, ({ cv }) => Number(document.documentElement.dataset.cv) > cv, seen);
});

test("the boards of all three airports are filled", async () => {
  for (const origin of ["EWR", "JFK", "LGA"]) {
    await until(`the board of ${origin} should show flights of ${origin} only`, (airport) => {
      const rows = [...document.querySelectorAll(`.airport[data-airport="${airport}"] tr[data-id]`)];
      return rows.length > 0 && rows.length <= 8 && rows.every((row) => row.dataset.origin === airport);
    }, origin);
  }
});

test("the charts show departures and hours", async () => {
  await until("the chart of delays should show dots of all airports", () =>
    ["EWR", "JFK", "LGA"].every((origin) => document.querySelector(`#delays-chart .dot.${origin}`)));
  const { said, dots, flown, cancelled } = await page.evaluate(() => ({
    said: Number(document.querySelector("#delays-chart svg").dataset.dots),
    dots: document.querySelectorAll("#delays-chart .dot").length,
    flown: document.querySelectorAll("#blizzard-chart rect.flown").length,
    cancelled: document.querySelectorAll("#blizzard-chart rect.cancelled").length,
  }));
  const beyond = await page.evaluate(() => {
    const [plot, line] = ["#delays-chart g[clip-path]", "#delays-chart .grid line"].map((of) => document.querySelector(of));
    const id = plot.getAttribute("clip-path").slice("url(#".length, -1);
    const { x, width } = document.getElementById(id).firstElementChild;
    return x.baseVal.value + width.baseVal.value - line.x2.baseVal.value;
  });
  assert.ok(beyond <= 3, `dots stand out to the right by their radius at most, not by ${beyond} px`);
  assert.ok(dots > 50, `${dots} dots`);
  assert.equal(dots, said);
  assert.ok(flown > 5 && flown === cancelled, `${flown} bars of flown and ${cancelled} of cancelled flights`);
});

test("the counts by status sum to the number of flights, which another query counts", async () => {
  await until("the counts should be there", () => Number(document.querySelector("#counts table").dataset.rows) > 0);
  const { sum, rows, total } = await page.evaluate(() => {
    const table = document.querySelector("#counts table");
    const number = (td) => Number(td.textContent.replaceAll(",", ""));
    return {
      sum: [...table.querySelectorAll("[data-count]")].map(number).reduce((a, b) => a + b),
      rows: Number(table.dataset.rows),
      total: number(table.querySelector("tr.total td:last-child")),
    };
  });
  assert.equal(sum, rows, "the counts by status should sum to the number of flights");
  assert.equal(total, rows, "the total should be the number of flights");
});

test("picking another airport changes the board", async () => {
  for (const origin of ["JFK", "LGA"]) {
    await page.click(`#picker a[href="#${origin}"]`);
    await until(`the board should change over to ${origin}`, (airport) => {
      const rows = [...document.querySelectorAll("#board tr[data-id]")];
      const changedOver = document.querySelector("#board").dataset.origin === airport && document.documentElement.dataset.complete === "true";
      return changedOver && rows.length > 0 && rows.every((row) => row.dataset.origin === airport);
    }, origin);
    assert.equal(new URL(page.url()).hash, `#${origin}`);
    await boardChanges(`after ${origin} was picked`);
  }
});

test("it is readable at every width, light and dark", async () => {
  for (const width of [1280, 1000, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(overflow <= 0, `the page is ${overflow} px wider than a window of ${width} px`);
      await picture(`board-${width}-${colorScheme}`);
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
});

test("after the server was killed and restarted the board goes on, never empty", async () => {
  outage = true;
  const { port } = server;
  await server.kill("SIGKILL");
  await until("the page should say that it is reconnecting", () => document.documentElement.dataset.state === "reconnecting");
  assert.notEqual(await page.evaluate(() => document.querySelectorAll("#board tr[data-id]").length), 0, "the board should keep its rows");
  assert.match(await page.locator("#notice").innerText(), /connection is lost/);
  await picture("reconnecting");
  server = await startDemo({ port, dataDir });
  await until("the page should be live again", () => document.documentElement.dataset.state === "live");
  outage = false;
  await boardChanges("after the restart");
  assert.equal(await page.locator("#notice").count(), 0, "the notice should be gone");
  await picture("restarted");
});

test("nothing went wrong on the way", async () => {
  const { problems, renders } = await page.evaluate(() => ({ problems: [...window.boardWatch.problems], renders: window.boardWatch.renders }));
  assert.ok(renders > 0, "the board was never looked at");
  assert.deepEqual(problems, []);
  assert.deepEqual(complaints, []);
});
