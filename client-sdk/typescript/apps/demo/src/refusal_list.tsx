// What the server refused, said to whoever wrote it: the note is taken back by then, its text is kept here.

import { refusals, useRefusals, type Refusal } from "./refusals.js";
import { hrefOf } from "./route.js";
import type { Origin } from "./schema.js";

const WHAT: Record<Refusal["mutation"], string> = {
  addNote: "Your note was not added.",
  editNote: "Your note was not changed.",
  deleteNote: "Your note was not deleted.",
};

export function RefusalList({ origin }: { readonly origin: Origin }) {
  return (
    <div className="refusals" role="alert">
      {useRefusals().map(({ number, mutation, flightId, body, reason }) => (
        <div key={number} className="refusal">
          <p><b>{WHAT[mutation]}</b> {reason}</p>
          {body && <blockquote>{body}</blockquote>}
          <div className="buttons">
            <a href={hrefOf({ origin, flight: flightId })}>Open the flight</a>
            <button type="button" onClick={() => refusals.dismiss(number)}>Dismiss</button>
          </div>
        </div>
      ))}
    </div>
  );
}
