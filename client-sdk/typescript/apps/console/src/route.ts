// Where the reader is, kept in the address after `#`, so that pages need no routes of the server's and can be linked to.

import { useSyncExternalStore } from "react";

/** `#/tables/flights?order=id`: page `tables`, name `flights`, and its parameters. */
export interface Route {
  readonly page: string;
  readonly name: string | undefined;
  readonly params: URLSearchParams;
}

/** Reads the part of an address from `#` on. */
export function routeOf(hash: string): Route {
  const [path = "", query = ""] = split(hash.replace(/^#\/?/, ""), "?");
  const [page = "", name = ""] = split(path, "/");
  return { page: page || "status", name: name === "" ? undefined : decoded(name), params: new URLSearchParams(query) };
}

/** Writes what `routeOf` reads. */
export function hashOf(page: string, name?: string, params?: Readonly<Record<string, string>>): string {
  const query = params ? new URLSearchParams(params).toString() : "";
  return `#/${page}${name === undefined ? "" : `/${encodeURIComponent(name)}`}${query && `?${query}`}`;
}

/** The route, followed as it changes. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(follow, () => location.hash);
  return routeOf(hash);
}

/** Goes to another place without a step in the browser's history. */
export function replaceHash(hash: string): void {
  history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

function follow(changed: () => void): () => void {
  window.addEventListener("hashchange", changed);
  return () => window.removeEventListener("hashchange", changed);
}

/** The text before the first separator, and the text behind it. */
function split(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
