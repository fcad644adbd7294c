// Signs that a connection may be made now, or may be dead: the network came back or is gone, or the page came to the front.
//
// A browser leaves sockets open when the network goes, and they only fall silent.

/** Calls `wake` at each sign, until the function that it returns is called. */
export type Wakeups = (wake: () => void) => () => void;

type Listen = (type: string, listener: () => void) => void;
interface Events {
  addEventListener: Listen;
  removeEventListener: Listen;
}

/** A browser's signs; nothing elsewhere. */
export const browserWakeups: Wakeups = (wake) => {
  const page = globalThis as Partial<Events> & { readonly document?: Events & { readonly visibilityState: string } };
  const { document } = page;
  if (!page.addEventListener || !document) return () => {};
  const visible = (): void => {
    if (document.visibilityState === "visible") wake();
  };
  const each = (step: keyof Events): void => {
    for (const sign of ["online", "offline"]) page[step]!(sign, wake);
    document[step]("visibilitychange", visible);
  };
  each("addEventListener");
  return () => each("removeEventListener");
};
