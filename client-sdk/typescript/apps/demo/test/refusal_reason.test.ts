// Refusals in words for visitors; the messages are the server's.

import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonOf } from "../src/refusal_reason.js";

const AT = 'ops[0]: table notes, key {"id":"00000000-0000-4000-8000-000000000003"}';
const check = (name: string) => ({ code: "conflict", message: `${AT}: the row makes check constraint ${name} false` });

test("each rule of the table has words of its own", () => {
  assert.equal(reasonOf("addNote", check("note_has_1_to_280_characters")), "A note needs 1 to 280 characters.");
  assert.equal(reasonOf("editNote", check("author_has_1_to_40_characters")), "A name needs 1 to 40 characters.");
});

test("so have the other refusals that visitors can meet", () => {
  const reason = (mutation: "addNote" | "deleteNote", code: string, message: string) => reasonOf(mutation, { code, message: `${AT}${message}` });
  assert.equal(reason("addNote", "conflict", ": a row with this key exists already"), "It is there already.");
  assert.equal(reason("deleteNote", "conflict", ": no row has this key"), "The note is not there any more.");
  assert.equal(reason("addNote", "type_mismatch", ", column body: expected text without a NUL character, found \"a\\u0000b\""), "It holds a character that the server cannot keep.");
  for (const code of ["message_too_large", "read_only", "not_ready", "forbidden"]) assert.doesNotMatch(reason("addNote", code, ""), /table notes/);
});

test("any other refusal is said in the server's words", () => {
  assert.equal(reasonOf("addNote", { code: "internal", message: "the log is full" }), "The server does not take it: the log is full (internal).");
});
