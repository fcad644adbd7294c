// Numbers as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** A count: `12,345`. */
export const count = (n: number): string => whole.format(n);

/** `1 row`, `2 rows`. */
export const counted = (n: number, noun: string): string => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A rate or another figure that need not be exact. */
export const figure = (n: number): string => (Math.abs(n) >= 1_000 ? whole.format(Math.round(n)) : short.format(n));

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** `1.5 MiB`. */
export function bytes(n: number): string {
  const unit = n < 1 ? 0 : Math.min(Math.floor(Math.log2(n) / 10), BYTE_UNITS.length - 1);
  return `${figure(n / 1024 ** unit)} ${BYTE_UNITS[unit]}`;
}

/** A short time, given in seconds: `250 µs`, `1.2 ms`, `3 s`. */
export function time(seconds: number): string {
  if (seconds === 0) return "0 s";
  if (seconds < 0.001) return `${figure(seconds * 1e6)} µs`;
  return seconds < 1 ? `${figure(seconds * 1e3)} ms` : `${figure(seconds)} s`;
}

/** How long something is there, given in seconds: `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`. */
export function age(seconds: number): string {
  const [minutes, hours, days] = [60, 3_600, 86_400].map((unit) => Math.floor(seconds / unit)) as [number, number, number];
  const pair = (first: string, n: number, second: string): string => (n > 0 ? `${first} ${n} ${second}` : first);
  if (days > 0) return pair(`${days} d`, hours % 24, "h");
  if (hours > 0) return pair(`${hours} h`, minutes % 60, "min");
  return minutes > 0 ? `${minutes} min` : `${Math.floor(seconds)} s`;
}
