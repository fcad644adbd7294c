// How many flights there are, by status and airport. The server counts; the total of all is counted by another query,
// which agrees because both stand at one commit.

import { useLive } from "./pulse.js";
import { countOfAll, countsByStatus } from "./queries.js";
import { ORIGIN_CODES, STATUSES, type Origin, type Status } from "./schema.js";
import { StateLine } from "./state_line.js";

export function Counts() {
  const groups = useLive(countsByStatus);
  const all = useLive(countOfAll);
  const total = all.rows[0]?.n ?? 0;
  const count = (origin?: Origin, status?: Status): number =>
    groups.rows
      .filter((group) => (!origin || group.origin === origin) && (!status || group.status === status))
      .reduce((sum, { n }) => sum + n, 0);
  const columns = [...ORIGIN_CODES.map((origin) => ({ head: origin, origin })), { head: "All", origin: undefined }];
  return (
    <section id="counts" className="card" aria-labelledby="counts-title">
      <h2 id="counts-title">Flights by status</h2>
      <StateLine states={[groups, all]} isEmpty={total === 0} emptyText="No flights are in the tables yet." />
      <table className="counts" aria-labelledby="counts-title" hidden={total === 0} data-rows={total}>
        <thead>
          <tr>
            <th scope="col">Status</th>
            {columns.map(({ head, origin }) => (
              <th key={head} scope="col">
                {head}
                <span className="bar" aria-hidden="true">
                  {STATUSES.map((status) => <i key={status} className={status} style={{ flexGrow: count(origin, status) }} />)}
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {STATUSES.map((status) => (
            <tr key={status} className={status}>
              <th scope="row" className={status}>{status[0]!.toUpperCase() + status.slice(1)}</th>
              {columns.map(({ head, origin }) => (
                <td key={head} data-count={origin ? undefined : status}>{count(origin, status).toLocaleString("en")}</td>
              ))}
            </tr>
          ))}
          <tr className="total">
            <th scope="row" className="total">Total</th>
            {columns.map(({ head, origin }) => <td key={head}>{(origin ? count(origin) : total).toLocaleString("en")}</td>)}
          </tr>
        </tbody>
      </table>
    </section>
  );
}
