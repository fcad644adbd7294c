// Signs that a connection may be made now, or may be dead: the network came back, or the page came to the front.

/** Calls `wake` at each sign, until the function that it returns is called. */
export type Wakeups = (wake: () => void) => () => void;

interface Events {
  addEventListener(type: string, listener: () => void): void;
  removeEventListener(type: string, listener: () => void): void;
}

/** A browser's signs; nothing elsewhere. */
export const browserWakeups: Wakeups = (wake) => {
  const page = globalThis as Partial<Events> & { document?: Events & { visibilityState: string } };
  const { document } = page;
  if (!page.addEventListener || !document?.addEventListener) return () => {};
  const visible = (): void => {
    if (document.visibilityState === "visible") wake();
  };
  page.addEventListener("online", wake);
  document.addEventListener("visibilitychange", visible);
  return () => {
    page.removeEventListener!("online", wake);
    document.removeEventListener("visibilitychange", visible);
  };
};
