// Marks what has just changed.

import { useEffect, useRef, useState } from "react";

const FLASH_MS = 1_500;

/** `a` or `b` for a while after `seen` has changed, in turn, so that an animation begins anew. `entered`: from the start. */
export function useFlash(seen: string, entered: boolean): "a" | "b" | undefined {
  const [flash, setFlash] = useState<"a" | "b" | undefined>(entered ? "a" : undefined);
  const before = useRef(seen);
  useEffect(() => {
    if (before.current !== seen) setFlash((last) => (last === "a" ? "b" : "a"));
    else if (!entered) return;
    before.current = seen;
    const timer = setTimeout(() => setFlash(undefined), FLASH_MS);
    return () => clearTimeout(timer);
  }, [seen, entered]);
  return flash;
}
