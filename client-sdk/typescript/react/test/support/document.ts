// A document for React, which looks for one when it is loaded: to be imported first.

import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html>");
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true });
// Node 21 and newer have one of their own.
Object.defineProperty(globalThis, "navigator", { value: window.navigator, configurable: true });
