// Who is looking at the page: an id that is made once for each browser, and the name that was written last.

const ID = "tidegate-demo-visitor";
const NAME = "tidegate-demo-name";

/** A random id with the form of a UUID; also where the page is not in a secure context. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** A browser may forbid to keep anything; then it is kept until the page is left. */
function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): string {
  try {
    localStorage.setItem(key, value);
  } catch {
    // As above.
  }
  return value;
}

export const visitor = read(ID) ?? write(ID, newId());
export const rememberedName = (): string => read(NAME) ?? "";
export const rememberName = (name: string): void => void write(NAME, name);
