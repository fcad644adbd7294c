// Values for a query's parameters, each typed into a field of its own.

import type { ReactNode } from "react";

interface Props {
  readonly names: readonly string[];
  /** The parameters' types, where they are declared. */
  readonly types?: Readonly<Record<string, string>>;
  readonly texts: Readonly<Record<string, string>>;
  readonly change: (texts: Readonly<Record<string, string>>) => void;
  readonly children?: ReactNode;
}

export function Arguments({ names, types, texts, change, children }: Props): ReactNode {
  return (
    <fieldset className="arguments">
      <legend>Parameters</legend>
      {names.map((name) => (
        <label key={name}>
          <span>{name}{types?.[name] !== undefined && <span className="type">{types[name]}</span>}</span>
          <input
            value={texts[name] ?? ""}
            onChange={(event) => change({ ...texts, [name]: event.target.value })}
            placeholder="7 or JFK"
            autoComplete="off"
            spellCheck={false}
          />
        </label>
      ))}
      {children}
    </fieldset>
  );
}
