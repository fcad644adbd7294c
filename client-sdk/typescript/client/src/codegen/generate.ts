// A schema in TypeScript from the tables and views of a running server.

/** A column as `show columns` tells it. */
export interface ShownColumn {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  readonly default: unknown;
  /** Its place in the key, from 1; null outside. */
  readonly key: number | null;
}

/** A table or view with its columns in order. */
export interface ShownTable {
  readonly name: string;
  readonly view: boolean;
  readonly columns: readonly ShownColumn[];
}

/** The source of a module that exports each table, and each view that has a key; `module` is where it imports from. */
export function generate(tables: readonly ShownTable[], module: string): string {
  const types = new Set(tables.filter(hasKey).flatMap(({ columns }) => columns.map(functionOf)));
  const names = new Set<string>();
  const declared = tables.map((table) => (hasKey(table) ? declaration(table, exportName(table.name, names)) : keyless(table)));
  return [
    "// Made by tidegate-codegen from a server's tables and views; make it anew when they change.\n",
    `import { ${[...types, "table"].sort().join(", ")} } from ${JSON.stringify(module)};\n`,
    ...declared,
  ].join("\n");
}

const hasKey = ({ columns }: ShownTable): boolean => columns.some(({ key }) => key !== null);

/** What makes a column of its type; the digits of a `numeric(10,2)` are the server's to keep. */
const functionOf = ({ type }: ShownColumn): string => type.replace(/\(.*/, "");

/** Rows without a key have nothing that `from` could order and keep them by. */
const keyless = ({ name }: ShownTable): string =>
  `// ${JSON.stringify(name)} is not here: its rows have no key, so that \`from\` cannot read it; a query in \`sql\` can.\n`;

function declaration({ name, view, columns }: ShownTable, exported: string): string {
  const lines = columns.map((column) => {
    const nullable = column.nullable ? ".orNull()" : "";
    const preset = column.default === null ? "" : `.default(${JSON.stringify(column.default)})`;
    return `    ${memberName(column.name)}: ${functionOf(column)}()${nullable}${preset},\n`;
  });
  const key = columns.filter((column) => column.key !== null).sort((a, b) => a.key! - b.key!);
  const keyNames = key.map((column) => JSON.stringify(column.name)).join(", ");
  const note = view ? "/** A view: it is read like a table, and only the server writes it. */\n" : "";
  return `${note}export const ${exported} = table(\n  ${JSON.stringify(name)},\n  {\n${lines.join("")}  },\n  { key: [${keyNames}] },\n);\n`;
}

/** `flight_notes` as `flightNotes`; never a word that the module uses already, nor the same twice. */
function exportName(name: string, taken: Set<string>): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const camel = words.map((word, index) => (index === 0 ? word : word[0]!.toUpperCase() + word.slice(1))).join("");
  let own = /^\p{L}/u.test(camel) && !RESERVED.has(camel) ? camel : `${camel}Table`.replace(/^(?!\p{L})/u, "t");
  while (taken.has(own)) own += "_";
  taken.add(own);
  return own;
}

function memberName(name: string): string {
  // Written as a name or as a text, it would set the prototype.
  if (name === "__proto__") return '["__proto__"]';
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name) ? name : JSON.stringify(name);
}

/** Words that cannot name an export, and what the module imports. */
const RESERVED = new Set(
  ("table bool int8 float8 text bytea timestamptz date uuid numeric json arguments await break case catch class const continue " +
    "debugger default delete do else enum eval export extends false finally for function if implements import in instanceof " +
    "interface let new null package private protected public return static super switch this throw true try typeof var void while with yield").split(" "),
);
