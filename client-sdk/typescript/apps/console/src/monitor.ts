// Follows the server's status for as long as the console is open, and keeps the readings that plots are drawn from.

import { json, text, type Status } from "./api.js";
import { histograms } from "./metrics.js";
import { Poll } from "./poll.js";
import { extended, type Reading } from "./reading.js";

/** What is known of the server. */
export interface Monitored {
  readonly status: Status;
  readonly readings: readonly Reading[];
}

/** One for the whole console. */
export function monitor(): Poll<Monitored> {
  let readings: readonly Reading[] = [];
  return new Poll(async () => {
    const status = await json<Status>("/v1/status");
    const found = histograms(await text("/metrics"));
    readings = extended(readings, {
      at: Date.now(),
      cv: status.cv,
      uptimeSeconds: status.uptime_seconds,
      workerQueue: Math.max(0, ...status.workers.map((worker) => worker.queue)),
      drainQueue: status.drain_queue,
      memoryBytes: status.memory_bytes,
      storeBytes: status.store_bytes,
      outboxBytes: status.outbox_bytes,
      connections: status.connections,
      subscriptions: status.subscriptions,
      commitToSocket: found.get("tidegate_commit_to_socket_seconds"),
      advance: found.get("tidegate_query_advance_seconds"),
    });
    return { status, readings };
  });
}
