// The client: live views over one connection, and mutations.
//
// It drives the state machine: what the connection brings goes in, and what the machine wants done is done here. Views
// are all brought up to date before anybody is told, so that a listener that reads another view sees the same commit.

import { syncUrl } from "./connection/address.js";
import { Backoff } from "./connection/backoff.js";
import { Connection, type ConnectionStatus } from "./connection/connection.js";
import { webSocket } from "./connection/transport.js";
import { closed, TidegateError } from "./error.js";
import { LiveQuery, type Update } from "./live.js";
import { answer } from "./optimistic/answer.js";
import { overlayMutations } from "./optimistic/overlay.js";
import { MutationQueue } from "./optimistic/queue.js";
import type { Mutate, Mutators } from "./optimistic/transaction.js";
import { uniqueName } from "./name.js";
import type { ClientOptions } from "./options.js";
import type { Query } from "./query/query.js";
import type { Effect, Release } from "./state/effect.js";
import type { Mutations } from "./state/mutations.js";
import { State } from "./state/state.js";
import type { Subscription } from "./state/subscription.js";
import type { Storage, Stored, StoredQuery } from "./storage/storage.js";
import { View } from "./view.js";
import { checkNesting } from "./wire/codec.js";
import type { ErrorBody, ServerMessage } from "./wire/messages.js";

/** See the file's head. */
export class TidegateClient<M extends Mutators = Record<never, never>> {
  readonly #options: ClientOptions<M>;
  readonly #state: State;
  readonly #connection: Connection;
  readonly #backoff: () => Backoff;
  /** Queries by their key, and those that the server knows by their subscription. */
  readonly #queries = new Map<string, LiveQuery>();
  readonly #bySub = new Map<number, LiveQuery>();
  readonly #statusListeners = new Set<(status: ConnectionStatus) => void>();
  readonly #queue: MutationQueue;
  #stored: Stored | undefined;
  #acked = 0;
  /** What is being told, and what is to be told after it. */
  readonly #news: (() => void)[] = [];
  #closed = false;

  /** The mutators by name: each runs at once on what is shown, and then on the server. */
  readonly mutate: Mutate<M>;

  /**
   * Connects, and goes on connecting until it is closed.
   *
   * @throws {TidegateError} `connection`, when the address is none.
   * @throws {TypeError} when there is no WebSocket class.
   */
  constructor(options: ClientOptions<M>) {
    this.#options = options;
    const { storage, mutators = {} as M } = options;
    const url = syncUrl(options.url);
    const connect = options.connect ?? webSocket(options.WebSocket);
    const codec = options.codec ?? "msgpack";
    this.#backoff = () => new Backoff(options.backoffMs ?? 100, options.backoffMsMax ?? 30_000);
    this.#state = new State({
      waitingOpsMax: options.waitingOpsMax ?? 10_000_000,
      overlay: (subscriptions, results) => overlayMutations(subscriptions, this.#queue.rows(), results),
    });
    const names = Object.keys(mutators);
    const writes = options.clientId !== undefined || names.length > 0;
    if (writes) this.#state.clientId = options.clientId ?? (storage ? undefined : uniqueName());
    this.#queue = new MutationQueue({
      state: this.#state,
      mutators,
      mutationsMax: options.mutationsMax ?? 1_000,
      storage,
      poster: options.backend?.(this.#answered, this.#backoff()),
      answered: this.#answered,
      send: (message) => this.#connection.send(message),
      carryOut: this.#carryOut,
      refused: (error, { name, args }) => options.onRefused?.(error, { name, args }),
      failed: this.#complain,
    });
    this.mutate = Object.fromEntries(names.map((name) => [name, (args: unknown) => this.#queue.mutate(name, args)])) as Mutate<M>;
    const opened = storage && this.#open(storage, writes);
    this.#connection = new Connection(
      {
        ...options,
        url,
        codec,
        connect,
        token: async () => {
          await opened;
          return options.token?.();
        },
        backoff: this.#backoff(),
      },
      {
        opened: (token) => {
          for (const live of this.#queries.values()) this.#ask(live);
          this.#carryOut(this.#state.connect(codec, token));
        },
        received: (message) => this.#received(message),
        lost: () => this.#state.disconnect(),
        tick: () => this.#tick(),
        status: (status) => this.#tell(() => tell(this.#statusListeners, status)),
      },
    );
  }

  /** The commit version that everything shown stands at, but for pending mutations. */
  get cv(): number {
    return this.#state.cv;
  }

  /** The server's name of the present connection, which it uses of it elsewhere; undefined while there is none. */
  get conn(): string | undefined {
    return this.#state.welcome?.conn;
  }

  /** How the client stands with its server. */
  get status(): ConnectionStatus {
    return this.#connection.status;
  }

  /** How many mutations wait for their confirmation. */
  get pendingMutations(): number {
    return this.#state.mutations.length;
  }

  /** Calls `listener` whenever the status changes; returns what ends that. */
  onStatus(listener: (status: ConnectionStatus) => void): () => void {
    this.#statusListeners.add(listener);
    return () => this.#statusListeners.delete(listener);
  }

  /**
   * A live view of a query. Views of equal queries share one subscription; close each.
   *
   * @throws {TidegateError} `closed`, after `close`.
   * @throws {TypeError} when its values nest deeper than 100 levels.
   */
  view<Row>(query: Query<Row>): View<Row> {
    if (this.#closed) throw closed("client");
    checkNesting(query.source);
    const { key } = query;
    let live = this.#queries.get(key);
    if (!live) this.#queries.set(key, (live = new LiveQuery(query, key, this.#backoff())));
    this.#ask(live);
    clearTimeout(live.linger);
    live.users += 1;
    return new View<Row>(live, () => this.#leave(live!));
  }

  /** Calls `onChange` with the rows whenever they change, and at once when some are there; returns what ends it. */
  subscribe<Row>(query: Query<Row>, onChange: (rows: readonly Row[], update: Update<Row>) => void): () => void {
    const view = this.view(query);
    view.subscribe((update) => onChange(update.rows, update));
    if (view.status !== "connecting") onChange(view.rows, { ...view.state, cv: this.cv, changes: [] });
    return () => view.close();
  }

  /** Asks for a token and gives it to the server, on the connection that is there. */
  async refreshToken(): Promise<void> {
    const token = await this.#options.token?.();
    if (token !== undefined) this.#connection.send({ auth: { token } });
  }

  /** Connects at once instead of waiting; a connection that is there is asked for a sign of life. */
  wake(): void {
    if (!this.#closed) this.#connection.wake();
  }

  /** Ends the client. Complete results stay as they are, others fail; mutations that a storage keeps are sent by the next client. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const live of this.#queries.values()) {
      clearTimeout(live.linger);
      clearTimeout(live.retry);
      if (live.state.status !== "complete") tell(live.listeners, live.fail(this.cv, closed("client")));
    }
    this.#connection.close();
    this.#queue.close();
    this.#options.storage?.close();
  }

  // --- queries ----------------------------------------------------------------------------------------------------

  /** Asks the server for a query that is not asked for, or has failed; until it answers, what is here is shown. */
  #ask(live: LiveQuery): void {
    if (live.subscription) return;
    clearTimeout(live.retry);
    const { source, local } = live.query;
    const { subscription, effects } = this.#state.subscribe(source, local);
    live.ask(subscription);
    this.#bySub.set(subscription.sub, live);
    if (live.state.rows.length === 0) this.#carryOut(this.#known(live, subscription));
    this.#carryOut(effects);
  }

  /** Shows what is known here of a query. */
  #known(live: LiveQuery, subscription: Subscription): Effect[] {
    const { source, local } = live.query;
    const stored = this.#stored?.queries.get(live.key);
    if (stored) return this.#restore(subscription, stored, false);
    // Whoever listens is told of rows only when the server says them.
    if (local && live.listeners.size === 0) {
      subscription.tree = answer(local, source.args, this.#queue.rows().held);
      this.#state.overlayNew(subscription);
    }
    return [];
  }

  #leave(live: LiveQuery): void {
    live.users -= 1;
    if (live.users > 0 || this.#closed) return;
    live.linger = setTimeout(() => this.#end(live), this.#options.lingerMs ?? 5_000);
    (live.linger as { unref?: () => void }).unref?.();
  }

  #end(live: LiveQuery): void {
    clearTimeout(live.retry);
    this.#queries.delete(live.key);
    if (!live.subscription) return;
    const { sub } = live.subscription;
    this.#bySub.delete(sub);
    this.#carryOut(this.#state.unsubscribe(sub));
  }

  // --- what the connection and the state machine bring -------------------------------------------------------------

  #received(message: ServerMessage): void {
    // Told first, since what follows may tell others that the mutation is settled.
    const answered = message.push_result;
    if (answered) this.#options.storage?.answered(answered.id, answered.error);
    const { subscribed } = message;
    const local = subscribed && this.#bySub.get(subscribed.sub)?.query.local;
    const wrong = local && this.#options.checkSchema?.(local, subscribed);
    if (wrong) this.#complain(wrong);
    this.#carryOut(this.#state.receive(message));
  }

  readonly #carryOut = (effects: readonly Effect[]): void => {
    const news: (() => void)[] = [];
    for (const effect of effects) {
      switch (effect.kind) {
        case "send": {
          const { message } = effect;
          const error = this.#connection.send(message);
          if (error && "subscribe" in message) this.#carryOut(this.#state.receive({ faulted: { ...error, sub: message.subscribe.sub, retry: false } }));
          break;
        }
        case "welcomed":
          this.#connection.welcomed(this.#state.welcome!.limits?.message_bytes_max);
          break;
        case "released":
          this.#released(effect, news);
          break;
        case "ended": {
          const live = this.#bySub.get(effect.sub);
          if (!live) break;
          this.#bySub.delete(effect.sub);
          if (effect.retry) live.retry = setTimeout(() => this.#ask(live), live.backoff.next(0));
          const update = live.fail(this.cv, TidegateError.of(effect.error));
          news.push(() => tell(live.listeners, update));
          break;
        }
        case "write":
          void this.#queue.write(effect);
          break;
        case "confirmed":
          news.push(() => this.#queue.confirmed(effect.ticket));
          break;
        case "refused":
          news.push(() => this.#queue.refused(effect.ticket, effect.error));
          break;
        case "settled":
          if (effect.writer) this.#options.storage?.settle(effect.ticket, effect.id, effect.refused).catch(this.#complain);
          this.#keep();
          break;
        case "complaint":
          if (this.status.state !== "connected" || effect.error.code === "unauthenticated") this.#connection.lose(effect.error);
          else this.#complain(TidegateError.of(effect.error));
          break;
        case "reconnect":
          this.#connection.lose(effect.error, effect.afterMs);
          break;
      }
    }
    this.#tell(...news);
  };

  /** Tells in order: what a listener brings about is told when everybody has heard of what came before. */
  #tell(...news: (() => void)[]): void {
    if (this.#news.push(...news) > news.length) return;
    for (const telling of this.#news) tell([telling], undefined);
    this.#news.length = 0;
  }

  #released({ results, cv }: Release, news: (() => void)[]): void {
    for (const [sub, changes] of results) {
      const live = this.#bySub.get(sub);
      const update = live?.refresh(cv, changes);
      if (update) news.push(() => tell(live!.listeners, update));
    }
    this.#keep();
  }

  /** Has the storage keep what is here now. */
  #keep(): void {
    this.#options.storage?.changed(() => ({ cv: this.cv, queries: [...this.#bySub.values()].flatMap((live) => live.kept(this.cv) ?? []) }));
  }

  #tick(): void {
    if (this.cv === this.#acked) return;
    this.#acked = this.cv;
    this.#connection.send({ ack: { cv: this.cv } });
  }

  readonly #complain = (error: Error): void => {
    const told = error instanceof TidegateError ? error : new TidegateError("storage", error.message);
    const { onError } = this.#options;
    if (onError) tell([onError], told);
    else console.warn(`tidegate: ${told.code}: ${told.message}`);
  };

  // --- mutations and storage ----------------------------------------------------------------------------------------

  readonly #answered = (id: number, error: ErrorBody | null): void => {
    if (this.#closed) return;
    this.#options.storage?.answered(id, error);
    this.#change((mutations, effects) => mutations.answered(id, error, effects));
  };

  /** Has something happen to the queue of mutations. */
  #change(step: (mutations: Mutations, effects: Effect[]) => void): void {
    this.#carryOut(this.#state.change(step));
  }

  /** Shows a kept result; one that cannot be read is asked for anew. */
  #restore(subscription: Subscription, stored: StoredQuery, stands: boolean): Effect[] {
    try {
      return this.#state.restore(subscription, stored, stands);
    } catch (error) {
      this.#complain(error as Error);
      return [];
    }
  }

  /** Shows what the storage has, before the first connection is made. */
  async #open(storage: Storage, writes: boolean): Promise<void> {
    this.#state.mutations.setWriter(false, []);
    try {
      const stored = await storage.open({
        writer: (own) => this.#change((mutations, effects) => mutations.setWriter(own, effects)),
        added: (mutations) => this.#queue.found(mutations),
        numbered: (ids) => this.#change((mutations, effects) => mutations.numbered(ids, effects)),
        answered: (id, error) => this.#change((mutations, effects) => mutations.answered(id, error, effects)),
        failed: this.#complain,
      });
      if (this.#closed) return;
      if (writes) this.#state.clientId ??= stored.clientId;
      this.#stored = stored;
      for (const live of this.#queries.values()) {
        const { subscription, key } = live;
        const held = stored.queries.get(key);
        if (subscription && held) this.#carryOut(this.#restore(subscription, held, held.cv === stored.cv));
      }
      this.#queue.found(stored.mutations);
    } catch (error) {
      // The client does its work without a storage too; it then sends its own mutations alone.
      if (writes) this.#state.clientId ??= uniqueName();
      this.#change((mutations, effects) => mutations.setWriter(true, effects));
      this.#complain(error as Error);
    }
  }
}

/** An application's error must not keep others from being told, nor end the connection. */
function tell<T>(listeners: Iterable<(what: T) => void>, what: T): void {
  for (const listener of [...listeners]) {
    try {
      listener(what);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
