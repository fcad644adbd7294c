// Notes on flights in a real browser, against the real server: two visitors, each with a browser context of their own.
//
// Environment as for board.test.mjs. Nothing sleeps: every step waits for a condition.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { startGate } from "./gate.mjs";
import { startDemo } from "./server.mjs";

const WAIT_MS_MAX = 20_000;
const artefacts = fileURLToPath(new URL("artefacts/", import.meta.url));

let dataDir;
let server;
let gate;
let browser;
let ada; // comes through the gate
let bob;
let flight; // the flight that both have opened
let outage = false; // while the gate is shut, refused WebSocket connections are expected
const complaints = [];

before(async () => {
  await mkdir(artefacts, { recursive: true });
  dataDir = await mkdtemp(join(tmpdir(), "tidegate-notes-"));
  // Slow enough that a flight stays on the board for the whole test.
  server = await startDemo({ dataDir, speed: 60 });
  gate = await startGate(server.port);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"],
  });
  [ada, bob] = await Promise.all([visit(gate.url), visit(server.url)]);
});

after(async () => {
  await browser?.close();
  gate?.close();
  await server?.kill();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

/** A visitor with a storage of their own, on the page once it is complete. */
async function visit(url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.on("console", (message) => {
    const expected = outage && /WebSocket connection to .* failed/.test(message.text());
    if (message.type() === "error" && !expected) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.stack));
  await page.goto(url);
  await until(page, "the page is complete", () => document.documentElement.dataset.complete === "true");
  return page;
}

// Not by animation frames, which pages in the background do not have.
async function until(page, what, condition, arg) {
  try {
    await page.waitForFunction(condition, arg, { timeout: WAIT_MS_MAX, polling: 20 });
  } catch (error) {
    if (!/Timeout/.test(error.message)) throw error;
    await picture(page, "failure-notes");
    assert.fail(`${what}: not within ${WAIT_MS_MAX} ms; notes: ${JSON.stringify(await notes(page))}; complaints: ${JSON.stringify(complaints)}`);
  }
}

const picture = (page, name) => page.screenshot({ path: join(artefacts, `${name}.png`) });

/** Runs statements; selects that follow each other stand at one commit version. */
async function sql(text) {
  const response = await fetch(`${server.url}/v1/sql`, { method: "POST", body: JSON.stringify({ sql: text }) });
  const { cv, results, error } = await response.json();
  assert.equal(error, undefined, JSON.stringify(error));
  return { cv, rows: results[0].rows, results: results.map(({ rows }) => rows) };
}

/** So many commits, each a note on the flight before the open one; what the server answered. */
async function commitsOfOthers(n) {
  const [[id]] = (await sql(`select id from flights where origin = 'EWR' and status = 'scheduled' and id <> ${flight} order by sched_dep desc limit 1`)).rows;
  const answers = [];
  for (let i = 0; i < n; i += 1) {
    const uuid = `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`;
    answers.push(await sql(`insert into notes values ('${uuid}', ${id}, '${uuid}', 'Eve', 'note ${i}', '2026-01-01T00:00:00Z')`));
  }
  return answers;
}

/** Compares what the page shows with what the server has, once both stand at one commit version. */
async function equalsTheServer(page) {
  const deadline = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const shown = await page.evaluate(() => {
      const ids = (selector) => [...document.querySelectorAll(selector)].map((row) => Number(row.dataset.id));
      return {
        cv: Number(document.documentElement.dataset.cv),
        next: ids("#board-next tr[data-id]"),
        left: ids("#board-left tr[data-id]:not([data-status=cancelled])"),
        notes: [...document.querySelectorAll("#notes > li")].map((note) => note.dataset.note),
        flights: Number(document.querySelector("#counts table").dataset.rows),
      };
    });
    const { cv, results } = await sql(`
      select id from flights where origin = 'EWR' and status = 'scheduled' order by sched_dep, id limit 25;
      select id from flights where origin = 'EWR' and status in ('departed', 'arrived') order by dep_time desc, id limit 6;
      select id from notes where flight_id = ${flight} order by at, id;
      select count(*) from flights`);
    if (cv === shown.cv) {
      const [next, gone, notes, [[flights]]] = results;
      assert.deepEqual(shown.next, next.flat());
      assert.ok(shown.left.length > 0 && shown.left.every((id) => gone.flat().includes(id)), `${shown.left} of ${gone}`);
      assert.deepEqual(shown.notes, notes.flat());
      assert.equal(shown.flights, flights);
      return;
    }
    assert.ok(Date.now() < deadline, `the page stays at commit ${shown.cv}, the server is at ${cv}`);
  }
}

/** What the panel lists: text, and whether it is pending. */
const notes = (page) => page.evaluate(() => [...document.querySelectorAll("#notes > li")].map((note) => [
  note.querySelector(".note-body")?.textContent, note.dataset.pending === "true",
]));
const bodiesAre = (page, bodies) => until(page, `the notes are ${bodies}`, (wanted) => {
  const list = [...document.querySelectorAll("#notes > li")];
  return list.map((note) => note.querySelector(".note-body")?.textContent).join("\n") === wanted && list.every((note) => note.dataset.pending === "false");
}, bodies.join("\n"));
const open = async (page, id) => {
  await page.evaluate((hash) => (location.hash = hash), `#EWR/${id}`);
  await page.waitForSelector("#add-note");
};
async function write(page, body) {
  await page.fill("#add-note [name=body]", body);
  await page.click("#add-note .primary");
}
const markOf = (page, id) => page.evaluate((id) => document.querySelector(`#board tr[data-id="${id}"] .notes-mark`)?.textContent, id);

test("a flight opens beside the board, by the keyboard too, and closes again", async () => {
  const ids = await ada.$$eval("#board-next tr[data-id]", (rows) => rows.map((row) => row.dataset.id));
  flight = ids.at(-3); // leaves long after the test
  await ada.focus(`#board tr[data-id="${flight}"] a`);
  await ada.keyboard.press("Enter");
  await ada.waitForSelector("#add-note");
  assert.equal(new URL(ada.url()).hash, `#EWR/${flight}`);
  assert.equal(await ada.evaluate(() => document.activeElement.id), "flight");
  await ada.keyboard.press("Escape");
  await until(ada, "the panel closes", () => !document.querySelector("#flight"));
  assert.equal(await ada.evaluate(() => document.activeElement.closest("tr")?.dataset.id), flight, "back where it was opened");
  await Promise.all([open(ada, flight), open(bob, flight)]);
});

test("a note shows at once, as pending, before the server has heard of it; then both windows show it", async () => {
  await ada.fill("#add-note [name=author]", "Ada");
  server.pause();
  try {
    await write(ada, "first");
    assert.deepEqual(await notes(ada), [["first", true]]);
    assert.equal(await markOf(ada, flight), "1", "the board's mark counts it, too");
    assert.deepEqual(await notes(bob), []);
    await picture(ada, "note-pending");
  } finally {
    server.resume();
  }
  await Promise.all([bodiesAre(ada, ["first"]), bodiesAre(bob, ["first"])]);
  await until(bob, "the other board has the mark", (id) => document.querySelector(`#board tr[data-id="${id}"] .notes-mark`)?.textContent === "1", flight);
  assert.equal(await bob.locator("#notes button").count(), 0, "nobody changes another's note");
});

test("one's own notes can be changed and deleted, and the other window follows", async () => {
  await write(ada, "second");
  await bodiesAre(bob, ["first", "second"]);
  await ada.click('#notes > li:first-child button:has-text("Edit")');
  await ada.fill("#notes textarea", "first, corrected");
  await ada.click("#notes .primary");
  await bodiesAre(bob, ["first, corrected", "second"]);
  await ada.click('#notes > li:first-child button:has-text("Delete")');
  await Promise.all([bodiesAre(ada, ["second"]), bodiesAre(bob, ["second"])]);
  assert.equal(await bob.inputValue("#add-note [name=author]"), "", "names are each visitor's own");
});

test("the keyboard keeps its place while a note is changed and deleted", async () => {
  const focus = () => ada.evaluate(() => {
    const { activeElement: at } = document;
    return at.tagName === "TEXTAREA" ? `${at.form.id || "edit"} ${at.selectionStart} of ${at.value.length}` : at.textContent;
  });
  await ada.focus("#notes > li button");
  await ada.keyboard.press("Enter");
  assert.equal(await focus(), "edit 6 of 6", "the caret stands behind the text");
  await ada.keyboard.type("!");
  await ada.keyboard.press("Escape");
  assert.equal(await focus(), "Edit");
  assert.equal(await ada.locator("#flight").count(), 1, "Escape ends the change, not the visit");
  assert.deepEqual((await notes(ada)).map(([body]) => body), ["second"]);
  await ada.keyboard.press("Enter");
  await ada.keyboard.press("Tab");
  await ada.keyboard.press("Tab");
  assert.equal(await focus(), "Cancel");
  await ada.keyboard.press("Enter");
  assert.equal(await focus(), "Edit");
  await write(ada, "third");
  await bodiesAre(bob, ["second", "third"]);
  await ada.focus('#notes > li:last-child button:has-text("Delete")');
  await ada.keyboard.press("Enter");
  assert.equal(await focus(), "add-note 0 of 0");
  await bodiesAre(bob, ["second"]);
});

test("what is being written outlives the panel, for each flight by itself", async () => {
  const texts = () => ada.evaluate(() => ["#notes textarea", "#add-note [name=body]"].map((field) => document.querySelector(field)?.value));
  const [[other]] = (await sql(`select id from flights where origin = 'EWR' and status = 'scheduled' and id <> ${flight} order by sched_dep desc limit 1`)).rows;
  await ada.click('#notes > li button:has-text("Edit")');
  await ada.fill("#notes textarea", "second, half wr");
  await ada.fill("#add-note [name=body]", "one more, half wr");
  await open(ada, other);
  await until(ada, "the other flight shows", (id) => document.querySelector("#flight").dataset.flight === String(id), other);
  assert.deepEqual(await texts(), [undefined, ""]);
  await ada.fill("#add-note [name=body]", "about the other");
  await ada.click("#flight .close");
  await until(ada, "the panel closes", () => !document.querySelector("#flight"));
  await open(ada, flight);
  await ada.waitForSelector("#notes textarea");
  assert.deepEqual(await texts(), ["second, half wr", "one more, half wr"]);
  assert.equal(await ada.evaluate(() => document.activeElement.id), "flight", "the focus is where it is in any panel");
  await picture(ada, "note-drafts");
  await open(ada, other);
  await until(ada, "the other's text is back", () => document.querySelector("#add-note [name=body]").value === "about the other");
  await ada.fill("#add-note [name=body]", "");
  await open(ada, flight);
  await ada.click('#notes button:has-text("Cancel")');
  await ada.fill("#add-note [name=body]", "");
  assert.deepEqual(await texts(), [undefined, ""]);
  assert.deepEqual((await notes(ada)).map(([body]) => body), ["second"]);
});

test("a change outlives its note when another window deletes that", async () => {
  await write(ada, "short-lived");
  await bodiesAre(bob, ["second", "short-lived"]);
  await ada.click('#notes > li:last-child button:has-text("Edit")');
  await ada.keyboard.type(", but worth keeping");
  await sql("delete from notes where body = 'short-lived'");
  await ada.waitForSelector(".lost");
  assert.match(await ada.innerText(".lost [role=alert]"), /deleted in another window/);
  assert.equal(await ada.evaluate(() => document.activeElement.value), "short-lived, but worth keeping");
  await picture(ada, "note-lost-change");
  await ada.click('.lost button:has-text("Add as a new note")');
  await Promise.all([ada, bob].map((page) => bodiesAre(page, ["second", "short-lived, but worth keeping"])));
  assert.equal(await ada.locator(".lost").count(), 0);
  await ada.click('#notes > li:last-child button:has-text("Delete")');
  await Promise.all([ada, bob].map((page) => bodiesAre(page, ["second"])));
});

test("a note that the server refuses is rolled back, with the reason, and its text is not lost", async () => {
  const long = "too long ".repeat(40).trim();
  await ada.fill("#add-note [name=body]", long);
  assert.equal(await ada.getAttribute("#add-note .count", "data-over"), "true", "the count warns");
  server.pause();
  try {
    await ada.click("#add-note .primary");
    assert.deepEqual(await notes(ada), [["second", false], [long, true]]);
  } finally {
    server.resume();
  }
  await ada.waitForSelector("#flight .refusal");
  assert.match(await ada.innerText("#flight .refusal"), /was not added.*1 to 280 characters/s);
  await bodiesAre(ada, ["second"]);
  assert.deepEqual((await sql("select body from notes")).rows, [["second"]]);
  await picture(ada, "note-refused");
  assert.equal(await ada.inputValue("#add-note [name=body]"), long, "the text is back in the form");
  assert.equal(await ada.locator(".refusal").count(), 1, "it is said once, beside the form");

  await write(ada, "short enough");
  await bodiesAre(bob, ["second", "short enough"]);
  assert.equal(await ada.locator(".refusal").count(), 0, "what is settled is not said any more");

  await ada.click('#notes > li:last-child button:has-text("Edit")');
  await ada.fill("#notes textarea", long);
  await ada.click("#notes .primary");
  await ada.waitForSelector("#flight .refusal");
  assert.equal(await ada.inputValue("#notes textarea"), long, "a refused change goes on where it was written");
  await picture(ada, "note-change-refused");
  await ada.click('#notes button:has-text("Cancel")');
  assert.equal(await ada.locator(".refusal").count(), 0);
  await ada.click('#notes > li:last-child button:has-text("Delete")');
  await bodiesAre(bob, ["second"]);
});

test("a text that is missing is asked for at once, beside the field", async () => {
  await write(ada, "  ");
  assert.equal(await ada.innerText("#add-note .missing"), "Write a text first.");
  assert.equal(await ada.evaluate(() => document.activeElement.name), "body");
  assert.deepEqual((await notes(ada)).map(([body]) => body), ["second"]);
  await picture(ada, "note-missing");
  await ada.keyboard.type("x");
  assert.equal(await ada.innerText("#add-note .missing"), "");
  await ada.fill("#add-note [name=body]", "");
});

test("a note that is written while the connection is cut survives a reload, and is there once when it is back", async () => {
  outage = true;
  gate.shut();
  await until(ada, "the page says so", () => document.documentElement.dataset.state === "reconnecting");
  const hidden = await ada.evaluate(() => {
    const [notice, panel] = ["#notice", "#flight"].map((id) => document.querySelector(id).getBoundingClientRect());
    return notice.right - panel.left;
  });
  assert.ok(hidden <= 0, `the panel hides ${hidden} px of the notice`);
  await write(ada, "from the tunnel");
  // Kept: the note, and the flight that it is on.
  await until(ada, "the note is kept", (id) => new Promise((resolve) => {
    const opening = indexedDB.open("tidegate:tidegate-demo");
    opening.onsuccess = () => {
      const stores = opening.result.transaction(["mutations", "contents"]);
      const [mutations, contents] = [stores.objectStore("mutations").getAll(), stores.objectStore("contents").getAllKeys()];
      stores.oncomplete = () => {
        opening.result.close();
        resolve(mutations.result.length === 1 && contents.result.some((key) => key.includes(`{"col":"id"},${id}]`)));
      };
    };
  }), flight);
  await ada.reload();
  await until(ada, "the reloaded page shows it as pending", () => {
    const last = document.querySelector("#notes > li:last-child");
    return last?.dataset.pending === "true" && last.querySelector(".note-body").textContent === "from the tunnel";
  });
  assert.deepEqual(await notes(ada), [["second", false], ["from the tunnel", true]]);
  assert.notEqual(await ada.evaluate(() => document.querySelectorAll("#board tr[data-id]").length), 0, "the board is kept, too");
  assert.equal(await ada.inputValue("#add-note [name=author]"), "Ada", "the name is remembered");
  await picture(ada, "note-reloaded-offline");
  assert.deepEqual(await notes(bob), [["second", false]]);
  gate.open();
  await Promise.all([bodiesAre(ada, ["second", "from the tunnel"]), bodiesAre(bob, ["second", "from the tunnel"])]);
  outage = false;
  assert.deepEqual((await sql("select body, count(*) from notes group by 1 order by 1")).rows, [["from the tunnel", 1], ["second", 1]]);
});

test("a change that was saved during an outage is not lost either when its note is gone by then", async () => {
  await write(ada, "soon gone");
  await bodiesAre(ada, ["second", "from the tunnel", "soon gone"]);
  outage = true;
  gate.shut();
  await until(ada, "the page says so", () => document.documentElement.dataset.state === "reconnecting");
  await ada.click('#notes > li:last-child button:has-text("Edit")');
  await ada.keyboard.type(", not quite");
  await ada.click("#notes .primary");
  await sql("delete from notes where body = 'soon gone'");
  gate.open();
  await ada.waitForSelector(".lost");
  outage = false;
  assert.equal(await ada.inputValue(".lost textarea"), "soon gone, not quite");
  assert.equal(await ada.locator(".refusal").count(), 0, "it is said once");
  await picture(ada, "note-lost-offline");
  await ada.click('.lost button:has-text("Discard")');
  assert.equal(await ada.locator(".lost, .refusal").count(), 0);
  await bodiesAre(ada, ["second", "from the tunnel"]);
});

test("offline and back: no row is lost, none is repeated", async () => {
  const before = ["second", "from the tunnel"];
  await bob.fill("#add-note [name=author]", "Bob");
  await bob.context().setOffline(true);
  await write(bob, "from a lift");
  await write(ada, "meanwhile");
  await bodiesAre(ada, [...before, "meanwhile"]);
  const [{ cv: missed }] = await commitsOfOthers(20);
  assert.deepEqual((await notes(bob)).map(([body]) => body), [...before, "from a lift"]);
  assert.ok((await bob.evaluate(() => Number(document.documentElement.dataset.cv))) < missed, "nothing comes through");
  await bob.context().setOffline(false);
  const all = [...before, "from a lift", "meanwhile"];
  await Promise.all([bodiesAre(ada, all), bodiesAre(bob, all)]);
  await Promise.all([equalsTheServer(ada), equalsTheServer(bob)]);
});

test("a note that was written offline on a flight that leaves meanwhile is told as lost, with its text", async () => {
  const [[other]] = (await sql(`select id from flights where origin = 'EWR' and status = 'scheduled' and id <> ${flight} order by sched_dep desc limit 1`)).rows;
  await open(ada, other);
  outage = true;
  gate.shut();
  await until(ada, "the page says so", () => document.documentElement.dataset.state === "reconnecting");
  const before = (await notes(ada)).length;
  await write(ada, "from the tunnel, too late");
  await write(ada, "taken back");
  await ada.click('#notes > li:last-child button:has-text("Delete")');
  assert.deepEqual((await notes(ada)).slice(before), [["from the tunnel, too late", true]]);
  await sql(`delete from flights where id = ${other}`);
  gate.open();
  await ada.waitForSelector("#flight .refusal");
  outage = false;
  assert.match(await ada.innerText("#flight .refusal"), /was not added.*flight has left the tables/s);
  assert.deepEqual(await ada.locator(".refusal blockquote").allTextContents(), ["from the tunnel, too late"]);
  assert.equal(await ada.locator("#add-note").count(), 0);
  await picture(ada, "note-too-late");
  await ada.click("#flight .close");
  await until(ada, "it is said beside the board, too", () => document.querySelector(".refusals.apart blockquote")?.textContent === "from the tunnel, too late");
  await ada.click('.refusal button:has-text("Dismiss")');
  await open(ada, flight);
});

test("what is being written about a flight that leaves the tables can still be copied", async () => {
  await ada.fill("#add-note [name=body]", "half a sentence");
  await sql(`delete from flights where id = ${flight}`);
  await until(ada, "the text is still there", () => document.querySelector(".kept blockquote")?.textContent === "half a sentence");
  assert.equal(await ada.locator("#add-note").count(), 0);
  await picture(ada, "note-kept");
});

test("nothing complained", () => assert.deepEqual(complaints, []));
