// The line that stands in for a list: why there is nothing to show, or what went wrong.

import type { ViewState } from "@tidegate/client";

interface Props {
  readonly states: readonly ViewState<unknown>[];
  readonly isEmpty: boolean;
  readonly emptyText: string;
}

export function StateLine({ states, isEmpty, emptyText }: Props) {
  const error = states.find((state) => state.error)?.error;
  if (error) {
    return <p className="state" data-kind="error">This list has stopped: {error.message} ({error.code}). It is asked for again; reload the page if it stays.</p>;
  }
  if (!isEmpty) return null;
  if (states.some(({ status }) => status === "connecting")) return <p className="state" data-kind="loading">Loading…</p>;
  return <p className="state" data-kind="empty">{emptyText}</p>;
}
