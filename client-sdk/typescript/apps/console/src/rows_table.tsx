// Live rows as a table: what just changed is lit up for a moment.

import { useConnectionStatus } from "@tidegate/react";
import { memo, useState, type ReactNode } from "react";
import { Cell, isNumber } from "./cell.js";
import { count, counted } from "./format.js";
import type { LiveRows, Mark, Row } from "./live.js";
import { Scroll } from "./parts.js";

/** Rows shown at first, and how many more at a time. */
const SHOWN_STEP = 100;

interface Props {
  readonly live: LiveRows;
  readonly label: string;
  /** Columns to show while there are no rows to tell them. */
  readonly columns?: readonly string[];
  /** The cells of the head, in the place of the columns' names. */
  readonly head?: (column: string) => ReactNode;
  readonly empty: ReactNode;
}

export function RowsTable({ live, label, columns: known, head, empty }: Props): ReactNode {
  const [shown, setShown] = useState(SHOWN_STEP);
  const { rows } = live;
  const columns = known ?? Object.keys(rows[0] ?? {});
  const visible = rows.slice(0, shown);
  const numeric = new Set(columns.filter((column) => isNumber(visible.find((row) => row[column] !== null)?.[column])));
  const isEmpty = rows.length === 0 && live.status === "complete";
  if (columns.length === 0) return isEmpty ? <div className="empty">{empty}</div> : live.status !== "error" && <Loading />;
  return (
    <>
      <Scroll label={label}>
        <table className="rows">
          <thead>
            <tr>
              {columns.map((column) => head?.(column) ?? (
                <th key={column} scope="col" className={numeric.has(column) ? "number" : undefined}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {visible.map((row) => (
              <RowLine key={live.keyOf(row)} row={row} columns={columns} mark={live.markOf(row)} numeric={numeric} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {isEmpty && <div className="empty below">{empty}</div>}
      {rows.length > shown && (
        <p className="more">
          The first {count(shown)} of {counted(rows.length, "row")}.{" "}
          <button type="button" onClick={() => setShown(shown + SHOWN_STEP)}>Show {SHOWN_STEP} more</button>
        </p>
      )}
    </>
  );
}

interface LineProps {
  readonly row: Row;
  readonly columns: readonly string[];
  readonly mark: Mark | undefined;
  readonly numeric: ReadonlySet<string>;
}

const RowLine = memo(
  function RowLine({ row, columns, mark, numeric }: LineProps): ReactNode {
    const isNew = mark !== undefined && mark.columns === undefined;
    return (
      <tr className={isNew ? "new" : undefined}>
        {columns.map((column) => {
          const isChanged = mark?.columns?.has(column) ?? false;
          const className = `${numeric.has(column) ? "number" : ""} ${isChanged ? "changed" : ""}`.trim() || undefined;
          // Another key makes another cell, whose animation begins anew.
          return <td key={isChanged ? `${column} ${mark!.number}` : column} className={className}><Cell value={row[column]} /></td>;
        })}
      </tr>
    );
  },
  // The mark belongs to the row.
  (before, after) =>
    before.row === after.row && before.columns.join() === after.columns.join() && [...before.numeric].join() === [...after.numeric].join(),
);

function Loading(): ReactNode {
  return <p className="empty" role="status">Asking the server…</p>;
}

/** How a live result stands, in one line. */
export function LiveLine({ live, children }: { readonly live: LiveRows; readonly children?: ReactNode }): ReactNode {
  const { status, rows, last } = live;
  const isConnected = useConnectionStatus().state === "connected";
  const [kind, word] =
    status === "error" ? ["bad", "Stopped"] : live.isStopped ? ["off", "No longer live"] : !isConnected ? ["wait", "Waiting for the server"] : status === "complete" ? ["good", "Live"] : ["wait", "Loading"];
  return (
    <p className="live-line">
      <span className={`dot ${kind}`} aria-hidden="true" />
      <span role="status">{word}</span>
      {status !== "connecting" && <span>{counted(rows.length, "row")}</span>}
      {last && (
        <span className="change">
          commit {count(last.cv)}:
          {last.added > 0 && <b className="add"> {count(last.added)} added</b>}
          {last.edited > 0 && <b className="edit"> {count(last.edited)} changed</b>}
          {last.removed > 0 && <b className="remove"> {count(last.removed)} removed</b>}
        </span>
      )}
      {children}
    </p>
  );
}
