// Histograms as Prometheus counts them, and what can be read off them.

/** How many observations were at most each bound. Bounds ascend and end with `Infinity`. */
export interface Histogram {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

/** How many observations there were. */
export const total = ({ counts }: Histogram): number => counts.at(-1) ?? 0;

/** What was observed since `older`. A process that was restarted counts from nothing, so all of `newer` is new then. */
export function since(newer: Histogram, older: Histogram | undefined): Histogram {
  const isContinued =
    older !== undefined &&
    older.bounds.length === newer.bounds.length &&
    older.counts.every((count, at) => count <= newer.counts[at]!);
  return isContinued ? { bounds: newer.bounds, counts: newer.counts.map((count, at) => count - older.counts[at]!) } : newer;
}

/**
 * The value below which a share `q` of the observations lies, evenly spread within a bucket; the greatest finite bound for
 * what lies beyond it, and null without observations.
 */
export function quantile(histogram: Histogram, q: number): number | null {
  const { bounds, counts } = histogram;
  const rank = q * total(histogram);
  if (rank === 0) return null;
  const at = counts.findIndex((count) => count >= rank);
  const [low, high] = [at === 0 ? 0 : bounds[at - 1]!, bounds[at]!];
  if (!Number.isFinite(high)) return low;
  const below = at === 0 ? 0 : counts[at - 1]!;
  return low + ((high - low) * (rank - below)) / (counts[at]! - below);
}
