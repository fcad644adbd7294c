// What the server refused, said to whoever wrote it: the note is taken back by then. Its text is kept
// here until it is back in the field that it was written in.

import { useEffect, useRef } from "react";
import { refusals, type Refusal } from "./refusals.js";
import { hrefOf } from "./route.js";
import type { Origin } from "./schema.js";

const WHAT: Record<Refusal["mutation"], string> = {
  addNote: "Your note was not added.",
  editNote: "Your note was not changed.",
  deleteNote: "Your note was not deleted.",
};

interface Props {
  readonly refused: readonly Refusal[];
  /** Where the list stands apart from the flights that it tells of: the airport to open them at. */
  readonly origin?: Origin;
}

export function RefusalList({ refused, origin }: Props) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.lastElementChild?.scrollIntoView({ block: "nearest" });
  }, [refused.at(-1)?.number]);
  return (
    <div className={origin ? "refusals apart" : "refusals"} role="alert" ref={list}>
      {refused.map(({ number, mutation, flightId, body, reason }) => (
        <div key={number} className="refusal">
          <p><b>{WHAT[mutation]}</b> {reason}</p>
          {body && <blockquote>{body}</blockquote>}
          <div className="buttons">
            {origin && <a href={hrefOf({ origin, flight: flightId })}>Open the flight</a>}
            <button type="button" onClick={() => refusals.dismiss(number)}>Dismiss</button>
          </div>
        </div>
      ))}
    </div>
  );
}
