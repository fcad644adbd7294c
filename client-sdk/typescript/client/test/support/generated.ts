// Made by tidegate-codegen from a server's tables and views; make it anew when they change.

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
    price: numeric().default("9.90"),
    ["__proto__"]: text().orNull(),
    ratio: float8().orNull().default(0.5),
    day: date().orNull(),
    meta: json().orNull(),
    open: bool().default(true),
  },
  { key: ["id"] },
);

/** A view: it is read like a table, and only the server writes it. */
export const noted = table(
  "noted",
  {
    day: date().orNull(),
    n: int8().orNull(),
  },
  { key: ["day"] },
);

// "days" is not here: its rows have no key, so that `from` cannot read it; a query in `sql` can.
