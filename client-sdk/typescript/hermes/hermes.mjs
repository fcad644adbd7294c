// The client in Hermes, React Native's JavaScript engine: `npm ci && node hermes.mjs` (build the client first:
// `npx tsc --build` in the folder above).
//
// The bundle goes through Babel, as React Native's bundler has it, since Hermes has no classes of its own. In it the
// recorded sessions are played, and a client with a pending mutation follows a server that is played.

import { transformAsync } from "@babel/core";
import env from "@babel/preset-env";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const SYSTEMS = { linux: "linux64-bin/hermes", darwin: "osx-bin/hermes", win32: "win64-bin/hermes.exe" };
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const folder = here("../../../wire/vectors/sessions");
const sessions = readdirSync(folder).sort().map((name) => [name, readFileSync(join(folder, name), "utf8").trimEnd().split("\n")]);

const bundle = await build({
  entryPoints: [here("inside.js")],
  bundle: true,
  format: "iife",
  banner: { js: `globalThis.SESSIONS = ${JSON.stringify(sessions)};` },
  write: false,
});
const { code } = await transformAsync(bundle.outputFiles[0].text, {
  configFile: false,
  compact: false,
  // Hermes has BigInt's `**`, and no `Math.pow` takes its place.
  presets: [[env, { targets: { ie: "11" }, modules: false, exclude: ["transform-exponentiation-operator"] }]],
});

const work = mkdtempSync(join(tmpdir(), "tidegate-hermes-"));
const file = join(work, "bundle.js");
writeFileSync(file, code);
const binary = join(dirname(createRequire(import.meta.url).resolve("hermes-engine-cli/package.json")), SYSTEMS[process.platform]);
chmodSync(binary, 0o755);
const { stdout, stderr, status } = spawnSync(binary, ["-w", file], { encoding: "utf8" });
rmSync(work, { recursive: true });
process.stdout.write(stdout);
process.stderr.write(stderr);
// Hermes ends well also when a promise was rejected, so the last line decides.
process.exit(status === 0 && stdout.trimEnd().endsWith("\nall is well") ? 0 : 1);
