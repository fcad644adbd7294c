// Why the server refused something, in words for visitors. Its own words name tables and keys.

import type { TidegateError } from "@tidegate/client";
import type { Mutators } from "./client.js";
import { AUTHOR_LENGTH_MAX, BODY_LENGTH_MAX } from "./schema.js";

/** The rules of the table of notes, by the names that the server's words contain. */
const RULES: Readonly<Record<string, string>> = {
  note_has_1_to_280_characters: `A note needs 1 to ${BODY_LENGTH_MAX} characters.`,
  author_has_1_to_40_characters: `A name needs 1 to ${AUTHOR_LENGTH_MAX} characters.`,
};

/** Everything else, by code. */
const CODES: Readonly<Record<string, string>> = {
  type_mismatch: "It holds a character that the server cannot keep.",
  message_too_large: "It is too long to be sent.",
  read_only: "The server takes no notes now.",
  not_ready: "The server takes no notes yet; try again in a moment.",
  forbidden: "This page may not write it.",
  flight_left: "Its flight has left the tables meanwhile, and notes go with their flight.",
};

export function reasonOf(mutation: keyof Mutators, { code, message }: Pick<TidegateError, "code" | "message">): string {
  const rule = Object.keys(RULES).find((name) => message.includes(name));
  if (rule !== undefined) return RULES[rule]!;
  if (code === "conflict") return mutation === "addNote" ? "It is there already." : "The note is not there any more.";
  return CODES[code] ?? `The server does not take it: ${message} (${code}).`;
}
