// The delays of the last hours: a dot for each departure, right by its time in the timetable, up by its minutes late.
//
// Dots are placed by the time itself, and the layer that holds them is moved along with the clock: a commit renders only
// the dots that it brings.

import { memo, useId, useState, type PointerEvent } from "react";
import { useLive } from "./pulse.js";
import { DELAY_MINUTES_MIN, departures, type Departure } from "./queries.js";
import { hrefOf } from "./route.js";
import { ORIGIN_CODES, ORIGINS, type Origin } from "./schema.js";
import { StateLine } from "./state_line.js";
import { clockTime, HOUR_MS, MINUTE_MS, minutesText } from "./time.js";
import { Tip } from "./tip.js";
import { useWidth } from "./width.js";

const HOURS = 12;
const HEIGHT = 190;
const MARGIN = { top: 10, right: 20, bottom: 22, left: 58 };
/** Minutes: earlier and later ones stand at the edge. */
const EARLIEST = -20;
const LATEST = 300;
const GRID = [0, 15, 60, 120, 240];
const RADIUS = 3;
/** How near the pointer has to be to a dot, in pixels. */
const REACH = 14;
/** Times are counted from here, so that they are small numbers. */
const EPOCH_MS = Date.UTC(2013, 1, 4);

const clamp = (minutes: number): number => Math.min(LATEST, Math.max(EARLIEST, minutes));
/** By square roots, so that a few minutes differ visibly and hours have room. */
const root = (minutes: number): number => Math.sign(minutes) * Math.sqrt(Math.abs(minutes));
const yOf = (minutes: number): number => {
  const part = (root(clamp(minutes)) - root(EARLIEST)) / (root(LATEST) - root(EARLIEST));
  return HEIGHT - MARGIN.bottom - part * (HEIGHT - MARGIN.top - MARGIN.bottom);
};
const delayText = (minutes: number): string =>
  minutes === 0 ? "on time" : minutes < 0 ? `${minutesText(-minutes)} early` : `${minutesText(minutes)} late`;

export function DelaysChart({ now, picked }: { readonly now: number | null; readonly picked: Origin }) {
  const state = useLive(departures);
  const [ref, width] = useWidth<HTMLDivElement>();
  const [near, setNear] = useState<Departure | null>(null);
  const clip = useId();
  const pxPerMs = Math.max(0, width - MARGIN.left - MARGIN.right) / (HOURS * HOUR_MS);
  const start = (now ?? EPOCH_MS) - HOURS * HOUR_MS;
  const xOf = (time: number): number => MARGIN.left + (time - start) * pxPerMs;
  const shown = state.rows.filter(({ sched_dep }) => Date.parse(sched_dep) >= start);
  const late = shown.filter(({ dep_delay }) => (dep_delay ?? 0) >= DELAY_MINUTES_MIN).length;
  const firstHour = Math.ceil(start / HOUR_MS);
  const found = near && shown.find(({ id }) => id === near.id);

  const nearest = (event: PointerEvent<SVGSVGElement>): Departure | null => {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const distance = (dot: Departure): number => Math.hypot(xOf(Date.parse(dot.sched_dep)) - x, yOf(dot.dep_delay ?? 0) - y);
    // What left ahead of its time lies beyond the edge still.
    const visible = shown.filter(({ sched_dep }) => Date.parse(sched_dep) <= (now ?? Infinity));
    return visible.reduce<Departure | null>((best, dot) => (distance(dot) < (best ? distance(best) : REACH) ? dot : best), null);
  };

  return (
    <section id="delays-chart" className="card chart" aria-labelledby="delays-title">
      <div className="card-head">
        <h2 id="delays-title">Delays <small>departures of the last {HOURS} hours</small></h2>
        <ul className="legend" aria-label="Colours">
          {ORIGIN_CODES.map((origin) => <li key={origin} className={origin} title={ORIGINS[origin]}>{origin}</li>)}
        </ul>
      </div>
      <StateLine states={[state]} isEmpty={state.rows.length === 0} emptyText="No flight has left yet." />
      <div className="plot" ref={ref}>
        <svg
          width={width} height={HEIGHT} role="img" data-dots={shown.length}
          aria-label={`Of ${shown.length} departures of the last ${HOURS} hours, ${late} left ${DELAY_MINUTES_MIN} minutes late or more.`}
          onPointerMove={(event) => setNear(nearest(event))}
          onPointerLeave={() => setNear(null)}
          onClick={() => found && (location.hash = hrefOf({ origin: picked, flight: found.id }))}
          data-near={found ? true : undefined}
        >
          {GRID.map((minutes) => (
            <g key={minutes} className={minutes === 0 ? "grid on-time" : "grid"}>
              <line x1={MARGIN.left} x2={width - MARGIN.right} y1={yOf(minutes)} y2={yOf(minutes)} />
              <text x={MARGIN.left - 8} y={yOf(minutes) + 4} textAnchor="end">
                {minutes === 0 ? "on time" : minutes < 60 ? `+${minutes} min` : `+${minutes / 60} h`}
              </text>
            </g>
          ))}
          {now !== null && Array.from({ length: HOURS + 1 }, (_, i) => (firstHour + i) * HOUR_MS).filter((hour) => hour <= now && (hour / HOUR_MS) % 2 === 0).map((hour) => (
            <text key={hour} className="tick" x={xOf(hour)} y={HEIGHT - 5} textAnchor="middle">{clockTime(hour)}</text>
          ))}
          <clipPath id={clip}>
            <rect x={MARGIN.left - RADIUS} width={Math.max(0, width - MARGIN.left - MARGIN.right) + 2 * RADIUS} height={HEIGHT} />
          </clipPath>
          <g clipPath={`url(#${clip})`}>
            <g transform={`translate(${xOf(EPOCH_MS)} 0)`}>
              {shown.map((departure) => <Dot key={departure.id} departure={departure} pxPerMs={pxPerMs} isFaint={departure.origin !== picked} />)}
            </g>
          </g>
          {found && <circle className={`ring ${found.origin}`} cx={xOf(Date.parse(found.sched_dep))} cy={yOf(found.dep_delay ?? 0)} r="6" />}
        </svg>
        {found && (
          <Tip x={xOf(Date.parse(found.sched_dep))} y={yOf(found.dep_delay ?? 0)} width={width}>
            <b>{found.carrier} {found.flight}</b> {found.origin}–{found.dest}<br />
            due {clockTime(found.sched_dep)}, {delayText(found.dep_delay ?? 0)}
          </Tip>
        )}
      </div>
    </section>
  );
}

interface DotProps {
  readonly departure: Departure;
  readonly pxPerMs: number;
  readonly isFaint: boolean;
}

const Dot = memo(function Dot({ departure: { id, origin, sched_dep, dep_delay }, pxPerMs, isFaint }: DotProps) {
  // Several flights may leave at one minute: a little to the side, by the flight, so that both show.
  const aside = ((id % 5) - 2) * 0.15 * MINUTE_MS;
  const x = (Date.parse(sched_dep) - EPOCH_MS + aside) * pxPerMs;
  return <circle className={isFaint ? `dot faint ${origin}` : `dot ${origin}`} cx={x.toFixed(1)} cy={yOf(dep_delay ?? 0).toFixed(1)} r={RADIUS} />;
});
