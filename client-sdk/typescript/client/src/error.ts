// What goes wrong in a client, as its users see it.

import type { ErrorBody } from "./wire/messages.js";

/** An error with a stable code; the message may change. */
export class TidegateError extends Error {
  override readonly name = "TidegateError";

  constructor(
    /** A code of the protocol, or `closed`, `queue_full`, `no_mutator`, `mutator`, `connection`, `storage`. */
    readonly code: string,
    message: string,
  ) {
    super(message);
  }

  /** An error as the server tells it. */
  static of({ code, message }: ErrorBody): TidegateError {
    return new TidegateError(code, message);
  }
}

/** What was closed does nothing any more. */
export const closed = (what: "client" | "view"): TidegateError => new TidegateError("closed", `the ${what} is closed`);
