// A list of the latest flights to which something happened.

import type { Query } from "@tidegate/client";
import { BriefTable } from "./brief_table.js";
import { lateKind } from "./flight_status.js";
import { useLive } from "./pulse.js";
import type { BriefFlight } from "./queries.js";
import type { Origin } from "./schema.js";
import { StateLine } from "./state_line.js";
import { minutesText } from "./time.js";

interface Props {
  readonly id: string;
  readonly title: string;
  readonly hint?: string;
  readonly query: Query<BriefFlight>;
  readonly time: "dep_time" | "sched_dep";
  readonly now: number | null;
  readonly picked: Origin;
  readonly emptyText: string;
}

export function Feed({ id, title, hint, query, time, now, picked, emptyText }: Props) {
  const state = useLive(query);
  const hasLeft = time === "dep_time";
  const delay = ({ dep_delay }: BriefFlight) => ({ kind: lateKind(dep_delay ?? 0), word: `+${minutesText(dep_delay ?? 0)}`, more: "" });
  return (
    <section id={id} className="card" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title} {hint && <small>{hint}</small>}</h2>
      <StateLine states={[state]} isEmpty={state.rows.length === 0} emptyText={emptyText} />
      <BriefTable
        labelledBy={`${id}-title`} flights={state.rows} time={time} now={now} picked={picked} route
        heads={hasLeft ? { time: "Left at", dest: "Route", status: "Delay" } : { time: "Time", dest: "Route" }}
        {...(hasLeft && { status: delay })}
      />
    </section>
  );
}
