// The tables of the demo: those of the recorded week, and the visitors' notes.

import { float8, int8, table, text, timestamptz, uuid, type RowOf } from "@tidegate/client";

export const airlines = table("airlines", { carrier: text(), name: text() }, { key: ["carrier"] });
export const airports = table("airports", { faa: text(), name: text() }, { key: ["faa"] });
export const planes = table(
  "planes",
  { tailnum: text(), year: int8().orNull(), manufacturer: text().orNull(), model: text().orNull() },
  { key: ["tailnum"] },
);

/** An hour's weather at an airport. */
export const weather = table(
  "weather",
  {
    origin: text<Origin>(), hour: timestamptz(), temp: float8().orNull(), wind_speed: float8().orNull(),
    precip: float8().orNull(), visib: float8().orNull(),
  },
  { key: ["origin", "hour"] },
);

export const flights = table(
  "flights",
  {
    id: int8(), carrier: text(), flight: int8(), tailnum: text().orNull(), origin: text<Origin>(), dest: text(),
    sched_dep: timestamptz(), dep_time: timestamptz().orNull(), arr_time: timestamptz().orNull(), dep_delay: int8().orNull(),
    status: text<Status>(),
  },
  { key: ["id"] },
);

/** What visitors write. `visitor` tells who may change a note; the demo has no accounts, so this is no protection. */
export const notes = table(
  "notes",
  { id: uuid(), flight_id: int8(), visitor: uuid(), author: text(), body: text(), at: timestamptz() },
  { key: ["id"] },
);

/** What the server's rules allow. */
export const AUTHOR_LENGTH_MAX = 40;
export const BODY_LENGTH_MAX = 280;

export type Note = RowOf<typeof notes>;

/** The airports that the recording tells of. */
export const ORIGINS = { EWR: "Newark", JFK: "Kennedy", LGA: "LaGuardia" } as const;
export type Origin = keyof typeof ORIGINS;
export const ORIGIN_CODES = Object.keys(ORIGINS) as Origin[];

/** The stations of a flight's life. */
export const STATUSES = ["scheduled", "departed", "arrived", "cancelled"] as const;
export type Status = (typeof STATUSES)[number];
