// The board's queries. When another airport is picked, the old board stays until the new one is complete.

import type { ViewState } from "@tidegate/client";
import { useState } from "react";
import { useLive } from "./pulse.js";
import { dropped, left, next, type DetailedFlight } from "./queries.js";
import type { Origin } from "./schema.js";

/** The three lists of an airport. */
export interface BoardLists {
  readonly origin: Origin;
  readonly next: ViewState<DetailedFlight>;
  readonly left: ViewState<DetailedFlight>;
  readonly dropped: ViewState<DetailedFlight>;
}

export interface ChangeOver {
  readonly board: BoardLists;
  /** Whether another board is on its way. */
  readonly busy: boolean;
}

function useLists(origin: Origin | null): Omit<BoardLists, "origin"> {
  return {
    next: useLive(origin && next(origin)),
    left: useLive(origin && left(origin)),
    dropped: useLive(origin && dropped(origin)),
  };
}

export function useChangeOver(picked: Origin): ChangeOver {
  const [shown, setShown] = useState(picked);
  const board = useLists(shown);
  const busy = picked !== shown;
  const coming = useLists(busy ? picked : null);
  const isSettled = Object.values(coming).every(({ status }) => status === "complete" || status === "error");
  if (busy && isSettled) setShown(picked);
  return { board: { origin: shown, ...board }, busy };
}
