// What was being written about a flight that has left the tables. No note can be added to it any more, so it is there to be
// copied.

import { useDrafts } from "./drafts.js";

interface Props {
  readonly flightId: number;
}

export function KeptText({ flightId }: Props) {
  const { body, changes } = useDrafts(flightId);
  const texts = [body, ...changes.values()].filter((text) => text.trim() !== "");
  if (texts.length === 0) return null;
  return (
    <div className="kept">
      <p role="status">What you were writing is still here, to be copied:</p>
      {texts.map((text, at) => <blockquote key={at}>{text}</blockquote>)}
    </div>
  );
}
