// Exact decimals, for numbers that JavaScript's own would round: numerics, and numbers of different types beside each
// other.

/** `digits` · 10^-`scale`; or NaN, or an infinity, as a number. */
export type Decimal = { readonly digits: bigint; readonly scale: number } | number;

/** The exact value of a number or of a numeric's text. */
export function decimalOf(value: number | bigint | string): Decimal {
  if (typeof value === "bigint") return { digits: value, scale: 0 };
  if (typeof value === "number") return ofNumber(value);
  const parts = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(value);
  if (!parts) return Number(value); // NaN and the infinities
  const digits = BigInt((parts[2] ?? "") + (parts[3] ?? "") || "0");
  const scale = (parts[3] ?? "").length - Number(parts[4] ?? 0);
  return { digits: parts[1] === "-" ? -digits : digits, scale };
}

/** A double is a whole number times a power of two, and so an exact decimal. */
function ofNumber(value: number): Decimal {
  if (!Number.isFinite(value)) return value;
  let scale = 0;
  let whole = value;
  while (!Number.isInteger(whole)) {
    whole *= 2;
    scale += 1;
  }
  return { digits: BigInt(whole) * 5n ** BigInt(scale), scale };
}

/** Below, equal, above as -1, 0, 1. NaN equals itself and is above everything. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  if (typeof a === "number" || typeof b === "number") {
    return Math.sign(rank(a) - rank(b));
  }
  const scale = Math.max(a.scale, b.scale);
  const [x, y] = [shift(a, scale), shift(b, scale)];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** A text that is the same for equal decimals. */
export function normalText(value: Decimal): string {
  if (typeof value === "number") return String(value);
  const digits = value.digits.toString();
  const kept = digits.replace(/0+$/, "");
  return kept === "" ? "0" : `${kept}e${digits.length - kept.length - value.scale}`;
}

function shift(value: Exclude<Decimal, number>, scale: number): bigint {
  return value.digits * 10n ** BigInt(scale - value.scale);
}

function rank(value: Decimal): number {
  if (typeof value !== "number") return 0;
  return Number.isNaN(value) ? 2 : Math.sign(value);
}
