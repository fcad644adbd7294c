// What the address asks for: `#JFK` picks an airport, `#JFK/1234` opens a flight beside it.

import { useSyncExternalStore } from "react";
import { ORIGINS, type Origin } from "./schema.js";

export interface Route {
  readonly origin: Origin;
  /** The open flight's id. */
  readonly flight: number | null;
}

const isOrigin = (code: string): code is Origin => Object.hasOwn(ORIGINS, code);

export function parseRoute(hash: string): Route {
  const [, code = "", id] = /^#(\w+)(?:\/(\d{1,15}))?$/.exec(hash) ?? [];
  const origin = code.toUpperCase();
  return { origin: isOrigin(origin) ? origin : "EWR", flight: id === undefined ? null : Number(id) };
}

export const hrefOf = ({ origin, flight }: Route): string => (flight === null ? `#${origin}` : `#${origin}/${flight}`);

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

export const useRoute = (): Route => parseRoute(useSyncExternalStore(subscribe, () => location.hash));
