// The console: one client for all pages.

import { TidegateClient } from "@tidegate/client";
import { TidegateProvider } from "@tidegate/react";
import { createRoot } from "react-dom/client";
import { App } from "./app.js";
import "uplot/dist/uPlot.min.css";
import "./console.css";

/** The longest wait before the server is tried again, milliseconds: an operator who restarts it is watching. */
const BACKOFF_MS_MAX = 2_000;

/** How long a query that is no longer shown is kept, milliseconds: the server is asked for what is looked at only. */
const LINGER_MS = 1_000;

const client = new TidegateClient({ url: location.origin, backoffMsMax: BACKOFF_MS_MAX, lingerMs: LINGER_MS });

createRoot(document.getElementById("root")!).render(
  <TidegateProvider client={client}>
    <App />
  </TidegateProvider>,
);
