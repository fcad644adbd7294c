// The named queries, and the shapes that clients have live.

import type { ReactNode } from "react";
import type { LiveShape, NamedQuery, Queries } from "../api.js";
import { count, time } from "../format.js";
import { usePolled } from "../poll.js";
import { Page, Plan, Problem, Scroll } from "../parts.js";
import { hashOf } from "../route.js";

export function QueriesPage(): ReactNode {
  const { answer, error } = usePolled<Queries>("/v1/queries");
  return (
    <Page title="Queries">
      {answer ? <Lists {...answer} /> : error ? <Problem error={error} /> : <p className="empty" role="status">Asking the server…</p>}
    </Page>
  );
}

function Lists({ queries, live, live_total }: Queries): ReactNode {
  const names = new Map<number, string[]>();
  for (const { name, shape } of queries) if (shape !== null) names.set(shape, [...(names.get(shape) ?? []), name]);
  return (
    <>
      <section>
        <h2>Named queries</h2>
        {queries.length === 0 ? (
          <div className="empty">
            <p>No query has a name yet. Create a materialized view, or register a query:</p>
            <pre>{`curl -X PUT ${location.origin}/v1/queries/open -d '{"sql":"select …","pin":true}'`}</pre>
          </div>
        ) : (
          <Named queries={queries} />
        )}
      </section>
      <section>
        <h2>Live shapes</h2>
        <p className="hint">What the server keeps up to date at present. Queries that differ only in their parameters share a shape.</p>
        {live.length === 0 ? (
          <div className="empty"><p>Nobody is subscribed to anything. Run a query in the <a href={hashOf("playground")}>playground</a> to see it here.</p></div>
        ) : (
          <Shapes live={live} names={names} />
        )}
        {live_total > live.length && <p className="hint">The {count(live.length)} with the most subscribers, of {count(live_total)}.</p>}
      </section>
    </>
  );
}

function Named({ queries }: { readonly queries: readonly NamedQuery[] }): ReactNode {
  return (
    <Scroll label="Named queries">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <FigureHeads />
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {queries.map((query) => (
            <tr key={query.name}>
              <th scope="row"><a href={hashOf("queries", query.name)}>{query.name}</a></th>
              <Figures {...query} />
              <td><State query={query} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Whether a named query is kept up to date, in a word. */
export function State({ query }: { readonly query: NamedQuery }): ReactNode {
  if (query.fault !== null) return <span className="badge bad" title={query.fault}>fault</span>;
  if (query.pin) return <span className="badge good">pinned</span>;
  return query.shape !== null ? <span className="badge good">live</span> : <span className="badge">idle</span>;
}

/** The heads of what {@link Figures} shows. */
function FigureHeads(): ReactNode {
  return (
    <>
      <th scope="col" className="number">Rows</th>
      <th scope="col" className="number">Bindings</th>
      <th scope="col" className="number">Subscribers</th>
      <th scope="col" className="number">Last advance</th>
    </>
  );
}

function Figures({ rows, bindings, subscribers, last_advance_us }: Pick<NamedQuery, "rows" | "bindings" | "subscribers" | "last_advance_us">): ReactNode {
  return (
    <>
      <td className="number">{count(rows)}</td>
      <td className="number">{count(bindings)}</td>
      <td className="number">{count(subscribers)}</td>
      <td className="number">{last_advance_us > 0 ? time(last_advance_us / 1e6) : "–"}</td>
    </>
  );
}

function Shapes({ live, names }: { readonly live: readonly LiveShape[]; readonly names: ReadonlyMap<number, readonly string[]> }): ReactNode {
  return (
    <Scroll label="Live shapes">
      <table>
        <thead>
          <tr>
            <th scope="col">Shape</th>
            <FigureHeads />
            <th scope="col" className="number">Worker</th>
          </tr>
        </thead>
        <tbody>
          {live.map((shape) => (
            <tr key={shape.shape}>
              <th scope="row" className="shape">
                <details>
                  <summary>{names.get(shape.shape)?.join(", ") ?? summary(shape.plan)}</summary>
                  <Plan lines={shape.plan} label="Plan" />
                </details>
              </th>
              <Figures {...shape} />
              <td className="number">{count(shape.worker)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** Longest summary of a plan, characters. */
const SUMMARY_MAX = 160;

/** A plan in short: its operators from the result down, without fingerprint, parameters, and lines that only pass rows on. */
function summary(plan: readonly string[]): string {
  const operators = plan.filter((line) => !/^(shape|parameter) /.test(line)).map((line) => line.trim().replace(/^#\d+ /, ""));
  const telling = operators.filter((line) => !/^rows of #\d+$/.test(line)).join(" ← ");
  return telling.length > SUMMARY_MAX ? `${telling.slice(0, SUMMARY_MAX)}…` : telling;
}
