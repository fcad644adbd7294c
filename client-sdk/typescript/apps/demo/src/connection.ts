// The connection in the page's words.

import { useConnectionStatus } from "@tidegate/react";
import { useState } from "react";

export interface Connection {
  readonly state: "connecting" | "live" | "reconnecting";
  /** What visitors are to know; empty when all is well. */
  readonly notice: string;
}

const LOST = "The connection is lost. The board shows the last commit that came, and goes on by itself; notes you write now are sent then.";
const NOT_REACHED = "The server cannot be reached yet. The page keeps trying, and shows what it kept from an earlier visit until then.";

export function useConnection(): Connection {
  const { state } = useConnectionStatus();
  const [wasLive, setWasLive] = useState(false);
  /** Since an attempt failed, and through all further ones. */
  const [isTrouble, setIsTrouble] = useState(false);
  const isLive = state === "connected";
  if (isLive && !wasLive) setWasLive(true);
  if (isLive && isTrouble) setIsTrouble(false);
  if (state === "waiting" && !isTrouble) setIsTrouble(true);
  if (isLive) return { state: "live", notice: "" };
  if (wasLive) return { state: "reconnecting", notice: LOST };
  return { state: "connecting", notice: isTrouble ? NOT_REACHED : "" };
}
