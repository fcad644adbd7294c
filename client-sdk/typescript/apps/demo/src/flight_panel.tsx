// A flight that was opened: what is known of it, and its notes. It stands beside the board, which stays in use.

import { useEffect, useRef } from "react";
import type { IsPending } from "./confirmed.js";
import { lateBy, statusOf } from "./flight_status.js";
import { KeptText } from "./kept_text.js";
import { NoteList } from "./note_list.js";
import { useLive } from "./pulse.js";
import { flight as flightQuery } from "./queries.js";
import { RefusalList } from "./refusal_list.js";
import { useRefusals } from "./refusals.js";
import { ORIGINS } from "./schema.js";
import { StateLine } from "./state_line.js";
import { clockTime, weekdayText } from "./time.js";

interface Props {
  readonly id: number;
  readonly now: number | null;
  readonly closeHref: string;
  readonly isPending: IsPending;
}

export function FlightPanel({ id, now, closeHref, isPending }: Props) {
  const state = useLive(flightQuery(id));
  const [flight] = state.rows;
  const refused = useRefusals().filter(({ flightId }) => flightId === id);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    panel.current?.focus({ preventScroll: true });
    const close = (event: KeyboardEvent): void => {
      if (event.key !== "Escape") return;
      // Whoever is writing leaves the field first, and loses nothing.
      if (event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement) panel.current?.focus();
      else location.hash = closeHref;
    };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [closeHref]);
  const said = flight && statusOf(flight, lateBy(flight, now));
  const plane = flight?.plane && [flight.plane.manufacturer, flight.plane.model, flight.plane.year].filter(Boolean).join(" ");
  return (
    <section id="flight" className="panel" role="dialog" aria-labelledby="flight-title" tabIndex={-1} ref={panel} data-flight={id}>
      <div className="panel-head">
        <h2 id="flight-title">{flight ? `${flight.carrier} ${flight.flight} to ${flight.to?.name ?? flight.dest}` : "Flight"}</h2>
        <a className="close" href={closeHref} aria-label="Close this flight" title="Close (Esc)">×</a>
      </div>
      <StateLine
        states={[state]} isEmpty={!flight}
        emptyText="This flight is not in the tables any more: flights leave them a day and a half after their time, and their notes with them. Close it and open another."
      />
      {!flight && state.status !== "connecting" && (
        <>
          <RefusalList refused={refused} />
          <KeptText flightId={id} />
        </>
      )}
      {flight && said && (
        <>
          <p className="panel-status" data-kind={said.kind}><span className="chip">{said.word}</span> <span className="more">{said.more}</span></p>
          <dl className="facts">
            <div><dt>From</dt><dd>{ORIGINS[flight.origin]} ({flight.origin})</dd></div>
            <div><dt>Due</dt><dd>{weekdayText(Date.parse(flight.sched_dep))}, {clockTime(flight.sched_dep)}</dd></div>
            <div><dt>Airline</dt><dd>{flight.airline?.name ?? flight.carrier}</dd></div>
            {plane && <div><dt>Plane</dt><dd>{plane}</dd></div>}
          </dl>
          <NoteList flightId={id} notes={flight.notes} isPending={isPending} />
        </>
      )}
    </section>
  );
}
