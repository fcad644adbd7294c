// Signs that a connection may be made now, or may be dead: the network came back or is gone, or the page came to the front.
//
// A browser leaves sockets open when the network goes, and they only fall silent.

/** Calls `wake` at each sign, until the function that it returns is called. */
export type Wakeups = (wake: () => void) => () => void;

interface Events {
  addEventListener?(type: string, listener: () => void, options: { readonly signal: AbortSignal }): void;
}

/** A browser's signs; nothing elsewhere. */
export const browserWakeups: Wakeups = (wake) => {
  const page = globalThis as Events & { readonly document?: Events & { readonly visibilityState: string } };
  const { document } = page;
  if (!document) return () => {};
  const end = new AbortController();
  for (const sign of ["online", "offline"]) page.addEventListener?.(sign, wake, end);
  document.addEventListener?.("visibilitychange", () => document.visibilityState === "visible" && wake(), end);
  return () => end.abort();
};
