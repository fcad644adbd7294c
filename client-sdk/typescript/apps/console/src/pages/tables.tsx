// The tables and views there are, and one table of them to browse.

import { remote, type Json } from "@tidegate/client";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { columnsOf, views as viewsOf, type Status, type TableColumn } from "../api.js";
import { count, counted } from "../format.js";
import { useLive, type Row } from "../live.js";
import { moveByKeys, Page, Problem } from "../parts.js";
import { Poll, usePoll } from "../poll.js";
import { hashOf } from "../route.js";
import { LiveLine, RowsTable } from "../rows_table.js";
import { keyOf, PAGES_MAX, paramsOf, placeIn, startAfter, startColumns, type TablePlace } from "../table_place.js";

/** Rows of one page. */
const PAGE_ROWS = 50;

/** Tables listed; the others are found by their name in the address. */
const TABLES_MAX = 500;

interface Props {
  readonly status: Status | undefined;
  readonly name: string | undefined;
  readonly params: URLSearchParams;
}

export function TablesPage({ status, name, params }: Props): ReactNode {
  const views = usePoll(useMemo(() => new Poll(viewsOf), [])).answer ?? [];
  const named = status && [...status.tables.map((table) => ({ ...table, isView: false })), ...views.map((view) => ({ ...view, isView: true }))];
  // The server's own come last.
  const tables = named?.sort((a, b) => Number(isOwn(a.name)) - Number(isOwn(b.name)) || (a.name < b.name ? -1 : 1));
  return (
    <Page title={name ?? "Tables"} aside={name !== undefined && <p className="facts"><a href={hashOf("tables")}>All tables</a></p>}>
      {tables && tables.length === 0 && name === undefined ? (
        <div className="empty">
          <p>There are no tables yet. Create one from a terminal:</p>
          <pre>tidegate sql 'create table notes (id bigint primary key, text text)'</pre>
        </div>
      ) : (
        <div className={name === undefined ? "list-only" : "list-and-one"}>
          <nav aria-label="Tables">
            <ul className="list" onKeyDown={moveByKeys}>
              {tables?.slice(0, TABLES_MAX).map((table) => (
                <li key={table.name}>
                  <a href={hashOf(table.isView ? "queries" : "tables", table.name)} aria-current={table.name === name ? "page" : undefined}>
                    <span className="name">{table.name}{table.isView && <> <span className="badge">view</span></>}</span>
                    <span className="count">{counted(table.rows, "row")}</span>
                  </a>
                </li>
              ))}
            </ul>
            {tables && tables.length > TABLES_MAX && <p className="hint">The first {TABLES_MAX} of {count(tables.length)} tables.</p>}
          </nav>
          {name !== undefined && <OneTable key={name} name={name} params={params} />}
        </div>
      )}
    </Page>
  );
}

const isOwn = (name: string): boolean => name.startsWith("tidegate_");

function OneTable({ name, params }: { readonly name: string; readonly params: URLSearchParams }): ReactNode {
  const [columns, setColumns] = useState<readonly TableColumn[]>();
  const [error, setError] = useState<Error>();
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let isGone = false;
    columnsOf(name).then((found) => isGone || setColumns(found), (error: Error) => isGone || setError(error));
    return () => {
      isGone = true;
    };
  }, [name, asked]);
  if (error) return <Problem error={error} />;
  if (!columns) return <p className="empty" role="status">Asking the server…</p>;
  return <Browser name={name} columns={columns} place={placeIn(params, columns)} changed={() => setAsked(asked + 1)} />;
}

interface BrowserProps {
  readonly name: string;
  readonly columns: readonly TableColumn[];
  readonly place: TablePlace;
  /** The columns are others by now. */
  readonly changed: () => void;
}

function Browser({ name, columns, place, changed }: BrowserProps): ReactNode {
  const { order, starts } = place;
  const key = keyOf(columns);
  const go = (to: TablePlace): void => void (location.hash = hashOf("tables", name, paramsOf(to)));
  const query = useMemo(() => {
    const start = starts.at(-1);
    const after = start && Object.fromEntries(startColumns(place, columns).map((column, at) => [column, start[at]]));
    return remote<Row>({
      query: { table: name, limit: PAGE_ROWS, ...(order && { order_by: [order] }), ...(after && { start: { after } }) } as Json,
    });
  }, [name, columns, JSON.stringify(paramsOf(place))]);
  const live = useLive(query);
  // The rows of one page stay until those of the next are there.
  const held = useRef(live);
  if (live.status !== "connecting") held.current = live;
  useEffect(() => {
    if (live.error?.code === "schema_changed") changed();
  }, [live.error]);
  const first = starts.length * PAGE_ROWS + 1;
  const by: TablePlace["order"] = order ?? (key[0] === undefined ? undefined : [key[0], "asc"]);
  const sort = (column: string): void => go({ order: [column, by?.[0] === column && by[1] === "asc" ? "desc" : "asc"], starts: [] });
  const types = new Map(columns.map((column) => [column.name, column]));
  const last = live.rows.at(-1);
  const isEnd = starts.length + 1 >= PAGES_MAX;
  const isFull = live.rows.length === PAGE_ROWS;
  return (
    <section className="one" aria-label={`Table ${name}`}>
      <LiveLine live={live}>
        <a href={hashOf("playground", undefined, { q: `select * from "${name}" limit ${PAGE_ROWS}` })}>Query it</a>
      </LiveLine>
      {live.error && <Problem error={live.error} />}
      <RowsTable
        live={held.current}
        label={`Rows of ${name}`}
        columns={columns.map((column) => column.name)}
        empty={<p>{starts.length > 0 ? "No rows are left on this page: go back to the one before." : "The table has no rows. They show here as soon as there are some."}</p>}
        head={(column) => {
          const { type, nullable, key } = types.get(column)!;
          const direction = by?.[0] === column ? by[1] : undefined;
          return (
            <th key={column} scope="col" aria-sort={direction && (direction === "asc" ? "ascending" : "descending")} className={isNumeric(type) ? "number" : undefined}>
              <button type="button" className="sort" onClick={() => sort(column)}>
                <span className="column">{column}<span aria-hidden="true" className="arrow">{direction === "asc" ? "↑" : direction === "desc" ? "↓" : ""}</span></span>
                <span className="type">{type}{key !== null ? " · key" : nullable ? " · null" : ""}</span>
              </button>
            </th>
          );
        }}
      />
      <div className="pager">
        <button type="button" disabled={starts.length === 0} onClick={() => go({ order, starts: starts.slice(0, -1) })}>Previous</button>
        <span>{live.rows.length > 0 && `Rows ${count(first)} to ${count(first + live.rows.length - 1)}`}</span>
        <button type="button" disabled={!isFull || key.length === 0 || isEnd} onClick={() => last && go({ order, starts: [...starts, startAfter(last, startColumns(place, columns))] })}>Next</button>
      </div>
      {isFull && isEnd && (
        <p className="hint">Only the first {PAGES_MAX} pages can be turned. See other rows in another order, or by a query with <code>where</code> in the playground.</p>
      )}
      {isFull && key.length === 0 && (
        <p className="hint">The table has no primary key to continue from, so only its first {PAGE_ROWS} rows show. See others by a query with <code>where</code> in the playground.</p>
      )}
    </section>
  );
}

const isNumeric = (type: string): boolean => type === "int8" || type === "float8";
