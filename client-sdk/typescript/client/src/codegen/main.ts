#!/usr/bin/env node
// tidegate-codegen: writes a schema in TypeScript from the tables and views of a running server.

import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { generate, type ShownColumn, type ShownTable } from "./generate.js";

const USAGE = `usage: tidegate-codegen URL [--out FILE] [--module NAME]

Writes a schema for @tidegate/client from the tables and materialized views of the server at URL.

  --out FILE     where to; without it, to standard output
  --module NAME  where the schema imports from [default: @tidegate/client]`;

/** Tables that the server keeps for itself. */
const OWN = "tidegate_";

interface Answer {
  readonly results?: readonly { readonly columns: readonly { readonly name: string }[]; readonly rows: readonly unknown[][] }[];
  readonly error?: { readonly message?: string };
}

async function show(url: URL, statement: string): Promise<Record<string, unknown>[]> {
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ sql: statement }) });
  const { results, error } = answerOf(await response.text());
  if (error?.message) throw new Error(`${statement}: ${error.message}`);
  if (!Array.isArray(results)) {
    throw new Error(`no Tidegate server answers here: POST ${url} gave ${response.status} ${response.statusText}`.trimEnd());
  }
  const { columns, rows } = results[0]!;
  return rows.map((row: unknown[]) => Object.fromEntries(columns.map(({ name }: { name: string }, index: number) => [name, row[index]])));
}

/** What a text answers; nothing, where it is not what a Tidegate server says. */
function answerOf(text: string): Answer {
  try {
    return (JSON.parse(text) as Answer | null) ?? {};
  } catch {
    return {};
  }
}

async function tablesOf(server: string): Promise<ShownTable[]> {
  const url = new URL("v1/sql", server.endsWith("/") ? server : `${server}/`);
  const tables: ShownTable[] = [];
  for (const statement of ["show tables", "show views"]) {
    const names = (await show(url, statement)).map(({ name }) => String(name)).filter((name) => !name.startsWith(OWN));
    for (const name of names) {
      const quoted = `"${name.replaceAll('"', '""')}"`;
      const columns = (await show(url, `show columns from ${quoted}`)) as unknown as ShownColumn[];
      tables.push({ name, view: statement === "show views", columns });
    }
  }
  return tables;
}

function fail(what: string, error: unknown): never {
  const { message, cause } = error as Error;
  console.error(`tidegate-codegen: ${what}: ${message}${cause instanceof Error ? ` (${cause.message})` : ""}`);
  process.exit(1);
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
  const { out, module } = usage.values;
  const source = generate(await tablesOf(url).catch((error) => fail(url, error)), module);
  if (out === undefined) process.stdout.write(source);
  else await writeFile(out, source).catch((error) => fail(`cannot write ${out}`, error));
}
