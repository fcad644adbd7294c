// A small Tidegate client for the demo page: the JSON codec (`tidegate.v1+json`) over one WebSocket.
//
// `Tidegate` owns the connection: hello, subscriptions, progress, reconnecting with back-off.
// `LiveQuery` owns one subscription's state: what is shown, and what waits to be released.
// `buildRows` turns a released state into the ordered, nested result. It evaluates nothing: each row
// says at which places of the query's tree it stands.
//
// Guarantees to the caller:
// - batches wait until `progress` releases them, for all queries at once, so that a reader between two
//   `release` events sees one commit of the database, whole;
// - after a lost connection every query keeps its old rows until all of them have caught up; they then
//   move together, in one `release`;
// - where the server still keeps the commit a query was last shown at, only the difference travels.
//
// Numbers are JavaScript's: an int8 beyond 2^53 and a numeric beyond 15 digits order approximately.

const PROTOCOL = "tidegate.v1+json";
const RETRY_MS_FIRST = 250;
const RETRY_MS_MAX = 8_000;
const PING_AFTER_MS = 10_000; // of silence
const DEAD_AFTER_MS = 20_000;
/** Refusals that pass by themselves: the subscription is tried again. */
const PASSING = new Set(["not_ready", "shutting_down", "internal"]);

const KEY = Symbol("key");
/** The identity of a row of a result: its primary key as a string, stable across edits. */
export const keyOf = (row) => row[KEY];

/**
 * One connection to a Tidegate server. Events (all `CustomEvent`):
 * - `status`, detail `{state, message, retryInMs}`: `connecting`, `live` or `reconnecting`;
 * - `release`, detail `{cv, changes, queries}`: these `LiveQuery`s moved to `cv`, by that many row changes
 *   (snapshots not counted);
 * - `failed`, detail `{query}`: a query was refused or faulted; its `error` says why;
 * - `notice`, detail `{code, message}`: the server complained about the connection as a whole.
 */
export class Tidegate extends EventTarget {
  #url;
  #connect;
  #socket = null;
  #open = false;
  #queries = new Map(); // by sub, on this connection
  #failed = new Set(); // refused or faulted: asked for again after a pause, or on the next connection
  #sub = 0; // the last number given, on this connection
  #cvMin = -1; // the newest progress of this connection
  #catchingUp = new Set(); // queries that show rows of an earlier connection
  #attempt = 0;
  #retry = null;
  #notBefore = 0; // ms the server asked to wait, in its goaway
  #reason = null;
  #heardAt = 0;
  #closed = false;
  #watch = null;

  /** The commit version everything shown stands at, or null before the first release. */
  cv = null;
  /** `{state, message, retryInMs}` as in the last `status` event. */
  status = { state: "connecting", message: null, retryInMs: null };

  /** `connect` makes a socket of a URL and a subprotocol; tests pass their own. */
  constructor(url, connect = (address, protocol) => new WebSocket(address, protocol)) {
    super();
    this.#url = url;
    this.#connect = connect;
    this.#watch = setInterval(() => this.#watchSilence(), PING_AFTER_MS / 4);
    this.#dial();
  }

  /** Keeps `query` live. `args` are the values of its parameters. */
  subscribe(query, args = undefined) {
    const live = new LiveQuery(this, query, args);
    this.#request(live);
    return live;
  }

  /** Ends one query; called by `LiveQuery.close`. */
  unsubscribe(live) {
    if (this.#failed.delete(live) || !this.#queries.delete(live.sub)) return;
    this.#send({ unsubscribe: { sub: live.sub } });
    this.#caughtUp(live);
  }

  /** Tries at once instead of waiting for the back-off: the page came to the front, or the network came back. */
  retryNow() {
    if (this.#retry === null) return;
    clearTimeout(this.#retry);
    this.#dial();
  }

  /** Ends the connection for good. */
  close() {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#watch);
    this.#socket?.close();
  }

  #dial() {
    this.#retry = null;
    const socket = this.#connect(this.#url, PROTOCOL);
    this.#socket = socket;
    this.#heardAt = Date.now();
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      this.#open = true;
      this.#cvMin = -1;
      this.#sub = 0;
      this.#send({ hello: {} });
      const queries = [...this.#queries.values(), ...this.#failed];
      this.#queries.clear();
      this.#failed.clear();
      this.#catchingUp = new Set(queries.filter((live) => live.ready));
      for (const live of queries) this.#request(live);
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      this.#heardAt = Date.now();
      try {
        this.#receive(JSON.parse(data));
      } catch (error) {
        this.#lose(`a frame could not be used: ${error.message}`);
      }
    };
    socket.onclose = () => socket === this.#socket && this.#lose(null);
    socket.onerror = () => {}; // a close always follows
  }

  /** Drops the connection and plans the next attempt; what is shown stays. */
  #lose(reason) {
    const socket = this.#socket;
    this.#socket = null;
    this.#open = false;
    socket.close();
    if (this.#closed) return;
    for (const live of this.#queries.values()) live.forgetWaiting();
    const backOff = Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 2 ** this.#attempt++);
    const retryInMs = Math.max(this.#notBefore, Math.round(backOff * (0.75 + Math.random() / 2)));
    this.#notBefore = 0;
    this.#retry = setTimeout(() => this.#dial(), retryInMs);
    this.#setStatus(this.cv === null ? "connecting" : "reconnecting", reason ?? this.#reason, retryInMs);
    this.#reason = null;
  }

  #watchSilence() {
    if (!this.#socket) return;
    const silent = Date.now() - this.#heardAt;
    if (silent > DEAD_AFTER_MS) this.#lose("the server has fallen silent");
    else if (silent > PING_AFTER_MS) this.#send({ ping: { t: Date.now() } });
  }

  #send(message) {
    if (this.#open) this.#socket.send(JSON.stringify(message));
  }

  #request(live) {
    live.sub = ++this.#sub;
    live.error = null;
    this.#queries.set(live.sub, live);
    const { sub, query, args, resumePoint: resume } = live;
    this.#send({ subscribe: { sub, query, args, resume } }); // undefined members do not travel
  }

  #receive(message) {
    const [kind] = Object.keys(message);
    const body = message[kind];
    const live = this.#queries.get(body.sub);
    switch (kind) {
      case "welcome":
        return this.#settle();
      case "subscribed":
        return live?.announce(body);
      case "batch":
        return live?.wait(body);
      case "progress":
        this.#cvMin = body.cv_min;
        return this.#release();
      case "faulted":
        return live && this.#fail(live, body, body.retry);
      case "error":
        if (live) return this.#fail(live, body, PASSING.has(body.code));
        this.#reason = body.message;
        return this.#emit("notice", body);
      case "goaway":
        this.#notBefore = body.retry_after_ms ?? 0;
        this.#reason = body.message;
        return this.#lose(null);
    }
    // pong, push_result and kinds added later carry nothing this page needs.
  }

  #fail(live, { code, message }, retry) {
    live.error = { code, message };
    live.stop();
    this.#queries.delete(live.sub);
    this.#failed.add(live);
    const again = () => this.#open && this.#failed.delete(live) && this.#request(live);
    if (retry) setTimeout(again, Math.min(RETRY_MS_MAX, RETRY_MS_FIRST * 4 ** ++live.failures));
    this.#emit("failed", { query: live });
    this.#caughtUp(live);
  }

  #caughtUp(live) {
    if (this.#catchingUp.delete(live)) this.#release();
  }

  /** Applies, for all queries at once, what `cvMin` has released. */
  #release() {
    const cv = this.#cvMin;
    if (cv < 0) return;
    for (const live of this.#catchingUp) if (!live.releasable(cv)) return;
    this.#catchingUp.clear();
    let changes = 0;
    const queries = new Set();
    for (const live of this.#queries.values()) {
      const applied = live.release(cv);
      if (applied === null) continue;
      changes += applied;
      queries.add(live);
    }
    this.cv = cv;
    this.#settle();
    this.#emit("release", { cv, changes, queries });
  }

  #settle() {
    if (this.#catchingUp.size > 0) return;
    this.#attempt = 0;
    if (this.status.state !== "live") this.#setStatus("live", null, null);
  }

  #setStatus(state, message, retryInMs) {
    this.status = { state, message, retryInMs };
    this.#emit("status", this.status);
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** One query kept live. Read `rows` after a `release` event that names it. */
class LiveQuery {
  #tide;
  #shown = null; // the released result: {epoch, fp, cv, tables, places, rows}
  #epochs = []; // announced and not fully released: {head, batches, seq, started}
  #built = null;
  #resumable = false; // whether `#shown` is exactly the result at its cv

  sub = 0;
  /** `{code, message}` when the server refused or faulted the query, else null. */
  error = null;
  /** Faults in a row; sets the pause before the next try. */
  failures = 0;

  constructor(tide, query, args) {
    this.#tide = tide;
    this.query = query;
    this.args = args;
  }

  /** Whether a complete snapshot has been released. */
  get ready() {
    return this.#shown !== null;
  }

  /** The result, ordered and nested, at the connection's `cv`. Empty before the first release. */
  get rows() {
    if (this.#shown && !this.#built) this.#built = buildRows(this.#shown);
    return this.#built ?? [];
  }

  /** What to name in `resume`, if anything. */
  get resumePoint() {
    return this.#resumable ? { epoch: this.#shown.epoch, cv: this.#shown.cv, fp: this.#shown.fp } : undefined;
  }

  close() {
    this.#tide.unsubscribe(this);
  }

  announce(head) {
    this.#epochs.push({ head, batches: [], seq: 0, started: false });
  }

  wait(batch) {
    const epoch = this.#epochs.find(({ head }) => head.epoch === batch.epoch);
    if (!epoch) return; // of an epoch that a newer one has replaced
    if (batch.seq !== epoch.seq) throw new Error(`sub ${this.sub}: seq ${batch.seq} where ${epoch.seq} was due`);
    epoch.seq += 1;
    epoch.batches.push(batch);
  }

  /** The connection has ended: nothing that waits will be released any more. */
  forgetWaiting() {
    this.#epochs = [];
  }

  /** The query has ended while others go on: its rows stay to be seen, but belong to no known cv. */
  stop() {
    this.forgetWaiting();
    this.#resumable = false;
  }

  /** Whether this connection's snapshot (or resumed difference) is complete and released by `cv`. */
  releasable(cv) {
    return this.#epochs.some((epoch) => epoch.started || complete(epoch, cv));
  }

  /** Moves to `cv`. Answers how many row changes that took, a snapshot's not counted; null when nothing was due. */
  release(cv) {
    let changes = null;
    for (let epoch; (epoch = this.#epochs[0]); this.#epochs.shift()) {
      if (!epoch.started && complete(epoch, cv)) {
        this.#start(epoch);
        changes ??= 0;
      }
      if (epoch.started) {
        while (epoch.batches.length > 0 && epoch.batches[0].cv <= cv) {
          changes = (changes ?? 0) + apply(this.#shown, epoch.batches.shift().ops);
        }
      }
      const next = this.#epochs[1];
      if (!next || !complete(next, cv)) break;
    }
    if (this.#epochs[0]?.started) this.#shown.cv = cv;
    if (changes !== null) this.#built = null;
    return changes;
  }

  #start(epoch) {
    const { epoch: number, fp, tables, places, resumed } = epoch.head;
    const rows = resumed && this.#shown ? this.#shown.rows : tables.map(() => new Map());
    this.#shown = { epoch: number, fp, cv: 0, tables, places, rows };
    epoch.started = true;
    this.#resumable = true;
    this.failures = 0;
    let part;
    do {
      part = epoch.batches.shift();
      apply(this.#shown, part.ops);
    } while (part.more);
  }
}

/** Whether the first cv of an epoch (its snapshot, in one part or several) is whole and due. */
function complete({ batches }, cv) {
  const last = batches.find((batch) => !batch.more);
  return last !== undefined && last.cv <= cv;
}

function apply({ tables, rows }, ops) {
  for (const [op, t, ...rest] of ops) {
    if (op === "-") {
      rows[t].delete(JSON.stringify(rest[0]));
    } else {
      const [places, cells] = rest;
      const key = JSON.stringify(tables[t].key.map((column) => cells[column]));
      rows[t].set(key, { key, places, cells });
    }
  }
  return ops.length;
}

/** The ordered, nested result of a state: the rows of place 0, each with its relations under their names. */
export function buildRows({ tables, places, rows }) {
  const children = places.map((_, i) => places.flatMap((place, child) => (place.parent === i ? [child] : [])));
  // For each place, the rows that stand there in order, grouped by the values that tie them to a parent.
  const groups = places.map((place, i) => {
    const byTie = new Map();
    for (const row of rows[place.table].values()) {
      if (!((row.places >>> i) & 1)) continue;
      const tie = tieOf(row, tables[place.table].columns, place.on, 1);
      const group = byTie.get(tie);
      if (group) group.push(row);
      else byTie.set(tie, [row]);
    }
    const compare = comparator(place.order, tables[place.table].columns);
    for (const group of byTie.values()) group.sort(compare);
    return byTie;
  });
  const build = (i, row) => {
    const place = places[i];
    const { columns } = tables[place.table];
    const result = { [KEY]: row.key };
    for (const column of place.columns) result[columns[column].name] = row.cells[column];
    for (const child of children[i]) {
      const { as, on, one, value } = places[child];
      const tie = tieOf(row, columns, on, 0);
      const rows = (tie !== null && groups[child].get(tie)) || [];
      if (value) {
        result[as] = rows.length > 0 ? rows[0].cells[places[child].columns[0]] : value.or;
        continue;
      }
      const found = rows.map((r) => build(child, r));
      result[as] = one ? (found[0] ?? null) : found;
    }
    return result;
  };
  return (groups[0].get("") ?? []).map((row) => build(0, row));
}

/** The values of one side of `on` as a string; null when one of them is NULL, which agrees with nothing. */
function tieOf(row, columns, on, side) {
  if (on.length === 0) return "";
  const values = on.map((pair) => {
    const value = row.cells[pair[side]];
    return value === null ? null : (SAME[columns[pair[side]].type]?.(value) ?? value);
  });
  return values.includes(null) ? null : JSON.stringify(values);
}

/** A number as its digits without zeros around them, and its exponent: the same for 1, "1.00" and 1e0. */
function digitsOf(number) {
  const parts = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(String(number));
  if (!parts) return String(number); // NaN and the infinities
  const [, sign, whole, fraction, exponent] = parts;
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  if (kept === "") return "0";
  const scale = Number(exponent ?? 0) - fraction.length + (digits.length - kept.length);
  return `${sign === "-" ? "-" : ""}${kept}e${scale}`;
}

/** What is the same for equal values of different types or spellings. */
const SAME = {
  int8: digitsOf,
  float8: digitsOf,
  numeric: digitsOf,
  date: (day) => `${day}T00:00:00Z`,
};

function comparator(order, columns) {
  const parts = order.map(([column, direction, nulls]) => ({
    column,
    sign: direction === "desc" ? -1 : 1,
    nullSign: nulls === "nulls first" ? -1 : 1,
    compare: COMPARE[columns[column].type] ?? compareSimple,
  }));
  return (left, right) => {
    for (const { column, sign, nullSign, compare } of parts) {
      const a = left.cells[column];
      const b = right.cells[column];
      if (a === null || b === null) {
        if (a !== b) return a === null ? nullSign : -nullSign;
        continue;
      }
      const c = compare(a, b);
      if (c !== 0) return sign * c;
    }
    return 0;
  };
}

const compareSimple = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const compareNumber = (a, b) => {
  const [x, y] = [Number(a), Number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y); // NaN is the greatest
  return compareSimple(x, y);
};

/** Orders that are not JavaScript's own. */
const COMPARE = {
  // By code point, which is UTF-8's bytewise order; UTF-16's differs above U+FFFF.
  text: (a, b) => {
    if (a === b) return 0;
    let i = 0;
    while (i < a.length && a[i] === b[i]) i += 1;
    if (i > 0 && /[\uDC00-\uDFFF]/.test((a[i] ?? "") + (b[i] ?? ""))) i -= 1; // inside a surrogate pair
    return compareSimple(a.codePointAt(i) ?? -1, b.codePointAt(i) ?? -1);
  },
  float8: compareNumber,
  numeric: compareNumber,
  // Without the Z a fraction sorts after the whole second it belongs to.
  timestamptz: (a, b) => compareSimple(a.replace("Z", ""), b.replace("Z", "")),
  bytea: (a, b) => compareSimple(atob(a), atob(b)),
};
