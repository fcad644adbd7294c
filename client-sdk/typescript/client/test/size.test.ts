// What an application downloads: everything but the storage, the check of the schema and the own backend, minified and compressed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import * as offered from "../src/index.js";

const CORE_BYTES_MAX = 20_000;

/** The compressed size of a bundle of these exports. */
async function sizeOf(names: readonly string[]): Promise<number> {
  const { outputFiles } = await build({
    stdin: {
      contents: `export { ${names.join(", ")} } from "./index.js";`,
      resolveDir: fileURLToPath(new URL("../src", import.meta.url)),
    },
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    write: false,
  });
  return gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
}

test("the core stays small", async (t) => {
  const all = Object.keys(offered);
  const core = await sizeOf(all.filter((name) => !["indexedDbStorage", "schemaCheck", "ownBackend"].includes(name)));
  t.diagnostic(`core ${core} bytes, with these ${await sizeOf(all)} bytes`);
  assert.ok(core <= CORE_BYTES_MAX, `${core} bytes, at most ${CORE_BYTES_MAX}`);
});
