// What the page keeps live.

import { and, count, eq, from, gte, isIn, sql, type RowsOf } from "@tidegate/client";
import { airlines, airports, flights, notes, planes, weather, type Origin } from "./schema.js";
import { visitor } from "./visitor.js";

/** Rows that lists show at most. */
export const GONE_ROWS = 6;
export const NEXT_ROWS = 25;
const BRIEF_ROWS = 8;
const FEED_ROWS = 12;
/** Dots in the chart of delays: the departures of twelve busy hours. */
const DOTS = 800;
/** Minutes late that count as a delay. */
export const DELAY_MINUTES_MIN = 15;

/** A flight with all that the board and a flight's own page say of it: one query, nested. */
const detailed = from(flights)
  .relatedOne("to", from(airports).select("name"), { dest: "faa" })
  .relatedOne("airline", from(airlines).select("name"), { carrier: "carrier" })
  .relatedOne("plane", from(planes).select("manufacturer", "model", "year"), { tailnum: "tailnum" })
  .related("notes", from(notes).orderBy("at"), { id: "flight_id" });
export type DetailedFlight = RowsOf<typeof detailed>[number];

const brief = from(flights)
  .select("id", "carrier", "flight", "origin", "dest", "sched_dep", "dep_time", "arr_time", "dep_delay", "status")
  .relatedOne("to", from(airports).select("name"), { dest: "faa" });
export type BriefFlight = RowsOf<typeof brief>[number];

/** An airport's next departures, in the order of the timetable. */
export const next = (origin: Origin) =>
  detailed.where("origin", origin).where("status", "scheduled").orderBy("sched_dep").limit(NEXT_ROWS);
/** Those that left last. */
export const left = (origin: Origin) =>
  detailed.where("origin", origin).where((f) => isIn(f.status, ["departed", "arrived"])).orderBy("dep_time", "desc").limit(GONE_ROWS);
/** Those that were cancelled last. */
export const dropped = (origin: Origin) =>
  detailed.where("origin", origin).where("status", "cancelled").orderBy("sched_dep", "desc").limit(GONE_ROWS);

export const flight = (id: number) => detailed.where("id", id);

/** The visitor's notes as they show here. */
export const ownNotes = from(notes).where("visitor", visitor);

/**
 * The visitor's notes as the server has them, and whether their flights are there. SQL is evaluated at the server alone, so
 * no pending mutation shows here.
 */
export const confirmedNotes = sql<{ id: string; body: string; has_flight: boolean }>`
  select id, body, exists (select 1 from flights where flights.id = flight_id) as has_flight from notes where visitor = ${visitor}`;

export const nextInBrief = (origin: Origin) =>
  brief.where("origin", origin).where("status", "scheduled").orderBy("sched_dep").limit(BRIEF_ROWS);
export const latestDelays = brief
  .where((f) => and(isIn(f.status, ["departed", "arrived"]), gte(f.dep_delay, DELAY_MINUTES_MIN)))
  .orderBy("dep_time", "desc")
  .limit(FEED_ROWS);
export const latestCancellations = brief.where("status", "cancelled").orderBy("sched_dep", "desc").limit(FEED_ROWS);

export const newestWeather = (origin: Origin) => from(weather).where((w) => eq(w.origin, origin)).orderBy("hour", "desc").limit(1);
export type Weather = RowsOf<ReturnType<typeof newestWeather>>[number];

export const countsByStatus = from(flights).groupBy(["origin", "status"], { n: count() });
export const countOfAll = sql<{ n: number }>`select count(*) as n from flights`;

/** The departures that the chart of delays shows. */
export const departures = from(flights)
  .where((f) => isIn(f.status, ["departed", "arrived"]))
  .select("id", "carrier", "flight", "origin", "dest", "sched_dep", "dep_delay")
  .orderBy("dep_time", "desc")
  .limit(DOTS);
export type Departure = RowsOf<typeof departures>[number];

/** What became of the flights of each hour of the timetable. */
export const hours = sql<{ hour: string; cancelled: number; flown: number; coming: number }>`
  select date_trunc('hour', sched_dep) as hour,
         count(*) filter (where status = 'cancelled') as cancelled,
         count(*) filter (where status in ('departed', 'arrived')) as flown,
         count(*) filter (where status = 'scheduled') as coming
  from flights group by 1 order by 1`;
export type Hour = RowsOf<typeof hours>[number];

/** How far the recording has come: the newest times of each kind that it tells of. */
export const newestTimes = sql<{ departed: string | null; arrived: string | null; cancelled: string | null; published: string | null }>`
  select max(dep_time) as departed, max(arr_time) as arrived,
         max(sched_dep) filter (where status = 'cancelled') as cancelled, max(sched_dep) as published
  from flights`;
