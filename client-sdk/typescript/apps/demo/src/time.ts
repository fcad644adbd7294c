// Times. The recording's are local times marked UTC, and are shown as they stand.

import { useLive } from "./pulse.js";
import { newestTimes } from "./queries.js";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** The recording publishes a flight so long before its scheduled hour. */
const PUBLISHED_AHEAD_MS = 12 * HOUR_MS;

export const clockTime = (time: string | number): string => new Date(time).toISOString().slice(11, 16);
const dayOf = (time: string | number): string => new Date(time).toISOString().slice(0, 10);

const formatDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const formatWeekday = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", timeZone: "UTC" });
const formatDate = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
export const dateText = (time: number): string => formatDate.format(time);
export const weekdayText = (time: number): string => formatWeekday.format(time);

/** The day of a time, where it is not today's. */
export const otherDay = (time: string, now: number | null): string =>
  now === null || dayOf(time) === dayOf(now) ? "" : formatDay.format(Date.parse(time));

/** `75` as `1 h 15`. */
export function minutesText(n: number): string {
  const [hours, minutes] = [Math.floor(n / 60), n % 60];
  return hours === 0 ? `${minutes} min` : `${hours} h ${String(minutes).padStart(2, "0")}`;
}

/** The newest time that the recording has reached, in milliseconds; null before there is any. */
export function useReplayTime(): number | null {
  const [newest] = useLive(newestTimes).rows;
  if (!newest) return null;
  const { departed, arrived, cancelled, published } = newest;
  // A flight is cancelled at its scheduled minute.
  const times = [departed, arrived, cancelled].flatMap((time) => (time === null ? [] : [Date.parse(time)]));
  if (published !== null) times.push(Math.floor(Date.parse(published) / HOUR_MS) * HOUR_MS - PUBLISHED_AHEAD_MS);
  return times.length > 0 ? Math.max(...times) : null;
}
