// From the address that people give to the one of the WebSocket.

import { TidegateError } from "../error.js";

const PATH = "/v1/sync";

/**
 * `http(s)://…` or `ws(s)://…` as the WebSocket's address; `/v1/sync` is added unless it is there.
 *
 * @throws {TidegateError} `connection`, when it is no such address.
 */
export function syncUrl(url: string): string {
  let parsed: URL | undefined;
  try {
    parsed = new URL(url);
  } catch {}
  if (!parsed || !/^(http|ws)s?:$/.test(parsed.protocol)) {
    throw new TidegateError("connection", `${url} is no address; give one such as https://example.com`);
  }
  parsed.protocol = parsed.protocol.replace("http", "ws");
  parsed.pathname = parsed.pathname.replace(/(\/v1\/sync)?\/*$/, PATH);
  return parsed.href;
}
