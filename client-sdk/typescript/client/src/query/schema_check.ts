// Tells where the schema of a query is not what the server has. It stands apart from the client so that an application
// downloads it only when it asks for it.

import { TidegateError } from "../error.js";
import type { Layout } from "../wire/messages.js";
import type { LocalQuery, QueryAst } from "./ast.js";

/** Looks at a query and what the server makes of it; what to tell, if anything. */
export type SchemaCheck = (query: LocalQuery, layout: Layout) => TidegateError | undefined;

/** A check for the option `checkSchema`: each column that does not fit is told once, with the code `schema_mismatch`. */
export function schemaCheck(): SchemaCheck {
  const told = new Set<string>();
  return (query, layout) => {
    const wrong = misfits(query, layout).filter((text) => !told.has(text));
    if (wrong.length === 0) return undefined;
    for (const text of wrong) told.add(text);
    return new TidegateError("schema_mismatch", `${wrong.join("; ")}: run tidegate-codegen again`);
  };
}

/** The columns that the server has with another type, and those that it lacks though rows should show them. */
function misfits({ ast, tables }: LocalQuery, layout: Layout): string[] {
  const whole = shownWhole(ast);
  // Groups come as a table of their own, whose name and columns only happen to be those of a table.
  const groups = ast.group_by && layout.places[0]!.table;
  return layout.tables.flatMap(({ name: table, columns }, index) => {
    if (index === groups) return [];
    const types = new Map(columns.map(({ name, type }) => [name, type]));
    return Object.entries(tables.get(table)?.columns ?? {}).flatMap(([name, { type }]) => {
      const own = types.get(name);
      const told = `the schema declares ${table}.${name} as ${type}`;
      if (own === undefined) return whole.has(table) ? [`${told}, the server has no such column`] : [];
      return own === type ? [] : [`${told}, at the server it is ${own}`];
    });
  });
}

/** The tables that are shown with all their columns somewhere in the query. */
function shownWhole({ table, select, group_by, related }: QueryAst): Set<string> {
  const below = (related ?? []).flatMap(({ aggregate, query }) => (aggregate ? [] : [...shownWhole(query)]));
  return new Set(select || group_by ? below : [table, ...below]);
}
