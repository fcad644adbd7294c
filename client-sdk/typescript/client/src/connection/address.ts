// From the address that people give to the one of the WebSocket.

import { TidegateError } from "../error.js";

const PATH = "/v1/sync";

/**
 * `http(s)://…` or `ws(s)://…` as the WebSocket's address; `/v1/sync` is added unless it is there.
 *
 * @throws {TidegateError} `connection`, when it is no such address.
 */
export function syncUrl(url: string): string {
  // Not by the class URL, which React Native has in part only.
  const parts = /^(?:http|ws)(s?:\/\/[^/?#]+)([^?#]*)(\?[^#]*)?/i.exec(url.trim());
  if (!parts) throw new TidegateError("connection", `${url} is no address such as https://example.com`);
  const [, host, path, query = ""] = parts;
  return `ws${host}${path!.replace(/(\/v1\/sync)?\/*$/, PATH)}${query}`;
}
