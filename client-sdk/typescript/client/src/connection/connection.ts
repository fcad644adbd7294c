// Makes connections, one after the other, and keeps watch over each: tokens, silence, waits between failures.
//
// The client drives the state machine with what comes in here; nothing here knows what messages mean.

import { TidegateError } from "../error.js";
import { decode, encode } from "../wire/codec.js";
import type { ClientMessage, ErrorBody, ServerMessage } from "../wire/messages.js";
import { utf8Length, type Codec } from "../wire/value.js";
import type { Backoff } from "./backoff.js";
import type { Connect, Transport } from "./transport.js";
import { browserWakeups, type Wakeups } from "./wakeups.js";

/** A connection that was welcome for so long counts as having worked, so that the next wait is a first one. */
const STABLE_MS = 5_000;
/** How soon after a wake-up the server has to give a sign of life. */
const PROOF_MS = 5_000;
/** The longest time between two looks at the clock. */
const TICK_MS = 1_000;

/** How a client stands with its server. */
export type ConnectionStatus =
  | { readonly state: "connecting" }
  | { readonly state: "connected" }
  | { readonly state: "waiting"; readonly error: TidegateError; readonly retryInMs: number }
  | { readonly state: "closed" };

/** What a connection is made with; times are in milliseconds. */
export interface ConnectionOptions {
  readonly url: string;
  readonly codec: Codec;
  readonly connect: Connect;
  readonly token: (() => string | undefined | Promise<string | undefined>) | undefined;
  readonly backoff: Backoff;
  // See `ClientOptions`.
  readonly connectTimeoutMs?: number;
  readonly pingMs?: number;
  readonly silenceMsMax?: number;
  readonly wakeups?: Wakeups;
}

/** What is told of connections. */
export interface ConnectionEvents {
  /** One is open, to be introduced with this token. */
  opened(token: string | undefined): void;
  received(message: ServerMessage): void;
  /** It ended; `send` has no effect until the next is open. */
  lost(): void;
  /** Called about every second while welcome, and first at once. */
  tick(): void;
  status(status: ConnectionStatus): void;
}

/** See the file's head. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #events: ConnectionEvents;
  readonly #connectTimeoutMs: number;
  readonly #pingMs: number;
  readonly #silenceMsMax: number;
  readonly #unwake: () => void;
  readonly #watch: ReturnType<typeof setInterval>;
  /** Tells attempts apart: what an earlier one still says is passed over. */
  #attempt = 0;
  #transport: Transport | undefined;
  #open = false;
  #startedAt = 0;
  #welcomeAt: number | undefined;
  #heardAt = 0;
  #pingedAt = 0;
  /** When a connection in doubt counts as dead. */
  #proofBy = Infinity;
  #retry: ReturnType<typeof setTimeout> | undefined;
  /** Most bytes of a message, as the server said last. */
  #bytesMax = Infinity;
  /** How it stands. */
  status: ConnectionStatus = { state: "connecting" };

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#options = options;
    this.#events = events;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 10_000;
    this.#pingMs = options.pingMs ?? 35_000;
    this.#silenceMsMax = options.silenceMsMax ?? 60_000;
    this.#unwake = (options.wakeups ?? browserWakeups)(() => this.wake());
    const every = Math.min(TICK_MS, this.#pingMs, this.#silenceMsMax / 2, this.#connectTimeoutMs);
    this.#watch = setInterval(() => this.#tick(), every);
    // A process that has nothing else to do may end.
    (this.#watch as { unref?: () => void }).unref?.();
    this.#dial();
  }

  /**
   * Sends a message on the open connection; without one it is passed over. One that is larger than the server takes is
   * not sent: then this says why.
   */
  send(message: ClientMessage): ErrorBody | undefined {
    if (!this.#open) return undefined;
    const frame = encode(message, this.#options.codec);
    const bytes = typeof frame === "string" ? utf8Length(frame) : frame.length;
    if (bytes > this.#bytesMax) {
      return { code: "message_too_large", message: `a message may have ${this.#bytesMax} bytes, not ${bytes}` };
    }
    this.#transport!.send(frame);
    return undefined;
  }

  /** The server has answered `hello`, and takes messages of so many bytes. */
  welcomed(bytesMax = Infinity): void {
    this.#bytesMax = bytesMax;
    this.#welcomeAt = Date.now();
    this.#setStatus({ state: "connected" });
    this.#events.tick();
  }

  /** Connects at once instead of waiting, or asks a connection that may be dead for a sign of life. */
  wake(): void {
    if (this.#retry !== undefined) {
      clearTimeout(this.#retry);
      this.#dial();
    } else if (this.#welcomeAt !== undefined) {
      this.#proofBy = Math.min(this.#proofBy, Date.now() + PROOF_MS);
      this.#ping();
    }
  }

  /** Gives the connection up and makes another, after a wait of at least `afterMs`. */
  lose(error: ErrorBody, afterMs = 0): void {
    if (this.#retry !== undefined || this.status.state === "closed") return;
    if (this.#welcomeAt !== undefined && Date.now() - this.#welcomeAt >= STABLE_MS) this.#options.backoff.reset();
    this.#end();
    const retryInMs = Math.round(this.#options.backoff.next(afterMs));
    this.#retry = setTimeout(() => this.#dial(), retryInMs);
    this.#setStatus({ state: "waiting", error: TidegateError.of(error), retryInMs });
  }

  /** Ends the connection for good. */
  close(): void {
    clearTimeout(this.#retry);
    clearInterval(this.#watch);
    this.#unwake();
    this.#end();
    this.#setStatus({ state: "closed" });
  }

  #failed(message: string): void {
    this.lose({ code: "connection", message });
  }

  #end(): void {
    this.#attempt += 1;
    const open = this.#open;
    this.#open = false;
    this.#transport?.close();
    this.#transport = undefined;
    this.#welcomeAt = undefined;
    this.#proofBy = Infinity;
    if (open) this.#events.lost();
  }

  #dial(): void {
    this.#retry = undefined;
    this.#startedAt = this.#heardAt = Date.now();
    this.#setStatus({ state: "connecting" });
    this.#attempt += 1;
    // A listener may have closed the client.
    if (this.status.state === "connecting") void this.#connect(this.#attempt);
  }

  async #connect(attempt: number): Promise<void> {
    const present = (): boolean => attempt === this.#attempt;
    try {
      const token = await this.#options.token?.();
      if (!present()) return;
      this.#transport = this.#options.connect(this.#options.url, this.#options.codec, {
        opened: () => {
          if (!present()) return;
          this.#open = true;
          this.#events.opened(token);
        },
        received: (frame) => {
          if (present()) this.#receive(frame, present);
        },
        closed: (reason) => {
          if (present()) this.#failed(reason);
        },
      });
    } catch (error) {
      if (present()) this.#failed((error as Error).message);
    }
  }

  #receive(frame: unknown, present: () => boolean): void {
    this.#heardAt = Date.now();
    let messages: ServerMessage[];
    try {
      messages = decode(frame, this.#options.codec);
    } catch (error) {
      this.lose({ code: "bad_message", message: (error as Error).message });
      return;
    }
    for (const message of messages) {
      if (!present()) return;
      // The answer to an earlier ping may have been under way when the doubt arose.
      if (!message.pong || message.pong.t === this.#pingedAt) this.#proofBy = Infinity;
      this.#events.received(message);
    }
  }

  #tick(): void {
    if (this.#retry !== undefined) return;
    const now = Date.now();
    if (this.#welcomeAt === undefined) {
      if (now - this.#startedAt >= this.#connectTimeoutMs) this.#failed("no answer in time");
      return;
    }
    // The clock may have been set back, too.
    if (Math.abs(now - this.#heardAt) >= this.#silenceMsMax || now >= this.#proofBy) {
      this.#failed("the server is silent");
      return;
    }
    if (now - this.#heardAt >= this.#pingMs && now - this.#pingedAt >= this.#pingMs) this.#ping();
    this.#events.tick();
  }

  #ping(): void {
    this.#pingedAt = Date.now();
    this.send({ ping: { t: this.#pingedAt } });
  }

  #setStatus(status: ConnectionStatus): void {
    this.status = status;
    this.#events.status(status);
  }
}
