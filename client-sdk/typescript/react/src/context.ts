// The client that a tree of components uses.

import type { Mutators, TidegateClient } from "@tidegate/client";
import { createContext, createElement, useContext, type ReactElement, type ReactNode } from "react";

const Context = createContext<TidegateClient<any> | undefined>(undefined);

/** Gives a client to the components below. The application makes it, and closes it. */
export function TidegateProvider(props: { readonly client: TidegateClient<any>; readonly children?: ReactNode }): ReactElement {
  return createElement(Context.Provider, { value: props.client }, props.children);
}

/**
 * The client of the nearest provider; `M` is the type of its mutators.
 *
 * @throws {Error} without a provider.
 */
export function useTidegate<M extends Mutators = Record<never, never>>(): TidegateClient<M> {
  const client = useContext(Context);
  if (!client) throw new Error("no <TidegateProvider> above this component");
  return client;
}
