// How the server is doing: its figures now and over the last minutes, and its workers.

import type { ReactNode } from "react";
import type { Status } from "../api.js";
import { Chart } from "../chart.js";
import { age, bytes, count, counted, figure, time } from "../format.js";
import type { Monitored } from "../monitor.js";
import { Page, Scroll } from "../parts.js";
import { linesOf } from "../reading.js";

/** Powers of two, for axes of bytes. */
const BYTE_STEPS = Array.from({ length: 46 }, (_, power) => 2 ** power);

/** Small counts have no marks between whole numbers. */
const COUNT_STEPS = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();

export function StatusPage({ monitored }: { readonly monitored: Monitored | undefined }): ReactNode {
  return (
    <Page title="Status" aside={monitored && <Server status={monitored.status} />}>
      {monitored ? <Known {...monitored} /> : <p className="empty" role="status">Asking the server…</p>}
    </Page>
  );
}

function Server({ status }: { readonly status: Status }): ReactNode {
  return (
    <p className="facts">
      <span>{status.server}</span> <span>source {status.source.url}</span> <span>up {age(status.uptime_seconds)}</span>{" "}
      <a href="/metrics">Metrics</a> <a href="/openapi.json">API</a>
    </p>
  );
}

function Known({ status, readings }: Monitored): ReactNode {
  const lines = linesOf(readings);
  const rate = lines.commitsPerSecond.at(-1) ?? null;
  return (
    <>
      <dl className="tiles">
        <Tile name="Commit version" value={count(status.cv)} note={rate === null ? "newest commit" : `${figure(rate)} a second`} />
        <Tile name="Source lag" value={time(status.source.lag_seconds)} note="behind the source" />
        <Tile name="Connections" value={count(status.connections)} note={counted(status.subscriptions, "subscription")} />
        <Tile name="Live queries" value={count(status.queries)} note={counted(status.bindings, "binding")} />
        <Tile name="Store" value={bytes(status.store_bytes)} note={counted(status.tables.reduce((sum, { rows }) => sum + rows, 0), "row")} />
        <Tile name="Memory" value={status.memory_bytes === null ? "–" : bytes(status.memory_bytes)} note={`log ${bytes(status.log_bytes)}`} />
      </dl>
      <section aria-label="The last five minutes">
        <div className="charts">
          <Chart
            title="Commits a second" note="Commits that entered the log, a second"
            at={lines.at} show={figure} lines={[{ label: "commits/s", line: lines.commitsPerSecond }]}
          />
          <Chart
            title="Commit to socket" note="From a write's arrival until what it changed is written to a client's socket"
            at={lines.at} show={time} none="No client was sent a change since this page was opened"
            lines={[{ label: "p50", line: lines.commitToSocket.p50 }, { label: "p99", line: lines.commitToSocket.p99 }]}
          />
          <Chart
            title="Query advance" note="Time to bring one query up to date with a commit"
            at={lines.at} show={time} none="No query changed since this page was opened"
            lines={[{ label: "p50", line: lines.advance.p50 }, { label: "p99", line: lines.advance.p99 }]}
          />
          <Chart
            title="Queues" note="Messages that wait: at the fullest worker, and at the drain"
            at={lines.at} show={figure} steps={COUNT_STEPS}
            lines={[{ label: "worker", line: lines.workerQueue }, { label: "drain", line: lines.drainQueue }]}
          />
          <Chart
            title="Memory" note="Resident memory of the process, and the encoded rows in it"
            at={lines.at} show={bytes} steps={BYTE_STEPS}
            lines={[{ label: "process", line: lines.memoryBytes }, { label: "rows", line: lines.storeBytes }]}
          />
          <Chart
            title="Waiting for clients" note="Bytes in all outboxes: what clients have yet to take"
            at={lines.at} show={bytes} steps={BYTE_STEPS} lines={[{ label: "outboxes", line: lines.outboxBytes }]}
          />
        </div>
      </section>
      <section>
        <h2>Workers</h2>
        <Scroll label="Workers">
          <table>
            <thead>
              <tr>
                <th scope="col">Worker</th>
                <th scope="col" className="number">Position</th>
                <th scope="col" className="number">Behind</th>
                <th scope="col" className="number">Queue</th>
                <th scope="col" className="number">Queries</th>
              </tr>
            </thead>
            <tbody>
              {status.workers.map(({ worker, cv, queue, families }) => (
                <tr key={worker}>
                  <th scope="row">worker {worker}</th>
                  <td className="number">{count(cv)}</td>
                  <td className="number">{behind(status.cv - cv)}</td>
                  <td className="number">{count(queue)}</td>
                  <td className="number">{count(families)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </section>
    </>
  );
}

function Tile({ name, value, note }: { readonly name: string; readonly value: string; readonly note: string }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="value">{value}</dd>
      <dd className="note">{note}</dd>
    </div>
  );
}

const behind = (commits: number): string => (commits > 0 ? counted(commits, "commit") : "up to date");
