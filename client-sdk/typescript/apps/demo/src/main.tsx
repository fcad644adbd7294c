// The demo's departure board: an app on @tidegate/react, built into the server.

import { TidegateProvider } from "@tidegate/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { client } from "./client.js";
import { Page } from "./page.js";
import "./styles/base.css";
import "./styles/header.css";
import "./styles/flights.css";
import "./styles/charts.css";
import "./styles/notes.css";

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <TidegateProvider client={client}>
      <Page />
    </TidegateProvider>
  </StrictMode>,
);
