// A scripted server for tests of the state machine: messages in, what is shown out.

import { State, type StateOptions } from "../../src/state/state.js";
import type { Effect } from "../../src/state/effect.js";
import type { Subscription } from "../../src/state/subscription.js";
import { changeList } from "../../src/state/tree.js";
import { Violation } from "../../src/state/violation.js";
import { parse, stringify } from "../../src/wire/codec.js";
import type { ClientMessage, Layout, Op, ServerMessage } from "../../src/wire/messages.js";

export const FP = "0123456789abcdef";

/** One table `issues (id int8 key, title text, project int8)`, shown in the order of its id without the project. */
export const ISSUES: Layout = {
  tables: [
    {
      name: "issues",
      columns: [{ name: "id", type: "int8" }, { name: "title", type: "text" }, { name: "project", type: "int8" }],
      key: [0],
    },
  ],
  places: [
    { parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false },
  ],
};

/** The client's own row. */
export const OWN: Layout = {
  tables: [
    {
      name: "tidegate_client_mutations",
      columns: [{ name: "client_id", type: "text" }, { name: "last_mutation_id", type: "int8" }],
      key: [0],
    },
  ],
  places: [
    { parent: null, as: null, table: 0, columns: [0, 1], on: [], order: [[0, "asc", "nulls last"]], one: false },
  ],
};

export class Script {
  readonly state: State;
  readonly subscriptions = new Map<number, Subscription>();

  constructor({ clientId, ...options }: Partial<StateOptions> & { clientId?: string } = {}) {
    this.state = new State({ waitingOpsMax: 100_000, ...options });
    this.state.clientId = clientId;
    this.state.connect("json", undefined);
  }

  subscribe(source: object = { sql: "select" }): number {
    const { subscription } = this.state.subscribe(source);
    this.subscriptions.set(subscription.sub, subscription);
    return subscription.sub;
  }

  send(message: ServerMessage): Effect[] {
    return this.state.receive(parse(stringify(message)) as ServerMessage);
  }

  subscribed(sub: number, epoch: number, layout: Layout = ISSUES, resumed = false): Effect[] {
    return this.send({ subscribed: { sub, epoch, fp: FP, ...layout, resumed } });
  }

  batch(sub: number, epoch: number, seq: number, cv: number, ops: readonly Op[], more = false): Effect[] {
    return this.send({ batch: { sub, epoch, seq, cv, fp: FP, more, ops } });
  }

  progress(cv: number): Effect[] {
    return this.send({ progress: { cv_min: cv } });
  }

  /** A new connection; what the client sends. */
  connect(): ClientMessage[] {
    return sent(this.state.connect("json", undefined));
  }

  /** What a subscription shows; undefined before its first release. */
  shown(sub: number): unknown {
    const tree = this.subscriptions.get(sub)?.tree;
    return tree && plain(tree.list);
  }
}

/** A subscription with a released snapshot, at epoch 1 and cv 10. */
export function live(ops: readonly Op[], layout: Layout = ISSUES): { script: Script; sub: number } {
  const script = new Script();
  const sub = script.subscribe();
  script.subscribed(sub, 1, layout);
  script.batch(sub, 1, 0, 10, ops);
  script.progress(10);
  return { script, sub };
}

export const sent = (effects: readonly Effect[]): ClientMessage[] =>
  effects.flatMap((effect) => (effect.kind === "send" ? [effect.message] : []));

/** The changes of a release's one subscription, or of the one named. */
export function changes(effects: readonly Effect[], sub?: number): unknown {
  const release = effects.find((effect) => effect.kind === "released");
  if (release?.kind !== "released") return undefined;
  const own = sub === undefined ? [...release.results.values()][0] : release.results.get(sub);
  return own && changeList(own).map(({ op, row }) => ({ op, row: plain(row) }));
}

/** The invariant of the one violation; undefined without one. */
export function violation(effects: readonly Effect[]): string | undefined {
  const errors = effects.flatMap((effect) => (effect.kind === "reconnect" ? [effect.error] : []));
  return errors.find((error) => error instanceof Violation)?.code;
}

/** A shown value in the protocol's JSON form, for comparison. */
export const plain = (value: unknown): unknown => parse(stringify(value));
