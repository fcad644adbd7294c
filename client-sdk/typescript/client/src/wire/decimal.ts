// Exact decimals, for numbers that JavaScript's own would round: numerics, and numbers of different types beside each
// other. Their zeros are never written out: an exponent may be as large as anybody likes to write it.

/** Compares what JavaScript's own operators do. */
export const simple = (a: string | number | bigint | boolean, b: string | number | bigint | boolean): number =>
  a < b ? -1 : a > b ? 1 : 0;

/**
 * `rank` · 0.`digits` · 10^`point`. The rank is the sign; or ±2 for the infinities, and 3 for NaN. The digits neither
 * begin nor end with 0.
 */
export type Decimal = readonly [rank: number, point: number, digits: string];

/** The exact value of a number or of a numeric's text. */
export function decimalOf(value: number | bigint | string): Decimal {
  if (typeof value === "number") return ofNumber(value);
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d+))?$/i.exec(`${value}`);
  if (!parts) return ofNumber(Number(value)); // NaN and the infinities
  const [, sign, whole, fraction = "", exponent = 0] = parts;
  const [, zeros, digits] = /^(0*)(.*[1-9])?/.exec(whole! + fraction)!;
  return digits ? [Number(`${sign}1`), whole!.length - zeros!.length + Number(exponent), digits] : [0, 0, ""];
}

/** A double is a whole number times a power of two, and so an exact decimal. */
function ofNumber(value: number): Decimal {
  if (!Number.isFinite(value)) return [Math.sign(value) * 2 || 3, 0, ""];
  let scale = 0;
  let whole = value;
  while (!Number.isInteger(whole)) {
    whole *= 2;
    scale += 1;
  }
  return decimalOf(`${BigInt(whole) * 5n ** BigInt(scale)}e-${scale}`);
}

/** Below, equal, above as negative, 0, positive. NaN equals itself and is above everything. */
export const compareDecimals = (a: Decimal, b: Decimal): number =>
  a[0] - b[0] || a[0] * (simple(a[1], b[1]) || simple(a[2], b[2])) || 0;

/** A text that is the same for equal decimals. */
export const normalText = (value: Decimal): string => value.join();
