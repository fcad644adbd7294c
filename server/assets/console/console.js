// The operator's console: asks the server for its status every second while the page is visible.
"use strict";

const number = new Intl.NumberFormat();
const show = (value) => (typeof value === "number" ? number.format(value) : String(value ?? "–"));

const FACTS = [
  ["commit version", (s) => s.cv],
  ["connections", (s) => s.connections],
  ["subscriptions", (s) => s.subscriptions],
  ["queries", (s) => s.queries],
  ["bindings", (s) => s.bindings],
  ["drain queue", (s) => s.drain_queue],
  ["outbox bytes", (s) => s.outbox_bytes],
  ["store bytes", (s) => s.store_bytes],
  ["log bytes", (s) => s.log_bytes],
  ["memory bytes", (s) => s.memory_bytes],
  ["uptime, s", (s) => s.uptime_seconds],
];

function fill(id, rows) {
  const body = document.querySelector(`#${id} tbody`);
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => Object.assign(document.createElement("td"), { textContent: show(cell) })));
    return row;
  }));
}

async function json(path) {
  const response = await fetch(path);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error?.message ?? response.statusText);
  return body;
}

async function refresh() {
  const state = document.getElementById("state");
  try {
    const [status, { queries }] = await Promise.all([json("/v1/status"), json("/v1/queries")]);
    document.getElementById("server").textContent = status.server;
    state.textContent = status.ready ? "ready" : `not ready: ${status.reason}`;
    state.dataset.ready = status.ready;
    document.getElementById("facts").replaceChildren(...FACTS.map(([name, value]) => {
      const box = document.createElement("div");
      box.append(
        Object.assign(document.createElement("dt"), { textContent: name }),
        Object.assign(document.createElement("dd"), { textContent: show(value(status)) }),
      );
      return box;
    }));
    fill("queries", queries.map((q) => [q.name, q.rows, q.bindings, q.subscribers, q.last_advance_us]));
    fill("workers", status.workers.map((w) => [String(w.worker), w.cv, w.queue, w.families]));
    fill("tables", status.tables.map((t) => [t.name, t.rows]));
  } catch (error) {
    state.textContent = `not reachable: ${error.message}`;
    state.dataset.ready = false;
  }
}

async function loop() {
  if (!document.hidden) await refresh();
  setTimeout(loop, 1000);
}

loop();
