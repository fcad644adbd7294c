// The connection in the page's words.

import { useConnectionStatus } from "@tidegate/react";
import { useEffect, useState } from "react";

export interface Connection {
  readonly state: "connecting" | "live" | "reconnecting";
  /** What visitors are to know; empty when all is well. */
  readonly notice: string;
}

export function useConnection(): Connection {
  const status = useConnectionStatus();
  const [wasLive, setWasLive] = useState(false);
  const isLive = status.state === "connected";
  useEffect(() => {
    if (isLive) setWasLive(true);
  }, [isLive]);
  if (isLive) return { state: "live", notice: "" };
  const state = wasLive ? "reconnecting" : "connecting";
  if (!wasLive && status.state === "connecting") return { state, notice: "" };
  return {
    state,
    notice: wasLive
      ? "The connection is lost. The board shows the last commit that came; it goes on by itself, and so do notes you write now."
      : "The server cannot be reached yet. The page keeps trying.",
  };
}
