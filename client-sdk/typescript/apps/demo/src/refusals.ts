// Notes that the server refused, with the reason: also those of an earlier visit that were sent only now.

import type { TidegateError } from "@tidegate/client";
import { useSyncExternalStore } from "react";
import type { Mutators } from "./client.js";
import { reasonOf } from "./refusal_reason.js";
import type { Note } from "./schema.js";

/** Most that are kept to be read; the oldest go first. */
const REFUSALS_MAX = 3;

/** A refused mutation. */
export interface Refusal {
  readonly number: number;
  readonly mutation: keyof Mutators;
  readonly noteId: string;
  readonly flightId: number;
  /** What was to be written; empty once it is back in a field. */
  readonly body: string;
  readonly reason: string;
}

class Refusals {
  #list: readonly Refusal[] = [];
  #made = 0;
  readonly #listeners = new Set<() => void>();

  add(mutation: keyof Mutators, { id, flight_id: flightId, body }: Pick<Note, "id" | "flight_id" | "body">, error: TidegateError): void {
    this.#made += 1;
    this.#set([...this.#list, { number: this.#made, mutation, noteId: id, flightId, body, reason: reasonOf(mutation, error) }].slice(-REFUSALS_MAX));
  }

  dismiss(number: number): void {
    this.#set(this.#list.filter((refusal) => refusal.number !== number));
  }

  /** Hands out the text, to be shown in a field. */
  takeText(number: number): string {
    const text = this.#list.find((refusal) => refusal.number === number)?.body ?? "";
    this.#set(this.#list.map((refusal) => (refusal.number === number ? { ...refusal, body: "" } : refusal)));
    return text;
  }

  /** The visitor goes on with a flight's notes: what was refused before is of no more use, unless it holds a text. */
  settle(flightId: number): void {
    const isUseful = ({ mutation, body }: Refusal): boolean => mutation !== "deleteNote" && body !== "";
    this.#set(this.#list.filter((refusal) => refusal.flightId !== flightId || isUseful(refusal)));
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly list = (): readonly Refusal[] => this.#list;

  #set(list: readonly Refusal[]): void {
    this.#list = list;
    for (const listener of this.#listeners) listener();
  }
}

export const refusals = new Refusals();
export const useRefusals = (): readonly Refusal[] => useSyncExternalStore(refusals.subscribe, refusals.list);
