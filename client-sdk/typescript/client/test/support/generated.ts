// Made by tidegate-codegen from a server's tables; make it anew when they change.

import { bool, date, float8, int8, json, numeric, table, text, uuid } from "../../src/index.js";

export const classTable = table(
  "class",
  {
    a: int8(),
    b: text(),
  },
  { key: ["b", "a"] },
);

export const flightNotes = table(
  "flight_notes",
  {
    id: uuid(),
    "two words": text().default("a \"quoted\" one"),
    amount: numeric().orNull(),
    ratio: float8().orNull().default(0.5),
    day: date().orNull(),
    meta: json().orNull(),
    open: bool().default(true),
  },
  { key: ["id"] },
);
