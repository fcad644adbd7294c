// Mutations in components, with how the latest ones stand.

import type { MutationHandle, TidegateError } from "@tidegate/client";
import { useCallback, useEffect, useRef, useState } from "react";

/** How the mutations that a component made stand. */
export interface MutationState {
  /** How many wait for their confirmation. */
  readonly pending: number;
  /** Why the latest refused one was refused; null again once a new one is made. */
  readonly error: TidegateError | null;
}

/**
 * A mutation together with how it stands: `const [add, { pending, error }] = useMutation(client.mutate.add)`.
 * What it does shows at once, everywhere; nothing has to be awaited.
 */
export function useMutation<Args extends readonly unknown[]>(
  mutate: (...args: Args) => MutationHandle,
): [(...args: Args) => MutationHandle, MutationState] {
  const [state, setState] = useState<MutationState>({ pending: 0, error: null });
  const latest = useRef(mutate);
  const mounted = useRef(false);
  useEffect(() => {
    latest.current = mutate;
  });
  useEffect(() => {
    mounted.current = true;
    return () => {
      mounted.current = false;
    };
  }, []);
  const call = useCallback((...args: Args): MutationHandle => {
    const handle = latest.current(...args);
    const settle = (error: TidegateError | null): void => {
      if (mounted.current) setState((before) => ({ pending: before.pending - 1, error: error ?? before.error }));
    };
    setState(({ pending }) => ({ pending: pending + 1, error: null }));
    handle.confirmed.then(
      () => settle(null),
      (error: TidegateError) => settle(error),
    );
    return handle;
  }, []);
  return [call, state];
}
