// The weather in one line.

import { useLive } from "./pulse.js";
import { newestWeather, type Weather } from "./queries.js";
import type { Origin } from "./schema.js";
import { clockTime } from "./time.js";

const celsius = (fahrenheit: number): string => String(Math.round(((fahrenheit - 32) * 5) / 9)).replace("-", "−");

function textOf({ temp, wind_speed: wind, visib, precip, hour }: Weather, isLong: boolean): string {
  const parts: string[] = [];
  if (temp !== null) parts.push(`${Math.round(temp)} °F${isLong ? ` (${celsius(temp)} °C)` : ""}`);
  if (wind !== null) parts.push(`wind ${Math.round(wind)} mph`);
  if (isLong && visib !== null) parts.push(`visibility ${visib} mi`);
  if (precip !== null && precip > 0) parts.push(`${isLong ? "precipitation" : "precip."} ${precip} in`);
  else if (precip !== null && isLong) parts.push("dry");
  return parts.join(" · ") + (isLong ? ` at ${clockTime(hour)}` : "");
}

export function useWeatherText(origin: Origin, length: "long" | "short"): string {
  const [newest] = useLive(newestWeather(origin)).rows;
  return newest ? textOf(newest, length === "long") : "";
}
