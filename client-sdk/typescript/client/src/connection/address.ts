// From the address that people give to the one of the WebSocket.

import { TidegateError } from "../error.js";

const PATH = "/v1/sync";

/**
 * `http(s)://…` or `ws(s)://…` as the WebSocket's address; `/v1/sync` is added unless it is there.
 *
 * @throws {TidegateError} `connection`, when it is no such address.
 */
export function syncUrl(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new TidegateError("connection", `${url} is no address; give one such as https://example.com`);
  }
  const scheme = { "http:": "ws:", "https:": "wss:", "ws:": "ws:", "wss:": "wss:" }[parsed.protocol];
  if (!scheme) throw new TidegateError("connection", `${url}: the scheme is none of http, https, ws, wss`);
  const path = parsed.pathname.replace(/\/+$/, "").replace(/\/v1\/sync$/, "");
  return `${scheme}//${parsed.host}${path}${PATH}${parsed.search}`;
}
