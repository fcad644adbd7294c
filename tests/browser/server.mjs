// Starts and ends the server under test; called by the tests of the pages.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const READY_MS_MAX = 60_000;
const STDERR_LINES_KEPT = 20;

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The server under test. */
export function binary() {
  const candidates = process.env.TIDEGATE_BIN
    ? [process.env.TIDEGATE_BIN]
    : [here("../../target/release/tidegate"), here("../../target/debug/tidegate")];
  const found = candidates.find((path) => existsSync(path));
  if (!found) throw new Error(`no tidegate binary at ${candidates.join(" or ")}: build it, or name it in TIDEGATE_BIN`);
  return found;
}

/**
 * Runs `tidegate demo` until it prints its address. Answers `{url, port, kill, pause, resume}`; `kill` waits for the end,
 * and a paused server keeps its sockets and says nothing.
 */
export async function startDemo({ port = 0, speed = 6000, dataDir }) {
  const args = ["demo", "--addr", `127.0.0.1:${port}`, "--speed", String(speed), "--data-dir", dataDir];
  return start(args);
}

/** As `startDemo`, but runs `tidegate serve`. */
export const startServe = ({ port = 0, dataDir }) =>
  start(["serve", "--addr", `127.0.0.1:${port}`, "--data-dir", dataDir, "--log-filter", "warn"]);

async function start(args) {
  const child = spawn(binary(), args, { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => child.once("close", (code, signal) => resolve(signal ?? `exit code ${code}`)));
  const stderr = [];
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr.push(...text.split("\n").filter(Boolean));
    stderr.splice(0, Math.max(0, stderr.length - STDERR_LINES_KEPT));
  });
  const kill = async (signal = "SIGKILL") => {
    child.kill(signal); // no effect on a process that has ended
    return ended;
  };
  const said = () => `\nlast lines on stderr:\n${stderr.join("\n")}`;

  let timer;
  const url = await Promise.race([
    new Promise((resolve) => {
      let stdout = "";
      child.stdout.setEncoding("utf8").on("data", (text) => {
        stdout += text;
        const address = /127\.0\.0\.1:\d+/.exec(stdout);
        if (address && stdout.includes("\n")) resolve(`http://${address[0]}`);
      });
    }),
    new Promise((_, reject) => child.once("error", reject)),
    ended.then((how) => Promise.reject(new Error(`tidegate ${args.join(" ")} ended (${how}) before it was ready${said()}`))),
    new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`tidegate printed no address within ${READY_MS_MAX} ms${said()}`)), READY_MS_MAX);
    }),
  ]).catch(async (error) => {
    await kill();
    throw error;
  });
  clearTimeout(timer);
  const [pause, resume] = ["SIGSTOP", "SIGCONT"].map((signal) => () => child.kill(signal));
  return { url, port: Number(new URL(url).port), kill, pause, resume };
}
