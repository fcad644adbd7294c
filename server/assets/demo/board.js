// The demo's departure board: which queries the page keeps live, and how their rows become tables.
//
// tidegate.js keeps the rows; this file renders them once per animation frame at most, after a
// `release`, so that all sections always show the same commit. Data reaches the page by textContent
// only. For checks from outside, elements carry data attributes: `data-cv`, `data-state` and
// `data-complete` (every query has been answered) on <html>; `data-id`, `data-origin` and `data-status`
// on rows; `data-rows` and `data-count` in the counts.

import { Tidegate, keyOf } from "./tidegate.js";

const AIRPORTS = { EWR: "Newark", JFK: "Kennedy", LGA: "LaGuardia" };
const STATUSES = ["scheduled", "departed", "arrived", "cancelled"];
const GONE_ROWS = 6;
const NEXT_ROWS = 25;
const BRIEF_ROWS = 8;
const FEED_ROWS = 12;
const DELAY_MIN = 15; // minutes late that count as a delay
const SPARK_SECONDS = 60;
const FLASH_MS = 1_500;

// ---- queries ----

const col = (name) => ({ col: name });
const is = (name, value) => ({ op: "=", args: [col(name), value] });
const all = (...args) => ({ op: "and", args });
const hasLeft = { op: "in", args: [col("status"), "departed", "arrived"] };
const fromOrigin = is("origin", { param: "origin" });

const FLIGHT = ["id", "carrier", "flight", "origin", "dest", "sched_dep", "dep_time", "arr_time", "dep_delay", "status"];
const destination = { as: "to", one: true, on: [["dest", "faa"]], query: { table: "airports", select: ["name"] } };
const airline = { as: "airline", one: true, on: [["carrier", "carrier"]], query: { table: "airlines", select: ["name"] } };
const plane = { as: "plane", one: true, on: [["tailnum", "tailnum"]], query: { table: "planes", select: ["manufacturer", "model", "year"] } };

const flights = (where, order, limit, related) => ({ table: "flights", where, select: FLIGHT, order_by: [order], limit, related });
const newest = (column) => ({ table: "flights", select: [column], order_by: [[column, "desc", "nulls last"]], limit: 1 });

const QUERIES = {
  next: flights(all(fromOrigin, is("status", "scheduled")), ["sched_dep", "asc"], NEXT_ROWS, [destination, airline, plane]),
  left: flights(all(fromOrigin, hasLeft), ["dep_time", "desc"], GONE_ROWS, [destination, airline, plane]),
  dropped: flights(all(fromOrigin, is("status", "cancelled")), ["sched_dep", "desc"], GONE_ROWS, [destination, airline, plane]),
  brief: flights(all(fromOrigin, is("status", "scheduled")), ["sched_dep", "asc"], BRIEF_ROWS, [destination]),
  weather: { table: "weather", where: fromOrigin, order_by: [["hour", "desc"]], limit: 1 },
  statuses: { table: "flights", select: ["origin", "status"] },
  delayed: flights(all(hasLeft, { op: ">=", args: [col("dep_delay"), DELAY_MIN] }), ["dep_time", "desc"], FEED_ROWS, [destination]),
  cancelled: flights(is("status", "cancelled"), ["sched_dep", "desc"], FEED_ROWS, [destination]),
  newestDeparture: newest("dep_time"),
  newestArrival: newest("arr_time"),
  newestSchedule: newest("sched_dep"),
};

const tide = new Tidegate(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/sync`);

const live = {
  statuses: tide.subscribe(QUERIES.statuses),
  delayed: tide.subscribe(QUERIES.delayed),
  cancelled: tide.subscribe(QUERIES.cancelled),
  newestDeparture: tide.subscribe(QUERIES.newestDeparture),
  newestArrival: tide.subscribe(QUERIES.newestArrival),
  newestSchedule: tide.subscribe(QUERIES.newestSchedule),
  brief: perAirport((origin) => tide.subscribe(QUERIES.brief, { origin })),
  weather: perAirport((origin) => tide.subscribe(QUERIES.weather, { origin })),
};

const steady = Object.values(live).flatMap((query) => (query.query ? query : Object.values(query)));

function perAirport(make) {
  return Object.fromEntries(Object.keys(AIRPORTS).map((origin) => [origin, make(origin)]));
}

// ---- the picked airport: the board changes over when all of its queries are there ----

let board = openBoard(pickedAirport());
let coming = null; // the board that is being fetched, while the old one stays

function pickedAirport() {
  const picked = location.hash.slice(1).toUpperCase();
  return picked in AIRPORTS ? picked : "EWR";
}

function openBoard(origin) {
  const queries = ["next", "left", "dropped"].map((name) => tide.subscribe(QUERIES[name], { origin }));
  const [next, left, dropped] = queries;
  return { origin, queries, next, left, dropped };
}

const closeBoard = ({ queries }) => queries.forEach((query) => query.close());
const settled = ({ queries }) => queries.every((query) => query.ready || query.error);

function pick() {
  const origin = pickedAirport();
  if (origin === (coming ?? board).origin) return;
  if (coming) closeBoard(coming);
  coming = origin === board.origin ? null : openBoard(origin);
  render();
}

function changeOver() {
  if (!coming || !settled(coming)) return;
  closeBoard(board);
  board = coming;
  coming = null;
}

// ---- times: the data's are local times marked UTC, and are shown as they stand ----

const HOUR_MS = 3_600_000;
const SCHEDULED_AHEAD_MS = 12 * HOUR_MS; // the data publishes a flight this long before its scheduled hour

const clockTime = (t) => new Date(t).toISOString().slice(11, 16);
const formatDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const formatDate = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const sameDay = (a, b) => new Date(a).toISOString().slice(0, 10) === new Date(b).toISOString().slice(0, 10);

/** The newest time that the data has reached, in milliseconds; null before there is any. */
function replayTime() {
  const newestOf = (query, column) => Date.parse(query.rows[0]?.[column] ?? "");
  const published = newestOf(live.newestSchedule, "sched_dep");
  const times = [
    newestOf(live.newestDeparture, "dep_time"),
    newestOf(live.newestArrival, "arr_time"),
    newestOf(live.cancelled, "sched_dep"), // the data cancels a flight at its scheduled minute
    published - (published % HOUR_MS) - SCHEDULED_AHEAD_MS,
    ...Object.values(live.weather).map((query) => newestOf(query, "hour")),
  ].filter((t) => !Number.isNaN(t));
  return times.length > 0 ? Math.max(...times) : null;
}

function minutes(n) {
  const [h, m] = [Math.floor(n / 60), n % 60];
  return h === 0 ? `${m} min` : `${h} h ${String(m).padStart(2, "0")}`;
}

/** What a flight's status column says: a word, and more about it. */
function statusOf(flight, now) {
  const { status, dep_time: left, dep_delay: delay } = flight;
  switch (status) {
    case "scheduled": {
      const late = now === null ? 0 : Math.floor((now - Date.parse(flight.sched_dep)) / 60_000);
      return late > 0 ? { kind: lateKind(late), word: "Delayed", more: `${minutes(late)} late` } : { kind: status, word: "Scheduled", more: "" };
    }
    case "departed":
    case "arrived": {
      const by = delay === null ? "" : delay === 0 ? ", on time" : `, ${delay < 0 ? "−" : "+"}${minutes(Math.abs(delay))}`;
      return { kind: status, word: status === "arrived" ? "Arrived" : "Departed", more: left ? clockTime(left) + by : "" };
    }
    case "cancelled":
      return { kind: status, word: "Cancelled", more: "" };
    default:
      return { kind: "scheduled", word: status, more: "" };
  }
}

const lateKind = (minutesLate) => (minutesLate >= 60 ? "very-late" : "late");

/** The same in one word, for the narrow tables. */
function briefStatusOf(flight, now) {
  const { kind, word, more } = statusOf(flight, now);
  return { kind, word: word === "Delayed" ? more : word, more: "" };
}

// ---- elements ----

const $ = (id) => document.getElementById(id);

function element(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Table rows kept in step with results, one element per row of data, reused while the row stays. */
class Rows {
  #elements = new Map();

  /** `make()` answers the row's cells by name; `fill(cells, row)` writes the row into them. */
  constructor(make, fill) {
    this.make = make;
    this.fill = fill;
  }

  /** Shows `groups`: pairs of a tbody and its rows, in order. A row may move between groups. */
  show(groups, now) {
    const wanted = new Set(groups.flatMap(([, rows]) => rows.map(keyOf)));
    for (const [key, { tr }] of this.#elements) {
      if (wanted.has(key)) continue;
      tr.remove();
      this.#elements.delete(key);
    }
    for (const [tbody, rows] of groups) {
      let cursor = tbody.querySelector("tr:not(.group)");
      for (const row of rows) {
        const entry = this.#entry(row);
        this.fill(entry.cells, row, now);
        this.#markChange(entry, row);
        if (entry.tr === cursor) cursor = cursor.nextElementSibling;
        else tbody.insertBefore(entry.tr, cursor);
      }
    }
  }

  #entry(row) {
    let entry = this.#elements.get(keyOf(row));
    if (!entry) {
      const cells = this.make();
      entry = { cells, tr: element("tr", "", ...Object.values(cells).map(({ cell }) => cell)), seen: null, timer: 0 };
      this.#elements.set(keyOf(row), entry);
    }
    Object.assign(entry.tr.dataset, { id: row.id, origin: row.origin, status: row.status });
    return entry;
  }

  /** Flashes a row whose data changed; not one whose wording changed because time went by. */
  #markChange(entry, row) {
    const seen = [row.status, row.sched_dep, row.dep_time, row.arr_time, row.dep_delay].join();
    if (entry.seen !== null && entry.seen !== seen) {
      entry.tr.dataset.flash = entry.tr.dataset.flash === "a" ? "b" : "a"; // the other name restarts the animation
      clearTimeout(entry.timer);
      entry.timer = setTimeout(() => delete entry.tr.dataset.flash, FLASH_MS);
    }
    entry.seen = seen;
  }
}

/** A cell of two parts: what matters, and more about it. */
function cell(tag, className, firstClass = "", moreClass = "more") {
  const first = element("span", firstClass);
  const more = element("span", moreClass);
  const td = element(tag, className, first, " ", more);
  if (tag === "th") td.scope = "row";
  return { cell: td, first, more };
}

function fillTime({ first, more }, time, now) {
  setText(first, clockTime(time));
  setText(more, now === null || sameDay(Date.parse(time), now) ? "" : formatDay.format(Date.parse(time)));
}

function fillStatus({ cell: td, first, more }, status) {
  td.dataset.kind = status.kind;
  setText(first, status.word);
  setText(more, status.more);
}

const boardRows = new Rows(
  () => ({
    time: cell("td", "time"),
    flight: cell("th", "flight"),
    dest: cell("td", "dest", "code"),
    airline: cell("td", "airline"),
    plane: cell("td", "plane"),
    status: cell("td", "status", "chip"),
  }),
  (cells, row, now) => {
    fillTime(cells.time, row.sched_dep, now);
    setText(cells.flight.first, `${row.carrier} ${row.flight}`);
    setText(cells.flight.more, row.airline?.name ?? ""); // shown where the airline has no column
    setText(cells.dest.first, row.dest);
    setText(cells.dest.more, row.to?.name ?? "");
    setText(cells.airline.first, row.airline?.name.replace(/ (Inc\.|Co\.|Corporation)$/, "") ?? row.carrier);
    setText(cells.plane.first, row.plane?.model ?? "–");
    setText(cells.plane.more, row.plane?.year ? String(row.plane.year) : "");
    cells.plane.cell.title = row.plane?.manufacturer ?? "";
    fillStatus(cells.status, statusOf(row, now));
  },
);

/** The narrow tables: `time` names the time to show, `route` whether the origin is shown; `status` may be null. */
function briefRows(time, route, status = briefStatusOf) {
  return new Rows(
    () => ({
      time: cell("td", "time"),
      flight: cell("th", "flight"),
      dest: cell("td", "dest", "code"),
      ...(status && { status: cell("td", "status", "chip") }),
    }),
    (cells, row, now) => {
      fillTime(cells.time, row[time], now);
      setText(cells.flight.first, `${row.carrier} ${row.flight}`);
      setText(cells.dest.first, route ? `${row.origin}–${row.dest}` : row.dest);
      setText(cells.dest.more, row.to?.name ?? "");
      if (status) fillStatus(cells.status, status(row, now));
    },
  );
}

const delayedRows = briefRows("dep_time", true, ({ dep_delay: d }) => ({ kind: lateKind(d), word: `+${minutes(d)}`, more: "" }));
const cancelledRows = briefRows("sched_dep", true, null);

const cards = perAirport((origin) => {
  const section = $("airport-card").content.cloneNode(true).firstElementChild;
  const title = section.querySelector("h2");
  title.id = `title-${origin}`;
  title.append(AIRPORTS[origin], " ", element("small", "", origin));
  for (const labelled of [section, section.querySelector("table")]) labelled.setAttribute("aria-labelledby", title.id);
  section.dataset.airport = origin;
  $("airports").append(section);
  return { section, rows: briefRows("sched_dep", false), tbody: section.querySelector("tbody") };
});

const links = perAirport((origin) => {
  const link = element("a", "", element("b", "", origin), " ", element("span", "", AIRPORTS[origin]));
  link.href = `#${origin}`;
  $("picker").append(link);
  return link;
});

// ---- rendering ----

/** The line that stands in for a section's table: why there is nothing to show, or what went wrong. */
function sayState(section, queries, shown, emptyText) {
  const line = section.querySelector(".state");
  const error = queries.find((query) => query.error)?.error;
  const ready = queries.every((query) => query.ready);
  let text = "";
  if (error) text = `This list has stopped: ${error.message} (${error.code})`;
  else if (!ready) text = tide.status.state === "live" ? "Loading…" : "Connecting…";
  else if (shown === 0) text = emptyText;
  line.hidden = text === "";
  line.dataset.kind = error ? "error" : ready ? "empty" : "loading";
  setText(line, text);
}

function weatherText(query, long) {
  const w = query.rows[0];
  if (!w) return "";
  const parts = [];
  if (w.temp !== null) parts.push(`${Math.round(w.temp)} °F` + (long ? ` (${Math.round(((w.temp - 32) * 5) / 9)} °C)`.replace("-", "−") : ""));
  if (w.wind_speed !== null) parts.push(`wind ${Math.round(w.wind_speed)} mph`);
  if (long && w.visib !== null) parts.push(`visibility ${w.visib} mi`);
  if (w.precip !== null && (long || w.precip > 0)) parts.push(w.precip > 0 ? `${long ? "precipitation" : "precip."} ${w.precip} in` : "dry");
  return parts.join(" · ") + (long ? ` at ${clockTime(w.hour)}` : "");
}

function renderBoard(now) {
  const { origin, next, left, dropped, queries } = board;
  // The newest of both lists: each brings as many rows as are shown.
  const goneAt = (row) => Date.parse(row.dep_time ?? row.sched_dep);
  const gone = [...left.rows, ...dropped.rows].sort((a, b) => goneAt(a) - goneAt(b)).slice(-GONE_ROWS);
  boardRows.show([[$("board-left"), gone], [$("board-next"), next.rows]], now);
  $("board-left").hidden = gone.length === 0;
  $("board-next").hidden = next.rows.length === 0;
  setText($("board-title"), `Departures from ${AIRPORTS[origin]}`);
  setText($("weather"), weatherText(live.weather[origin], true) || "\u00a0");
  $("board").dataset.origin = origin;
  $("board").setAttribute("aria-busy", String(coming !== null));
  sayState($("board"), queries, next.rows.length, `No departure from ${AIRPORTS[origin]} is planned at this moment.`);
  const picked = (coming ?? board).origin;
  for (const [code, link] of Object.entries(links)) {
    if (code === picked) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  document.title = `${picked} departures · Tidegate`;
}

function renderAirports(now) {
  for (const [origin, { section, rows, tbody }] of Object.entries(cards)) {
    const query = live.brief[origin];
    rows.show([[tbody, query.rows]], now);
    setText(section.querySelector(".weather"), weatherText(live.weather[origin], false));
    sayState(section, [query], query.rows.length, "No departure is planned at this moment.");
  }
}

function renderFeed(id, query, rows, now, emptyText) {
  rows.show([[$(id).querySelector("tbody"), query.rows]], now);
  sayState($(id), [query], query.rows.length, emptyText);
}

/** The table of counts: a line for each status and the total, a column for each airport and all. */
const counts = [...Object.keys(AIRPORTS), "All"].map((origin) => {
  const bar = element("span", "bar", ...STATUSES.map((status) => element("i", status)));
  bar.setAttribute("aria-hidden", "true");
  const th = element("th", "", origin, bar);
  th.scope = "col";
  $("counts-head").append(th);
  return { origin, bar, cells: [...STATUSES, "total"].map(() => element("td")) };
});
[...STATUSES, "total"].forEach((name, i) => {
  const th = element("th", name, name[0].toUpperCase() + name.slice(1));
  th.scope = "row";
  $("counts-body").append(element("tr", name, th, ...counts.map(({ cells }) => cells[i])));
  if (name !== "total") counts.at(-1).cells[i].dataset.count = name;
});

let counted = null; // the rows counted last

function renderCounts() {
  const { rows } = live.statuses;
  sayState($("counts"), [live.statuses], rows.length, "No flights are in the tables yet.");
  if (rows === counted) return;
  counted = rows;
  for (const { origin, bar, cells } of counts) {
    const tally = new Map(STATUSES.map((status) => [status, 0]));
    const here = origin === "All" ? rows : rows.filter((row) => row.origin === origin);
    for (const { status } of here) tally.set(status, (tally.get(status) ?? 0) + 1);
    STATUSES.forEach((status, i) => {
      setText(cells[i], tally.get(status).toLocaleString("en"));
      bar.children[i].style.flexGrow = String(tally.get(status));
    });
    setText(cells[STATUSES.length], here.length.toLocaleString("en"));
  }
  const table = $("counts").querySelector("table");
  table.hidden = rows.length === 0;
  table.dataset.rows = String(rows.length);
}

function renderHeader(now) {
  if (now !== null) {
    $("clock").dateTime = new Date(now).toISOString();
    setText($("clock-time"), clockTime(now));
    setText($("clock-date"), formatDate.format(now));
  }
  setText($("cv"), tide.cv === null ? "–" : tide.cv.toLocaleString("en"));
}

function render() {
  changeOver();
  const now = replayTime();
  renderHeader(now);
  renderBoard(now);
  renderAirports(now);
  renderCounts();
  renderFeed("delayed", live.delayed, delayedRows, now, "No flight has left late.");
  renderFeed("cancelled", live.cancelled, cancelledRows, now, "No flight is cancelled.");
  const complete = coming === null && [...board.queries, ...steady].every((query) => query.ready);
  Object.assign(document.documentElement.dataset, { cv: tide.cv ?? "", state: tide.status.state, complete });
}

let frame = 0;
function renderSoon() {
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    render();
  });
}

function renderStatus() {
  const { state, message } = tide.status;
  const words = { connecting: "Connecting…", live: "Live", reconnecting: "Reconnecting…" };
  $("status").dataset.state = state;
  setText($("status"), words[state]);
  const what = state === "reconnecting" ? "The board shows the last commit received until the connection is back." : "The server cannot be reached yet.";
  say(state === "live" || (state === "connecting" && !message && tide.status.retryInMs === null) ? "" : message ? `${what} The server said: ${message}.` : what);
}

function say(text) {
  $("notice").hidden = text === "";
  setText($("notice"), text);
}

// ---- changes per second ----

const samples = new Array(SPARK_SECONDS).fill(0);
let changes = 0;

function renderRate() {
  samples.push(changes);
  samples.shift();
  setText($("rate"), changes.toLocaleString("en"));
  changes = 0;
  const top = Math.max(10, ...samples);
  const points = samples.map((n, i) => `${((i * 120) / (SPARK_SECONDS - 1)).toFixed(1)},${(26 - (n * 24) / top).toFixed(1)}`);
  $("spark").querySelector(".line").setAttribute("d", `M${points.join("L")}`);
  $("spark").querySelector(".area").setAttribute("d", `M0,28L${points.join("L")}L120,28Z`);
}

tide.addEventListener("release", ({ detail }) => {
  changes += detail.changes;
  renderSoon();
});
tide.addEventListener("failed", renderSoon);
tide.addEventListener("status", () => {
  renderStatus();
  renderSoon();
});
tide.addEventListener("notice", ({ detail }) => say(`The server said: ${detail.message} (${detail.code}).`));
addEventListener("hashchange", pick);
addEventListener("online", () => tide.retryNow());
document.addEventListener("visibilitychange", () => document.hidden || tide.retryNow());
setInterval(renderRate, 1_000);
renderStatus();
render();
