// The picked airport's board: what has just gone, and what goes next. Each flight can be opened.

import { memo, useEffect, useState } from "react";
import type { ChangeOver } from "./change_over.js";
import { useFlash } from "./flash.js";
import { lateBy, statusOf } from "./flight_status.js";
import { GONE_ROWS, type DetailedFlight } from "./queries.js";
import { hrefOf } from "./route.js";
import { ORIGIN_CODES, ORIGINS, type Origin } from "./schema.js";
import { StateLine } from "./state_line.js";
import { clockTime, otherDay } from "./time.js";
import { useWeatherText } from "./weather_text.js";

interface Props extends ChangeOver {
  readonly picked: Origin;
  /** The open flight. */
  readonly open: number | null;
  readonly now: number | null;
}

export function Board({ board, busy, picked, open, now }: Props) {
  const { origin, next, left, dropped } = board;
  const weather = useWeatherText(origin, "long");
  // The newest of both lists: each brings as many rows as are shown.
  const goneAt = (flight: DetailedFlight): number => Date.parse(flight.dep_time ?? flight.sched_dep);
  const gone = [...left.rows, ...dropped.rows].sort((a, b) => goneAt(a) - goneAt(b)).slice(-GONE_ROWS);
  return (
    <section id="board" className="card" aria-labelledby="board-title" aria-busy={busy} data-origin={origin}>
      <div className="card-head">
        <div>
          <h2 id="board-title">Departures from {ORIGINS[origin]}</h2>
          <p className="weather">{weather || "\u00a0"}</p>
          <p className="hint">Open a flight to read and write notes on it.</p>
        </div>
        <nav id="picker" className="picker" aria-label="Airport">
          {ORIGIN_CODES.map((code) => (
            <a key={code} href={hrefOf({ origin: code, flight: null })} aria-current={code === picked || undefined} data-airport={code}>
              <b>{code}</b> <span>{ORIGINS[code]}</span>
            </a>
          ))}
        </nav>
      </div>
      <StateLine
        states={[next, left, dropped]} isEmpty={next.rows.length === 0}
        emptyText={`No departure from ${ORIGINS[origin]} is planned at this moment.`}
      />
      <table className="flights board" aria-labelledby="board-title" hidden={gone.length + next.rows.length === 0}>
        <thead>
          <tr>
            <th scope="col" className="time">Time</th>
            <th scope="col" className="flight">Flight</th>
            <th scope="col" className="dest">To</th>
            <th scope="col" className="airline">Airline</th>
            <th scope="col" className="plane">Plane</th>
            <th scope="col" className="status">Status</th>
          </tr>
        </thead>
        <Group key={`gone ${origin}`} id="board-left" title="Just gone" flights={gone} open={open} now={now} entering />
        <Group key={`next ${origin}`} id="board-next" title="Next departures" flights={next.rows} open={open} now={now} />
      </table>
    </section>
  );
}

interface GroupProps {
  readonly id: string;
  readonly title: string;
  readonly flights: readonly DetailedFlight[];
  readonly open: number | null;
  readonly now: number | null;
  /** Whether flights that come in are marked. */
  readonly entering?: boolean;
}

function Group({ id, title, flights, open, now, entering = false }: GroupProps) {
  const [begun, setBegun] = useState(false);
  useEffect(() => setBegun(true), []);
  return (
    <tbody id={id} hidden={flights.length === 0}>
      <tr className="group"><th colSpan={4} scope="rowgroup">{title}</th></tr>
      {flights.map((flight) => (
        <FlightRow
          key={flight.id} flight={flight} late={lateBy(flight, now)} day={otherDay(flight.sched_dep, now)}
          isOpen={flight.id === open} entered={entering && begun}
        />
      ))}
    </tbody>
  );
}

interface RowProps {
  readonly flight: DetailedFlight;
  readonly late: number;
  readonly day: string;
  readonly isOpen: boolean;
  readonly entered: boolean;
}

/** Rows that do not change are the same objects from commit to commit, so that only those that do are rendered. */
const FlightRow = memo(function FlightRow({ flight, late, day, isOpen, entered }: RowProps) {
  const { id, carrier, origin, dest, to, airline, plane, notes, status, sched_dep } = flight;
  // What is data; not the wording, which changes as time goes by.
  const flash = useFlash([status, sched_dep, flight.dep_time, flight.arr_time, flight.dep_delay, notes.length].join(), entered);
  const said = statusOf(flight, late);
  const href = hrefOf({ origin, flight: id });
  return (
    <tr
      data-id={id} data-origin={origin} data-status={status} data-flash={flash} data-open={isOpen || undefined}
      onClick={() => (location.hash = href)}
    >
      <td className="time"><span>{clockTime(sched_dep)}</span> <span className="more">{day}</span></td>
      <th scope="row" className="flight">
        <a href={href} onClick={(event) => event.stopPropagation()}>{carrier} {flight.flight}</a>
        <NotesMark count={notes.length} />
        <span className="more">{airline?.name ?? carrier}</span>
      </th>
      <td className="dest"><span className="code">{dest}</span> <span className="more">{to?.name}</span></td>
      <td className="airline">{airline?.name.replace(/ (Inc\.|Co\.|Corporation)$/, "") ?? carrier}</td>
      <td className="plane" title={plane?.manufacturer ?? undefined}>{plane?.model ?? "–"} <span className="more">{plane?.year}</span></td>
      <td className="status" data-kind={said.kind}><span className="chip">{said.word}</span> <span className="more">{said.more}</span></td>
    </tr>
  );
});

function NotesMark({ count }: { readonly count: number }) {
  if (count === 0) return null;
  const text = count === 1 ? "1 note" : `${count} notes`;
  return <span className="notes-mark" role="img" aria-label={text} title={text} data-notes={count}>{count}</span>;
}
