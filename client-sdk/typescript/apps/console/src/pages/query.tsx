// One named query: its text, its rows live, and how it is maintained.

import { remote } from "@tidegate/client";
import { useMemo, useState, type ReactNode } from "react";
import { NotFound, type NamedQuery } from "../api.js";
import { Arguments } from "../arguments.js";
import { count, time } from "../format.js";
import { useLive, type Row } from "../live.js";
import { Page, Plan, Problem, Tabs } from "../parts.js";
import { usePolled } from "../poll.js";
import { hashOf } from "../route.js";
import { LiveLine, RowsTable } from "../rows_table.js";
import { pretty, stringified, textsOf, valuesOf } from "../values.js";
import { State } from "./queries.js";

export function QueryPage({ name }: { readonly name: string }): ReactNode {
  const { answer, error } = usePolled<NamedQuery>(`/v1/queries/${encodeURIComponent(name)}`);
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const aside = (
    <p className="facts">
      {answer && <a href={hashOf("playground", undefined, { q: textOf(answer), ...argumentsOf(typed, answer) })}>Open in the playground</a>}
      <a href={hashOf("queries")}>All queries</a>
    </p>
  );
  return (
    <Page title={name} aside={aside}>
      {error instanceof NotFound ? (
        <div className="empty"><p>There is no query of this name. See <a href={hashOf("queries")}>all queries</a>.</p></div>
      ) : (
        error && <Problem error={error} />
      )}
      {answer ? <One query={answer} typed={typed} setTyped={setTyped} /> : !error && <p className="empty" role="status">Asking the server…</p>}
    </Page>
  );
}

const textOf = (query: NamedQuery): string => query.sql ?? pretty(query.query);

/** The playground knows no declared types, so that values go there as what they are. */
function argumentsOf(typed: Readonly<Record<string, string>>, { args }: NamedQuery): { readonly a?: string } {
  const texts = textsOf(valuesOf(typed, args));
  return Object.keys(texts).length > 0 ? { a: JSON.stringify(texts) } : {};
}

interface OneProps {
  readonly query: NamedQuery;
  /** The texts of its parameters. */
  readonly typed: Readonly<Record<string, string>>;
  readonly setTyped: (typed: Readonly<Record<string, string>>) => void;
}

function One({ query, typed, setTyped }: OneProps): ReactNode {
  const names = Object.keys(query.args);
  // What was typed when it was last asked for.
  const [values, setValues] = useState<Readonly<Record<string, unknown>> | undefined>(names.length === 0 ? {} : undefined);
  const [tab, setTab] = useState<"rows" | "plan">("rows");
  return (
    <>
      <dl className="tiles small">
        <div><dt>Rows</dt><dd className="value">{count(query.rows)}</dd></div>
        <div><dt>Bindings</dt><dd className="value">{count(query.bindings)}</dd></div>
        <div><dt>Subscribers</dt><dd className="value">{count(query.subscribers)}</dd></div>
        <div><dt>Last advance</dt><dd className="value">{query.last_advance_us > 0 ? time(query.last_advance_us / 1e6) : "–"}</dd></div>
        <div><dt>State</dt><dd className="value"><State query={query} /></dd></div>
      </dl>
      {query.fault !== null && <div className="problem" role="alert"><p>{query.fault}</p></div>}
      <pre className="definition">{textOf(query)}</pre>
      {names.length > 0 && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setValues(valuesOf(typed, query.args));
          }}
        >
          <Arguments names={names} types={query.args} texts={typed} change={setTyped}>
            <button type="submit" className="primary">Show</button>
          </Arguments>
        </form>
      )}
      <Tabs label="Show" tabs={{ rows: "Rows", plan: "Plan" }} chosen={tab} choose={setTab}>
        {values === undefined ? (
          <div className="empty"><p>Give every parameter a value, then press Show to see what the query answers.</p></div>
        ) : tab === "rows" ? (
          <Rows name={query.name} args={values} />
        ) : (
          <Explained name={query.name} args={values} />
        )}
      </Tabs>
    </>
  );
}

interface Props {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

function Rows({ name, args }: Props): ReactNode {
  const query = useMemo(() => remote<Row>({ name, args }), [name, args]);
  const live = useLive(query);
  return (
    <>
      <LiveLine live={live} />
      {live.error && <Problem error={live.error} />}
      <RowsTable live={live} label={`Rows of ${name}`} empty={<p>No row answers the query now. They show here as soon as some do.</p>} />
    </>
  );
}

function Explained({ name, args }: Props): ReactNode {
  const given = encodeURIComponent(stringified(args));
  const { answer, error } = usePolled<{ plan: readonly string[] }>(`/v1/queries/${encodeURIComponent(name)}/explain?args=${given}&analyze=true`);
  return (
    <>
      {error && <Problem error={error} />}
      {answer ? <Plan lines={answer.plan} label="How the query is maintained" /> : !error && <p className="empty" role="status">Asking the server…</p>}
    </>
  );
}
