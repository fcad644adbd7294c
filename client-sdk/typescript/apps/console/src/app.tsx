// The frame around all pages: where one can go, and how the server stands.

import { useMemo, type ReactNode } from "react";
import { useConnectionStatus } from "@tidegate/react";
import { count } from "./format.js";
import { monitor, type Monitored } from "./monitor.js";
import { ConnectionsPage } from "./pages/connections.js";
import { PlaygroundPage } from "./pages/playground.js";
import { QueriesPage } from "./pages/queries.js";
import { QueryPage } from "./pages/query.js";
import { StatusPage } from "./pages/status.js";
import { TablesPage } from "./pages/tables.js";
import { Refusal } from "./api.js";
import { Page, sentence } from "./parts.js";
import { usePoll, type Polled } from "./poll.js";
import { hashOf, useRoute, type Route } from "./route.js";

const PAGES = { status: "Status", tables: "Tables", queries: "Queries", playground: "Playground", connections: "Connections" };

export function App(): ReactNode {
  const route = useRoute();
  const monitored = usePoll(useMemo(monitor, []));
  return (
    <>
      <a className="skip" href="#main" onClick={skip}>Skip to the content</a>
      <header className="top">
        <a className="brand" href={hashOf("status")}>
          <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 5.5c2.3-2.6 4.7-2.6 7 0s4.7 2.6 7 0M1 11c2.3-2.6 4.7-2.6 7 0s4.7 2.6 7 0" /></svg>
          Tidegate
        </a>
        <nav aria-label="Pages">
          {Object.entries(PAGES).map(([page, title]) => (
            <a key={page} href={hashOf(page)} aria-current={page === route.page ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <Standing {...monitored} />
      </header>
      <Notice {...monitored} />
      <main id="main" tabIndex={-1}>{pageOf(route, monitored.answer)}</main>
    </>
  );
}

function pageOf({ page, name, params }: Route, monitored: Monitored | undefined): ReactNode {
  switch (page) {
    case "status":
      return <StatusPage monitored={monitored} />;
    case "tables":
      return <TablesPage status={monitored?.status} name={name} params={params} />;
    case "queries":
      return name === undefined ? <QueriesPage /> : <QueryPage key={name} name={name} />;
    case "playground":
      return <PlaygroundPage params={params} status={monitored?.status} />;
    case "connections":
      return <ConnectionsPage />;
    default:
      return <Page title="Not found"><div className="empty"><p>The console has no such page. Choose one above.</p></div></Page>;
  }
}

/** How the server stands, in a word or two. */
function Standing({ answer, error }: Polled<Monitored>): ReactNode {
  const status = answer?.status;
  const [kind, text] = error
    ? ["bad", error instanceof Refusal ? "Not ready" : "Not answering"]
    : !status
      ? ["wait", "Connecting"]
      : status.ready
        ? ["good", `Commit ${count(status.cv)}`]
        : ["bad", "Not ready"];
  return (
    <p className="standing">
      <span className={`dot ${kind}`} aria-hidden="true" />
      {text}
    </p>
  );
}

/** What is wrong with the server or the way to it, while something is. */
function Notice({ answer, error }: Polled<Monitored>): ReactNode {
  const connection = useConnectionStatus();
  const reason = answer?.status.reason;
  let text: string | undefined;
  if (error instanceof Refusal) text = sentence(error.message);
  else if (error) text = answer ? "The server does not answer. This is what it last said; the console goes on by itself once it is back." : "The server does not answer. Start it, and the console goes on by itself.";
  else if (reason) text = `Not ready: ${reason}.`;
  else if (answer && connection.state === "waiting") text = "The server answers, but no WebSocket to it can be opened, so rows are not live. A proxy in between may not let it through.";
  return <div role="status" className="notice-place">{text !== undefined && <p className="notice">{text}</p>}</div>;
}

/** Not by the address, which says which page shows. */
function skip(event: { preventDefault(): void }): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
