// One of the three airports side by side: its weather and next departures in brief.

import { BriefTable } from "./brief_table.js";
import { briefStatusOf, lateBy } from "./flight_status.js";
import { useLive } from "./pulse.js";
import { nextInBrief } from "./queries.js";
import { ORIGINS, type Origin } from "./schema.js";
import { StateLine } from "./state_line.js";
import { useWeatherText } from "./weather_text.js";

export function AirportCard({ origin, now }: { readonly origin: Origin; readonly now: number | null }) {
  const state = useLive(nextInBrief(origin));
  const title = `title-${origin}`;
  return (
    <section className="card airport" data-airport={origin} aria-labelledby={title}>
      <div className="card-head">
        <h2 id={title}>{ORIGINS[origin]} <small>{origin}</small></h2>
        <p className="weather">{useWeatherText(origin, "short")}</p>
      </div>
      <StateLine states={[state]} isEmpty={state.rows.length === 0} emptyText="No departure is planned at this moment." />
      <BriefTable
        labelledBy={title} heads={{ time: "Time", dest: "To", status: "Status" }} flights={state.rows} time="sched_dep" now={now}
        picked={origin} route={false} status={(flight) => briefStatusOf(flight, lateBy(flight, now))}
      />
    </section>
  );
}
