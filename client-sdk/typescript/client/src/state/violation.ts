// What a server may not do, named after the invariants that it would break.

/** The invariants that a client can see broken. */
export type Invariant =
  | "seq_is_gapless"
  | "progress_is_irrevocable"
  | "batches_precede_progress"
  | "view_equals_fresh_query"
  | "fp_is_constant"
  | "queues_are_bounded"
  | "messages_are_well_formed";

/** A breach of the protocol by the server. The connection is given up and made anew; what is shown stays. */
export class Violation extends Error {
  constructor(
    /** The invariant. */
    readonly code: Invariant,
    what: string,
  ) {
    super(`${code}: ${what}`);
  }
}

/** A message whose parts contradict each other. */
export const malformed = (what: string): Violation => new Violation("messages_are_well_formed", what);
