// Texts that are being written, by flight.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Drafts } from "../src/drafts.js";

test("each flight has its own texts, until they are sent or given up", () => {
  const drafts = new Drafts();
  drafts.setBody(1, "about one");
  drafts.setChange(1, "a", "");
  drafts.setChange(2, "b", "changed");
  assert.deepEqual([drafts.of(1).body, [...drafts.of(1).changes]], ["about one", [["a", ""]]]);
  assert.deepEqual([drafts.of(2).body, [...drafts.of(2).changes]], ["", [["b", "changed"]]]);
  drafts.setBody(1, "");
  assert.equal(drafts.of(1).changes.get("a"), "", "a change that is empty so far goes on");
  drafts.setChange(1, "a", null);
  assert.equal(drafts.of(1), drafts.of(3), "nothing is kept of it");
});

test("the texts are the same object until one of them changes, and listeners are told", () => {
  const drafts = new Drafts();
  let told = 0;
  const end = drafts.subscribe(() => (told += 1));
  drafts.setBody(1, "a");
  const before = drafts.of(1);
  drafts.setBody(2, "b");
  assert.equal(drafts.of(1), before);
  drafts.setChange(1, "n", "c");
  assert.notEqual(drafts.of(1), before);
  end();
  drafts.setBody(1, "d");
  assert.equal(told, 3);
});
