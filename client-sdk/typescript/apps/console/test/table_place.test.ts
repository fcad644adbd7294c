// Places in a table, as an address keeps them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, routeOf } from "../src/route.js";
import { paramsOf, placeIn, startAfter, startColumns, type TablePlace } from "../src/table_place.js";

const column = (name: string, key: number | null) => ({ name, type: "int8", nullable: false, key });
const columns = [column("b", 2), column("n", null), column("a", 1)];
const read = (place: TablePlace): TablePlace => placeIn(routeOf(hashOf("tables", "t", paramsOf(place))).params, columns);

test("a place is read as it was written", () => {
  const places: TablePlace[] = [
    { order: undefined, starts: [] },
    { order: undefined, starts: [[1, "x & y"], [9007199254740993n, null]] },
    { order: ["n", "desc"], starts: [[0.5, 1, "x"]] },
    { order: ["a", "asc"], starts: [[1, 2]] },
  ];
  for (const place of places) assert.deepEqual(read(place), place);
  assert.equal(hashOf("tables", "t", paramsOf(places[0]!)), "#/tables/t", "nothing where nothing was chosen");
});

test("a page begins after a row's place in the order", () => {
  assert.deepEqual(startColumns({ order: ["n", "asc"] }, columns), ["n", "a", "b"]);
  assert.deepEqual(startAfter({ a: 1, b: 2, n: NaN }, ["n", "a", "b"]), ["NaN", 1, 2]);
});

test("what does not fit the table counts for nothing", () => {
  const none = { order: undefined, starts: [] };
  for (const query of ["order=gone&desc=", "after=[[1]]", "after=[1]", "after={}", "after=[["]) {
    assert.deepEqual(placeIn(new URLSearchParams(query), columns), none, query);
  }
  assert.deepEqual(placeIn(new URLSearchParams("order=n&after=[[1,2]]"), columns), { order: ["n", "asc"], starts: [] });
});
