// Who is connected, and how far each is behind.

import { useConnectionStatus, useTidegate } from "@tidegate/react";
import type { ReactNode } from "react";
import type { Connections } from "../api.js";
import { age, bytes, count, counted } from "../format.js";
import { Page, Problem, Scroll } from "../parts.js";
import { usePolled } from "../poll.js";

export function ConnectionsPage(): ReactNode {
  const { answer, error } = usePolled<Connections>("/v1/connections");
  return (
    <Page title="Connections" aside={answer && <p className="facts"><span>{counted(answer.total, "connection")}</span></p>}>
      {answer ? <List {...answer} /> : error ? <Problem error={error} /> : <p className="empty" role="status">Asking the server…</p>}
    </Page>
  );
}

function List({ total, connections }: Connections): ReactNode {
  const { conn: own } = useTidegate();
  useConnectionStatus(); // another connection has another name
  if (connections.length === 0) {
    return <div className="empty"><p>Nobody is connected, not even this page yet. It connects again by itself.</p></div>;
  }
  return (
    <>
      <p className="hint">
        Those furthest behind come first{total > connections.length && ` (${count(connections.length)} of ${count(total)})`}. This page is one of them.
        Released is the last commit that was sent to a connection: where it is older than the newest and there is no lag, nothing
        later concerned it.
      </p>
      <Scroll label="Connections">
        <table>
          <thead>
            <tr>
              <th scope="col">Connection</th>
              <th scope="col">Client</th>
              <th scope="col" className="number">Lag</th>
              <th scope="col" className="number">Waiting</th>
              <th scope="col" className="number">Subscriptions</th>
              <th scope="col" className="number">Released</th>
              <th scope="col">Codec</th>
              <th scope="col" className="number">Connected for</th>
            </tr>
          </thead>
          <tbody>
            {connections.map((one) => (
              <tr key={one.conn}>
                <th scope="row">{one.conn}{one.conn === own && <> <span className="badge">this page</span></>}</th>
                <td>{one.client_id ?? <span className="null">unnamed</span>}</td>
                <td className="number">{one.lag_commits > 0 ? counted(one.lag_commits, "commit") : "none"}</td>
                <td className="number">{bytes(one.outbox_bytes)}</td>
                <td className="number">{count(one.subscriptions)}</td>
                <td className="number">{count(one.released_cv)}</td>
                <td>{one.codec}</td>
                <td className="number">{age(one.connected_seconds)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}
