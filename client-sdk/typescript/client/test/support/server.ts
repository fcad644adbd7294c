// A real server for tests, in memory or over a folder.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import WebSocket from "ws";
import { TidegateClient } from "../../src/index.js";
import type { ClientOptions } from "../../src/options.js";
import type { Mutators } from "../../src/optimistic/transaction.js";
import { stringify } from "../../src/wire/codec.js";

const READY_MS_MAX = 60_000;
const WAIT_MS_MAX = 20_000;

// Tests run from build/test/support.
const here = (path: string): string => fileURLToPath(new URL(`../../../../../../${path}`, import.meta.url));

function binary(): string {
  const candidates = process.env["TIDEGATE_BIN"]
    ? [process.env["TIDEGATE_BIN"]]
    : [here("target/release/tidegate"), here("target/debug/tidegate")];
  const found = candidates.find((path) => existsSync(path));
  if (!found) throw new Error(`no tidegate binary at ${candidates.join(" or ")}: build it, or name it in TIDEGATE_BIN`);
  return found;
}

/** A running server. */
export interface Server {
  readonly url: string;
  readonly port: number;
  /** Writes lines of a commit stream; the last commit's version. */
  commit(...lines: readonly object[]): Promise<number>;
  sql(text: string): Promise<unknown>;
  put(path: string, body: object): Promise<unknown>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts a server; `dataDir` is empty for one in memory, `limits` are settings of that section. */
export async function startServer({ dataDir = "", port = 0, limits = {} as Readonly<Record<string, number>> } = {}): Promise<Server> {
  const child = spawn(binary(), ["serve", "--addr", `127.0.0.1:${port}`, "--data-dir", dataDir, "--log-filter", "warn"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...Object.fromEntries(Object.entries(limits).map(([key, value]) => [`TIDEGATE_LIMITS_${key.toUpperCase()}`, String(value)])) },
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const addr = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("tidegate was not ready in time")), READY_MS_MAX);
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`tidegate ended with ${code} before it was ready`)));
    child.stdout.setEncoding("utf8").once("data", (line: string) => {
      clearTimeout(timer);
      resolve((JSON.parse(line) as { addr: string }).addr);
    });
  });
  const ask = async (method: string, path: string, body: string): Promise<unknown> => {
    const response = await fetch(`http://${addr}${path}`, { method, body });
    const answer = (await response.json()) as unknown;
    assert.ok(response.ok, JSON.stringify(answer));
    return answer;
  };
  const post = (path: string, body: string): Promise<unknown> => ask("POST", path, body);
  return {
    url: `http://${addr}`,
    port: Number(addr.split(":").at(-1)),
    commit: async (...lines) =>
      ((await post("/v1/commits", lines.map((line) => stringify(line)).join("\n"))) as { cv: number }).cv,
    sql: (text) => post("/v1/sql", stringify({ sql: text })),
    put: (path, body) => ask("PUT", path, stringify(body)),
    stop: async (signal = "SIGKILL") => {
      child.kill(signal);
      await ended;
    },
  };
}

/** A client of a server, with a WebSocket for every Node and short waits. */
export function connect<M extends Mutators = Record<never, never>>(
  server: { readonly url: string }, options: Omit<ClientOptions<M>, "url"> = {},
): TidegateClient<M> {
  return new TidegateClient<M>({ url: server.url, WebSocket, backoffMs: 20, backoffMsMax: 200, ...options });
}

/** Resolves when a condition holds; it is looked at whenever `subscribe` tells of something. */
export function until(what: string, holds: () => boolean, subscribe: (look: () => void) => () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let stop = (): void => {};
    const timer = setTimeout(() => {
      stop();
      reject(new Error(`${what} did not come about in time`));
    }, WAIT_MS_MAX);
    const look = (): void => {
      if (!holds()) return;
      clearTimeout(timer);
      stop();
      resolve();
    };
    stop = subscribe(look);
    look();
  });
}
