// One value of a row, whatever its type. What is long or nested shows in short, and whole when it is opened.

import type { ReactNode } from "react";
import { counted } from "./format.js";
import { pretty, stringified } from "./values.js";

/** Texts longer than this, in characters, show in short. */
const SHORT_MAX = 80;

/** Nested rows shown of one list. */
const NESTED_MAX = 50;

export function Cell({ value }: { readonly value: unknown }): ReactNode {
  if (value === null || value === undefined) return <span className="null">null</span>;
  if (Array.isArray(value)) return value.length === 0 ? <span className="null">no rows</span> : <Nested values={value} />;
  if (typeof value === "object") return <Whole short={members(value)} whole={pretty(value)} />;
  const text = String(value);
  return text.length > SHORT_MAX ? <Whole short={`${text.slice(0, SHORT_MAX)}…`} whole={text} /> : text;
}

/** Whether a value reads best at the right edge of its column. */
export const isNumber = (value: unknown): boolean => typeof value === "number" || typeof value === "bigint";

function Whole({ short, whole }: { readonly short: string; readonly whole: string }): ReactNode {
  return (
    <details>
      <summary>{short}</summary>
      <pre>{whole}</pre>
    </details>
  );
}

/** A list: rows as a table of their own, anything else as JSON. */
function Nested({ values }: { readonly values: readonly unknown[] }): ReactNode {
  const rows = values.filter((value): value is object => typeof value === "object" && value !== null && !Array.isArray(value));
  if (rows.length < values.length) return <Whole short={counted(values.length, "value")} whole={pretty(values)} />;
  const columns = Object.keys(rows[0]!);
  return (
    <details>
      <summary>{counted(rows.length, "row")}</summary>
      <table>
        <thead>
          <tr>{columns.map((column) => <th key={column} scope="col">{column}</th>)}</tr>
        </thead>
        <tbody>
          {rows.slice(0, NESTED_MAX).map((row, at) => (
            <tr key={at}>
              {columns.map((column) => <td key={column}><Cell value={(row as Record<string, unknown>)[column]} /></td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > NESTED_MAX && <p className="hint">The first {NESTED_MAX} of {counted(rows.length, "row")}.</p>}
    </details>
  );
}

function members(value: object): string {
  const text = stringified(value);
  return text.length > SHORT_MAX ? `${text.slice(0, SHORT_MAX)}…` : text;
}
