// What is being written about each flight and was not sent yet. It outlives the panel that it is written in: whoever looks
// at another flight in between finds it again.

import { useSyncExternalStore } from "react";

/** The texts about one flight. */
export interface FlightDrafts {
  /** The next note's. */
  readonly body: string;
  /** Changes of notes, by the note's id: they outlive their note, too. */
  readonly changes: ReadonlyMap<string, string>;
}

const NONE: FlightDrafts = { body: "", changes: new Map() };

export class Drafts {
  readonly #flights = new Map<number, FlightDrafts>();
  readonly #listeners = new Set<() => void>();

  /** The same object until one of the flight's texts changes. */
  of(flightId: number): FlightDrafts {
    return this.#flights.get(flightId) ?? NONE;
  }

  setBody(flightId: number, body: string): void {
    this.#set(flightId, { ...this.of(flightId), body });
  }

  /** Begins or goes on with a change; null ends it. */
  setChange(flightId: number, noteId: string, text: string | null): void {
    const before = this.of(flightId);
    const changes = new Map(before.changes);
    if (text === null) changes.delete(noteId);
    else changes.set(noteId, text);
    this.#set(flightId, { ...before, changes });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #set(flightId: number, drafts: FlightDrafts): void {
    if (drafts.body === "" && drafts.changes.size === 0) this.#flights.delete(flightId);
    else this.#flights.set(flightId, drafts);
    for (const listener of this.#listeners) listener();
  }
}

export const drafts = new Drafts();
export const useDrafts = (flightId: number): FlightDrafts => useSyncExternalStore(drafts.subscribe, () => drafts.of(flightId));
