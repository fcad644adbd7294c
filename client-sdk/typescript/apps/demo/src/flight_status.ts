// What a flight's status column says.

import type { BriefFlight } from "./queries.js";
import { clockTime, MINUTE_MS, minutesText } from "./time.js";

/** A word, more about it, and how it is coloured. */
export interface StatusText {
  readonly kind: "scheduled" | "late" | "very-late" | "departed" | "arrived" | "cancelled";
  readonly word: string;
  readonly more: string;
}

type Flight = Pick<BriefFlight, "status" | "sched_dep" | "dep_time" | "dep_delay">;

/** How many minutes a flight that has not left is late already. */
export function lateBy({ status, sched_dep }: Flight, now: number | null): number {
  return status !== "scheduled" || now === null ? 0 : Math.max(0, Math.floor((now - Date.parse(sched_dep)) / MINUTE_MS));
}

export const lateKind = (minutes: number): "late" | "very-late" => (minutes >= 60 ? "very-late" : "late");

/** `late` is what `lateBy` gives. */
export function statusOf({ status, dep_time: left, dep_delay: delay }: Flight, late: number): StatusText {
  if (status === "cancelled") return { kind: status, word: "Cancelled", more: "" };
  if (status === "scheduled") {
    return late > 0
      ? { kind: lateKind(late), word: "Delayed", more: `${minutesText(late)} late` }
      : { kind: status, word: "Scheduled", more: "" };
  }
  const by = delay === null ? "" : delay === 0 ? ", on time" : `, ${delay < 0 ? "−" : "+"}${minutesText(Math.abs(delay))}`;
  return { kind: status, word: status === "arrived" ? "Arrived" : "Departed", more: left === null ? "" : clockTime(left) + by };
}

/** The same in one word, for narrow tables. */
export function briefStatusOf(flight: Flight, late: number): StatusText {
  const status = statusOf(flight, late);
  return { ...status, word: late > 0 ? status.more : status.word, more: "" };
}
