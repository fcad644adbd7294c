// Bundles the pages that the server shows into server/assets: `node apps/build.mjs [--check] [page…]`, all by default.
//
// The bundles are committed, so that building the server takes no Node. `--check` writes nothing and fails when a bundle
// is not what its sources give.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const PAGES = ["console", "demo"];
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const check = process.argv.includes("--check");
const named = process.argv.slice(2).filter((word) => word !== "--check");
const unknown = named.filter((page) => !PAGES.includes(page));
if (unknown.length > 0) {
  console.error(`there is no page ${unknown.join(", ")}; there are ${PAGES.join(", ")}`);
  process.exit(2);
}

async function bundle(page) {
  const assets = here(`../../../server/assets/${page}/`);
  const { outputFiles } = await build({
    entryPoints: [{ in: here(`${page}/src/main.tsx`), out: page }],
    outdir: assets,
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022"],
    jsx: "automatic",
    loader: { ".svg": "dataurl" },
    define: { "process.env.NODE_ENV": '"production"' },
    legalComments: "eof",
    write: false,
  });
  return [
    ...outputFiles.map((file) => ({ path: `${assets}${basename(file.path)}`, content: file.contents })),
    { path: `${assets}index.html`, content: await readFile(here(`${page}/src/index.html`)) },
  ];
}

let stale = 0;
for (const { path, content } of (await Promise.all((named.length > 0 ? named : PAGES).map(bundle))).flat()) {
  if (!check) {
    await writeFile(path, content);
  } else if (!(await readFile(path).catch(() => Buffer.alloc(0))).equals(content)) {
    console.error(`${path} is not what its sources give: run npm run pages in client-sdk/typescript`);
    stale += 1;
  }
}
process.exitCode = stale > 0 ? 1 : 0;
