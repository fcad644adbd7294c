// The page's head: the replay's clock, the commit shown, how much changes, and how the connection stands.

import { useEffect, useState } from "react";
import type { Connection } from "./connection.js";
import { pulse, usePulse } from "./pulse.js";
import { clockTime, dateText } from "./time.js";

const SPARK_SECONDS = 60;
const WORDS = { connecting: "Connecting…", live: "Live", reconnecting: "Reconnecting…" };

export function Header({ now, connection }: { readonly now: number | null; readonly connection: Connection }) {
  const { cv } = usePulse();
  return (
    <header className="top">
      <div className="brand">
        <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
          <rect width="32" height="32" rx="7" />
          <path d="M5 12q5.5-5 11 0t11 0M5 20q5.5-5 11 0t11 0" />
        </svg>
        <div>
          <h1>Tidegate</h1>
          <p>New York departures, live</p>
        </div>
      </div>
      <p className="clock">
        <span className="label">Replay time</span>{" "}
        <time id="clock" dateTime={now === null ? "" : new Date(now).toISOString()}>
          <span id="clock-time">{now === null ? "--:--" : clockTime(now)}</span>{" "}
          <span id="clock-date">{now === null ? "" : dateText(now)}</span>
        </time>
      </p>
      <p className="stat">
        <span className="label">Commit</span> <span id="cv" className="figure">{cv === 0 ? "–" : cv.toLocaleString("en")}</span>
      </p>
      <Rate />
      <p id="status" className="pill" role="status" aria-live="polite" data-state={connection.state}>{WORDS[connection.state]}</p>
    </header>
  );
}

/** Changes per second, with those of the last minute as a line. */
function Rate() {
  const [samples, setSamples] = useState<readonly number[]>(() => new Array<number>(SPARK_SECONDS).fill(0));
  useEffect(() => {
    const timer = setInterval(() => {
      const changes = pulse.takeChanges();
      setSamples((before) => [...before.slice(1), changes]);
    }, 1_000);
    return () => clearInterval(timer);
  }, []);
  const top = Math.max(10, ...samples);
  const points = samples.map((n, i) => `${((i * 120) / (SPARK_SECONDS - 1)).toFixed(1)},${(26 - (n * 24) / top).toFixed(1)}`).join("L");
  return (
    <p className="stat rate">
      <span className="label">Changes per second</span>
      <span className="spark">
        <svg id="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true">
          <path className="area" d={`M0,28L${points}L120,28Z`} />
          <path className="line" d={`M${points}`} />
        </svg>{" "}
        <span id="rate" className="figure">{samples.at(-1)!.toLocaleString("en")}</span>
      </span>
    </p>
  );
}
