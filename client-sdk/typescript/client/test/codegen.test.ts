// The schema that is made from a server's tables and views: it compiles, and describes them.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { generate } from "../src/codegen/generate.js";
import { classTable, flightNotes, noted } from "./support/generated.js";
import { startServer } from "./support/server.js";

const main = fileURLToPath(new URL("../src/codegen/main.js", import.meta.url));
const run = (...args: string[]) => promisify(execFile)(process.execPath, [main, ...args]);
const failing = (...args: string[]) => run(...args).then(() => assert.fail("it succeeded"), (error: { code: number; stderr: string }) => error);

test("a schema is made from the tables and views of a server", async () => {
  const server = await startServer();
  try {
    await server.sql(`create table flight_notes (id uuid primary key, "two words" text not null default 'a "quoted" one', amount numeric,
        price numeric(10, 2) not null default 9.9, "__proto__" text,
        ratio double precision default 0.5, day date, meta json, open bool not null default true);
      create table class (a bigint, b text, primary key (b, a))`);
    await server.sql("create materialized view noted as select day, count(*) as n from flight_notes group by day");
    await server.sql("create materialized view days as select day from flight_notes");
    const { stdout } = await run(server.url, "--module", "../../src/index.js");
    // This file is compiled with the tests, so that the types are checked too.
    assert.equal(stdout, readFileSync(new URL("../../test/support/generated.ts", import.meta.url), "utf8"));
    assert.deepEqual(classTable.key, ["b", "a"]);
    assert.deepEqual([noted.key, noted.columns.day.type, noted.columns.n.type], [["day"], "date", "int8"]);
    assert.doesNotMatch(stdout, /export const days/);
    assert.ok(Object.hasOwn(flightNotes.columns, "__proto__"));
    assert.equal(flightNotes.columns["two words"].defaultValue, 'a "quoted" one');
  } finally {
    await server.stop();
  }
});

test("names that TypeScript has for itself are avoided, and none is given twice", () => {
  const key = [{ name: "id", type: "int8", nullable: false, default: null, key: 1 }];
  const source = generate(["delete", "table", "a_b", "aB", "2x", "-"].map((name) => ({ name, view: false, columns: key })), "m");
  assert.deepEqual([...source.matchAll(/export const (\S+) =/g)].map(([, name]) => name), ["deleteTable", "tableTable", "aB", "aB_", "t2xTable", "Table"]);
});

test("wrong usage, a server that is not there and one of another kind are told", async () => {
  const unused = await failing();
  assert.deepEqual([unused.code, /give one URL/.test(unused.stderr)], [2, true]);
  const nobody = await failing("http://127.0.0.1:1");
  assert.equal(nobody.code, 1);
  assert.match(nobody.stderr, /^tidegate-codegen: http:\/\/127\.0\.0\.1:1: .+\n$/);
  for (const body of ["<!doctype html>", '{"error":"not found"}', "null"]) {
    const other = createServer((_, answer) => answer.writeHead(404).end(body)).listen(0, "127.0.0.1");
    try {
      await once(other, "listening");
      const { code, stderr } = await failing(`http://127.0.0.1:${(other.address() as AddressInfo).port}`);
      assert.equal(code, 1);
      assert.match(stderr, /: no Tidegate server answers here: POST http:.*\/v1\/sql gave 404 Not Found\n$/);
    } finally {
      other.close();
    }
  }
});

test("a file that cannot be written is named", async () => {
  const server = await startServer();
  try {
    const { code, stderr } = await failing(server.url, "--out", "no/such/folder/schema.ts");
    assert.equal(code, 1);
    assert.match(stderr, /^tidegate-codegen: cannot write no\/such\/folder\/schema\.ts: ENOENT/);
  } finally {
    await server.stop();
  }
});
