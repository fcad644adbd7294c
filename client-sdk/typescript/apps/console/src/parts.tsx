// Small parts that several pages are made of.

import { useEffect, type KeyboardEvent, type ReactNode } from "react";
import { TidegateError } from "@tidegate/client";
import { Refusal } from "./api.js";

/** A page with its title, which the browser's tab bears too. */
export function Page({ title, aside, children }: { readonly title: ReactNode; readonly aside?: ReactNode; readonly children: ReactNode }): ReactNode {
  const name = typeof title === "string" ? title : "Tidegate";
  useEffect(() => {
    document.title = name === "Tidegate" ? name : `${name} · Tidegate`;
  }, [name]);
  return (
    <>
      <header className="page-head">
        <h1>{title}</h1>
        {aside}
      </header>
      {children}
    </>
  );
}

/** What is wider than its place scrolls in it, by keys too. */
export function Scroll({ label, children }: { readonly label: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="scroll" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** What went wrong, in words. */
export function Problem({ error }: { readonly error: Error }): ReactNode {
  const isTold = error instanceof Refusal || error instanceof TidegateError;
  return (
    <div className="problem" role="alert">
      <p>{isTold ? sentence(error.message) : "The server does not answer. The console goes on asking."}</p>
      {isTold && <code>{error.code}</code>}
    </div>
  );
}

/** Lines of a plan, as the server writes them. */
export function Plan({ lines, label }: { readonly lines: readonly string[]; readonly label: string }): ReactNode {
  return (
    <Scroll label={label}>
      <pre className="plan">{lines.join("\n")}</pre>
    </Scroll>
  );
}

/** Moves the focus among a list's links by the arrow keys, Home and End. */
export function moveByKeys(event: KeyboardEvent<HTMLElement>): void {
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("a")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  links[Math.min(Math.max(to, 0), links.length - 1)]?.focus();
}

/** One of several views of one thing, to be chosen. */
export function Tabs<T extends string>(props: {
  readonly label: string;
  readonly tabs: Readonly<Record<T, string>>;
  readonly chosen: T;
  readonly choose: (tab: T) => void;
  readonly children: ReactNode;
}): ReactNode {
  const names = Object.keys(props.tabs) as T[];
  const move = (event: KeyboardEvent<HTMLElement>): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = names[(names.indexOf(props.chosen) + step + names.length) % names.length]!;
    props.choose(next);
    event.currentTarget.querySelector<HTMLElement>(`[data-tab="${next}"]`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label={props.label} onKeyDown={move}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            data-tab={name}
            aria-selected={name === props.chosen}
            tabIndex={name === props.chosen ? 0 : -1}
            onClick={() => props.choose(name)}
          >
            {props.tabs[name]}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={props.tabs[props.chosen]}>{props.children}</div>
    </>
  );
}

/** A message as a sentence. Its first word stays as it is: it may be a name. */
export const sentence = (text: string): string => text + (/[.!?)]$/.test(text) ? "" : ".");
