// A query is typed, run, and watched live. It is kept in the address, so that it can be shared.

import { remote, type QuerySource } from "@tidegate/client";
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import { planOf, Refusal, type Status } from "../api.js";
import { Arguments } from "../arguments.js";
import { useLive, type LiveRows, type Row } from "../live.js";
import { Page, Plan, Problem, sentence, Tabs } from "../parts.js";
import { isJson, lineAt, parametersOf, placeOf, sourceOf, TextFault, type Place } from "../query_text.js";
import { hashOf, replaceHash } from "../route.js";
import { LiveLine, RowsTable } from "../rows_table.js";
import { pretty, valuesOf } from "../values.js";

interface Props {
  readonly params: URLSearchParams;
  readonly status: Status | undefined;
}

/** A query that was run. */
interface Run {
  readonly text: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly source: QuerySource;
  /** Tells a run from one of the same text. */
  readonly number: number;
}

export function PlaygroundPage({ params, status }: Props): ReactNode {
  const [shared, sharedArguments] = [params.get("q") ?? "", params.get("a") ?? ""];
  const [text, setText] = useState(shared);
  const [texts, setTexts] = useState(() => argumentsOf(sharedArguments));
  const [run, setRun] = useState<Run>();
  const [fault, setFault] = useState<TextFault>();
  const [isStopped, setStopped] = useState(false);
  const [tab, setTab] = useState<"rows" | "plan">("rows");
  const editor = useRef<HTMLTextAreaElement>(null);
  const runs = useRef(0);
  const parameters = parametersOf(text);

  const start = (text: string, texts: Readonly<Record<string, string>>): void => {
    const own = Object.fromEntries(parametersOf(text).map((name) => [name, texts[name] ?? ""]));
    const args = valuesOf(own);
    runs.current += 1;
    setStopped(false);
    try {
      setRun({ text, args, source: sourceOf(text, args), number: runs.current });
      setFault(undefined);
    } catch (error) {
      setRun(undefined);
      setFault(error as TextFault);
    }
    replaceHash(hashOf("playground", undefined, { q: text, ...(Object.keys(own).length > 0 && { a: JSON.stringify(own) }) }));
  };
  // The address brings a query along, or another one later: it runs as if it had been typed, once it has all its values.
  useEffect(() => {
    if (shared === "" || (runs.current > 0 && shared === text)) return;
    const own = argumentsOf(sharedArguments);
    setText(shared);
    setTexts(own);
    if (missing(shared, own).length === 0) return start(shared, own);
    setRun(undefined);
    setFault(undefined);
  }, [shared, sharedArguments]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (text.trim() !== "") start(text, texts);
  };
  const example = (text: string): void => {
    setText(text);
    start(text, texts);
    editor.current?.focus();
  };
  const showPlace = ({ start, end }: Place): void => {
    editor.current?.focus();
    editor.current?.setSelectionRange(start, end);
  };
  return (
    <Page title="Playground">
      <form
        className="editor"
        onKeyDown={onKeyDown}
        onSubmit={(event) => {
          event.preventDefault();
          start(text, texts);
        }}
      >
        <label htmlFor="query">A query in SQL, or in JSON</label>
        <textarea
          id="query"
          ref={editor}
          value={text}
          onChange={(event) => setText(event.target.value)}
          rows={5}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          placeholder={'select …    or    {"table": "…"}'}
          aria-invalid={fault !== undefined}
        />
        {parameters.length > 0 && <Arguments names={parameters} texts={texts} change={setTexts} />}
        <div className="actions">
          <button type="submit" className="primary" disabled={text.trim() === ""}>Run</button>
          {run && <button type="button" onClick={() => setStopped(!isStopped)}>{isStopped ? "Watch again" : "Stop"}</button>}
          <span className="hint">{text.trim() !== "" && (isJson(text) ? "JSON" : "SQL")} <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it</span>
        </div>
      </form>
      {fault && <Faulty text={text} error={fault} place={fault.place} show={showPlace} />}
      {run ? (
        <Result key={run.number} run={run} isStopped={isStopped} tab={tab} setTab={setTab} show={showPlace} />
      ) : shared !== "" && shared === text && missing(text, texts).length > 0 ? (
        <div className="empty"><p>Give every parameter a value, then press Run to see what the query answers.</p></div>
      ) : (
        !fault && <Examples tables={status?.tables ?? []} choose={example} />
      )}
    </Page>
  );
}

interface ResultProps {
  readonly run: Run;
  readonly isStopped: boolean;
  readonly tab: "rows" | "plan";
  readonly setTab: (tab: "rows" | "plan") => void;
  readonly show: (place: Place) => void;
}

/** What a run answers. It is watched while its plan shows, too, so that the plan tells of its operators at work. */
function Result({ run, isStopped, tab, setTab, show }: ResultProps): ReactNode {
  const query = useMemo(() => {
    const asked = remote<Row>(run.source);
    // A run of its own: one that has failed before is asked again.
    return { ...asked, key: `${asked.key} run ${run.number}` };
  }, [run]);
  const live = useLive(query, isStopped);
  return (
    <section aria-label="Result">
      <Tabs label="Show" tabs={{ rows: "Rows", plan: "Plan" }} chosen={tab} choose={setTab}>
        {tab === "plan" ? <Explained run={run} show={show} /> : <Rows run={run} live={live} show={show} />}
      </Tabs>
    </section>
  );
}

function Rows({ run, live, show }: { readonly run: Run; readonly live: LiveRows; readonly show: (place: Place) => void }): ReactNode {
  if (live.isStopped && live.status === "connecting") return <p className="empty">Stopped before any rows came.</p>;
  return (
    <>
      {live.error && <Faulty text={run.text} error={live.error} place={placeOf(run.text, live.error.message)} show={show} />}
      {!(live.error && live.rows.length === 0) && (
        <>
          <LiveLine live={live} />
          <RowsTable live={live} label="Result" empty={<p>No row answers the query now. They show here as soon as some do.</p>} />
        </>
      )}
    </>
  );
}

function Explained({ run, show }: { readonly run: Run; readonly show: (place: Place) => void }): ReactNode {
  const [plan, setPlan] = useState<readonly string[]>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    let isGone = false;
    planOf(run.source).then((lines) => isGone || setPlan(lines), (error: Error) => isGone || setError(error));
    return () => {
      isGone = true;
    };
  }, [run]);
  if (error instanceof Refusal) return <Faulty text={run.text} error={error} place={placeOf(run.text, error.message)} show={show} />;
  if (error) return <Problem error={error} />;
  return plan ? <Plan lines={plan} label="How the query is maintained" /> : <p className="empty" role="status">Asking the server…</p>;
}

interface FaultyProps {
  readonly text: string;
  readonly error: Error & { readonly code?: string };
  readonly place: Place | undefined;
  readonly show: (place: Place) => void;
}

/** An error in a text, with the line at fault. */
function Faulty({ text, error, place, show }: FaultyProps): ReactNode {
  const line = place && lineAt(text, place);
  const mark = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    // A line that is wider than its place is scrolled to what is marked in it.
    const [element, code] = [mark.current, mark.current?.parentElement];
    if (element && code) code.scrollLeft = element.offsetLeft - (code.clientWidth - element.offsetWidth) / 2;
  }, [text, place?.start]);
  return (
    <div className="problem" role="alert">
      <p>{sentence(error.message)}</p>
      {line && (
        <p className="place">
          <span className="line-number">line {line.number}</span>
          <code>{line.parts[0]}<mark ref={mark}>{line.parts[1] || " "}</mark>{line.parts[2]}</code>
          <button type="button" onClick={() => show(place)}>Go there</button>
        </p>
      )}
      {error.code !== undefined && <code>{error.code}</code>}
    </div>
  );
}

/** Tables that examples are made for. */
const EXAMPLES_MAX = 3;

function Examples({ tables, choose }: { readonly tables: Status["tables"]; readonly choose: (text: string) => void }): ReactNode {
  const own = tables.filter(({ name }) => !name.startsWith("tidegate_")).sort((a, b) => b.rows - a.rows).slice(0, EXAMPLES_MAX);
  const examples = own.flatMap(({ name }) => [
    `select * from "${name}" limit 20`,
    pretty({ table: name, limit: 20 }),
  ]);
  return (
    <div className="empty">
      <p>Rows show here as they are now, and change as commits change them.</p>
      {examples.length > 0 ? (
        <ul className="examples" aria-label="Examples">
          {examples.map((text) => <li key={text}><button type="button" onClick={() => choose(text)}><code>{text}</code></button></li>)}
        </ul>
      ) : (
        <p>There are no tables yet; the page <a href={hashOf("tables")}>Tables</a> says how to create one.</p>
      )}
    </div>
  );
}

/** The parameters of a query that have no value. */
const missing = (text: string, texts: Readonly<Record<string, string>>): readonly string[] =>
  parametersOf(text).filter((name) => (texts[name] ?? "") === "");

/** The texts of parameters as an address brings them; none when they cannot be read. */
function argumentsOf(text: string): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(Object.entries(JSON.parse(text) as object).map(([name, value]) => [name, String(value)]));
  } catch {
    return {};
  }
}
