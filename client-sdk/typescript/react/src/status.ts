// The connection's status in components.

import type { ConnectionStatus } from "@tidegate/client";
import { useCallback, useSyncExternalStore } from "react";
import { useTidegate } from "./context.js";

/** How the client stands with its server. */
export function useConnectionStatus(): ConnectionStatus {
  const client = useTidegate();
  const subscribe = useCallback((changed: () => void) => client.onStatus(changed), [client]);
  const status = (): ConnectionStatus => client.status;
  return useSyncExternalStore(subscribe, status, status);
}
