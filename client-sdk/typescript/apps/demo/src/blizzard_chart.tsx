// What became of each hour's flights: flown, cancelled, or still to come. On the Friday of the recorded week a blizzard
// comes, and cancels nearly everything. The server counts, in SQL.

import { memo, useState, type PointerEvent } from "react";
import { useLive } from "./pulse.js";
import { hours as hoursQuery, type Hour } from "./queries.js";
import { StateLine } from "./state_line.js";
import { clockTime, HOUR_MS, weekdayText } from "./time.js";
import { Tip } from "./tip.js";
import { useWidth } from "./width.js";

const HEIGHT = 190;
const MARGIN = { top: 10, right: 8, bottom: 22, left: 30 };
/** The least height of the axis, in flights, so that quiet hours look quiet. */
const TOP_MIN = 80;
const PLOT = HEIGHT - MARGIN.top - MARGIN.bottom;
const SEGMENTS = ["cancelled", "flown", "coming"] as const;
const NAMES = { cancelled: "cancelled", flown: "flown", coming: "to come" };

export function BlizzardChart({ now }: { readonly now: number | null }) {
  const state = useLive(hoursQuery);
  const [ref, width] = useWidth<HTMLDivElement>();
  const [near, setNear] = useState<string | null>(null);
  const { rows } = state;
  const [first, last] = [Date.parse(rows[0]?.hour ?? ""), Date.parse(rows.at(-1)?.hour ?? "")];
  const slots = rows.length === 0 ? 1 : (last - first) / HOUR_MS + 1;
  const slotWidth = Math.max(0, width - MARGIN.left - MARGIN.right) / slots;
  const top = Math.max(TOP_MIN, ...rows.map(({ cancelled, flown, coming }) => cancelled + flown + coming));
  const xOf = (time: number): number => MARGIN.left + ((time - first) / HOUR_MS) * slotWidth;
  const yOf = (n: number): number => MARGIN.top + PLOT - (n / top) * PLOT;
  const sum = (segment: (typeof SEGMENTS)[number]): number => rows.reduce((n, hour) => n + hour[segment], 0);
  const found = rows.find(({ hour }) => hour === near);
  const days = rows.filter(({ hour }, i) => i === 0 || hour.slice(0, 10) !== rows[i - 1]!.hour.slice(0, 10));

  const at = (event: PointerEvent<SVGSVGElement>): string | null => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    const time = first + Math.floor((x - MARGIN.left) / slotWidth) * HOUR_MS;
    return rows.find(({ hour }) => Date.parse(hour) === time)?.hour ?? null;
  };

  return (
    <section id="blizzard-chart" className="card chart" aria-labelledby="blizzard-title">
      <div className="card-head">
        <h2 id="blizzard-title">Cancellations <small>flights per hour</small></h2>
        <ul className="legend" aria-label="Colours">
          {SEGMENTS.map((segment) => <li key={segment} className={segment}>{NAMES[segment]}</li>)}
        </ul>
      </div>
      <StateLine states={[state]} isEmpty={rows.length === 0} emptyText="No flights are in the tables yet." />
      <div className="plot" ref={ref}>
        <svg
          width={width} height={HEIGHT} role="img" data-hours={rows.length}
          aria-label={`Of the flights in the tables, ${sum("flown")} have flown, ${sum("cancelled")} were cancelled and ${sum("coming")} are to come.`}
          onPointerMove={(event) => setNear(at(event))}
          onPointerLeave={() => setNear(null)}
        >
          {[0, top / 2, top].map((n) => (
            <g key={n} className="grid">
              <line x1={MARGIN.left} x2={width - MARGIN.right} y1={yOf(n)} y2={yOf(n)} />
              <text x={MARGIN.left - 6} y={yOf(n) + 4} textAnchor="end">{Math.round(n)}</text>
            </g>
          ))}
          {days.map(({ hour }, i) => {
            const [x, end] = [xOf(Date.parse(hour)), i + 1 < days.length ? xOf(Date.parse(days[i + 1]!.hour)) : width];
            // A day of which only the last hours are left has no room for its name.
            return end - x > 40 && <text key={hour} className="tick" x={x} y={HEIGHT - 5}>{weekdayText(Date.parse(hour))}</text>;
          })}
          {rows.map((hour) => <Bar key={hour.hour} hour={hour} x={xOf(Date.parse(hour.hour))} width={slotWidth} scale={PLOT / top} />)}
          {now !== null && rows.length > 0 && (
            <g className="now">
              <line x1={xOf(now)} x2={xOf(now)} y1={MARGIN.top - 6} y2={MARGIN.top + PLOT} />
            </g>
          )}
        </svg>
        {found && (
          <Tip x={xOf(Date.parse(found.hour)) + slotWidth / 2} y={MARGIN.top + 24} width={width}>
            <b>{weekdayText(Date.parse(found.hour))}, {clockTime(found.hour)}</b><br />
            {SEGMENTS.filter((segment) => found[segment] > 0).map((segment) => `${found[segment]} ${NAMES[segment]}`).join(", ")}
          </Tip>
        )}
      </div>
    </section>
  );
}

interface BarProps {
  readonly hour: Hour;
  readonly x: number;
  readonly width: number;
  /** Pixels per flight. */
  readonly scale: number;
}

const Bar = memo(function Bar({ hour, x, width, scale }: BarProps) {
  let y = MARGIN.top + PLOT;
  return (
    <g data-hour={hour.hour}>
      {SEGMENTS.map((segment) => {
        const height = hour[segment] * scale;
        y -= height;
        return <rect key={segment} className={segment} x={x + 0.75} y={y} width={Math.max(1, width - 1.5)} height={height} data-n={hour[segment]} />;
      })}
    </g>
  );
});
