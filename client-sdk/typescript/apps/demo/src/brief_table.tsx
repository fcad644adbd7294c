// A narrow table of flights.

import type { ReactNode } from "react";
import { memo } from "react";
import { useFlash } from "./flash.js";
import type { StatusText } from "./flight_status.js";
import type { BriefFlight } from "./queries.js";
import { hrefOf } from "./route.js";
import type { Origin } from "./schema.js";
import { clockTime, otherDay } from "./time.js";

interface Props {
  readonly labelledBy: string;
  readonly heads: { readonly time: string; readonly dest: string; readonly status?: string };
  readonly flights: readonly BriefFlight[];
  readonly time: "dep_time" | "sched_dep";
  readonly now: number | null;
  /** The airport whose board stays when a flight is opened. */
  readonly picked: Origin;
  /** Whether the airport that a flight leaves from is told. */
  readonly route: boolean;
  readonly status?: (flight: BriefFlight) => StatusText;
}

export function BriefTable({ labelledBy, heads, flights, time, now, picked, route, status }: Props): ReactNode {
  if (flights.length === 0) return null;
  return (
    <table className="flights brief" aria-labelledby={labelledBy}>
      <thead>
        <tr>
          <th scope="col" className="time">{heads.time}</th>
          <th scope="col" className="flight">Flight</th>
          <th scope="col" className="dest">{heads.dest}</th>
          {heads.status && <th scope="col" className="status">{heads.status}</th>}
        </tr>
      </thead>
      <tbody>
        {flights.map((flight) => {
          const at = flight[time] ?? flight.sched_dep;
          const said = status?.(flight);
          return (
            <BriefRow
              key={flight.id} flight={flight} at={at} day={otherDay(at, now)} picked={picked} route={route}
              kind={said?.kind} word={said?.word}
            />
          );
        })}
      </tbody>
    </table>
  );
}

interface RowProps extends Pick<Props, "picked" | "route"> {
  readonly flight: BriefFlight;
  readonly at: string;
  readonly day: string;
  readonly kind: StatusText["kind"] | undefined;
  readonly word: string | undefined;
}

const BriefRow = memo(function BriefRow({ flight, at, day, picked, route, kind, word }: RowProps) {
  const { id, carrier, origin, dest, to, status } = flight;
  const flash = useFlash([status, flight.dep_time, flight.arr_time, flight.dep_delay].join(), false);
  const href = hrefOf({ origin: picked, flight: id });
  return (
    <tr data-id={id} data-origin={origin} data-status={status} data-flash={flash} onClick={() => (location.hash = href)}>
      <td className="time"><span>{clockTime(at)}</span> <span className="more">{day}</span></td>
      <th scope="row" className="flight"><a href={href} onClick={(event) => event.stopPropagation()}>{carrier} {flight.flight}</a></th>
      <td className="dest"><span className="code">{route ? `${origin}–${dest}` : dest}</span> <span className="more">{to?.name}</span></td>
      {word !== undefined && <td className="status" data-kind={kind}><span className="chip">{word}</span></td>}
    </tr>
  );
});
