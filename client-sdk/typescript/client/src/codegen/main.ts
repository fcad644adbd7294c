#!/usr/bin/env node
// tidegate-codegen: writes a schema in TypeScript from the tables of a running server.

import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { generate, type ShownColumn, type ShownTable } from "./generate.js";

const USAGE = `usage: tidegate-codegen URL [--out FILE] [--module NAME]

Writes a schema for @tidegate/client from the tables of the server at URL.

  --out FILE     where to; without it, to standard output
  --module NAME  where the schema imports from [default: @tidegate/client]`;

/** Tables that the server keeps for itself. */
const OWN = "tidegate_";

interface Answer {
  readonly results?: readonly { readonly columns: readonly { readonly name: string }[]; readonly rows: readonly unknown[][] }[];
  readonly error?: { readonly message: string };
}

async function show(url: URL, statement: string): Promise<Record<string, unknown>[]> {
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ sql: statement }) });
  const { results, error } = (await response.json()) as Answer;
  if (!results) throw new Error(`${statement}: ${error?.message ?? response.statusText}`);
  const { columns, rows } = results[0]!;
  return rows.map((row) => Object.fromEntries(columns.map(({ name }, index) => [name, row[index]])));
}

async function tablesOf(server: string): Promise<ShownTable[]> {
  const url = new URL("v1/sql", server.endsWith("/") ? server : `${server}/`);
  const names = (await show(url, "show tables")).map(({ name }) => String(name)).filter((name) => !name.startsWith(OWN));
  const tables: ShownTable[] = [];
  for (const name of names) {
    const quoted = `"${name.replaceAll('"', '""')}"`;
    const columns = (await show(url, `show columns from ${quoted}`)) as unknown as ShownColumn[];
    tables.push({ name, columns });
  }
  return tables;
}

let usage: ReturnType<typeof read>;
function read() {
  const options = { out: { type: "string" }, module: { type: "string", default: "@tidegate/client" }, help: { type: "boolean", short: "h" } } as const;
  return parseArgs({ options, allowPositionals: true });
}
try {
  usage = read();
  if (!usage.values.help && usage.positionals.length !== 1) throw new Error("give one URL");
} catch (error) {
  console.error(`tidegate-codegen: ${(error as Error).message}\n${USAGE}`);
  process.exit(2);
}
if (usage.values.help) {
  console.log(USAGE);
} else {
  const [url] = usage.positionals as [string];
  try {
    const source = generate(await tablesOf(url), usage.values.module);
    if (usage.values.out === undefined) process.stdout.write(source);
    else await writeFile(usage.values.out, source);
  } catch (error) {
    const { message, cause } = error as Error;
    console.error(`tidegate-codegen: ${url}: ${message}${cause instanceof Error ? ` (${cause.message})` : ""}`);
    process.exitCode = 1;
  }
}
