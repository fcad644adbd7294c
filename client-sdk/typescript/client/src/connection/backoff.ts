// How long to wait before the next connection: exponential, jittered, bounded.

/** The longest wait that a server may ask for. */
const RETRY_AFTER_MS_MAX = 3_600_000;

/** The waits between failing connections. */
export class Backoff {
  #failures = 0;

  constructor(
    readonly initialMs: number,
    readonly maxMs: number,
    readonly random: () => number = Math.random,
  ) {}

  /** A connection held; the next failure is a first one again. */
  reset(): void {
    this.#failures = 0;
  }

  /**
   * The wait after one more failure, milliseconds: between half and all of what the failures amount to, and at least
   * as long as the server asked for, spread by up to a quarter so that its clients do not come back all at once.
   */
  next(askedMs: number): number {
    const whole = Math.min(this.maxMs, this.initialMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const asked = Math.min(askedMs, RETRY_AFTER_MS_MAX) * (1 + this.random() / 4);
    // What was asked for is no number in a message that is not as it should be.
    return Math.max(whole * (0.5 + this.random() / 2), asked || 0);
  }
}
