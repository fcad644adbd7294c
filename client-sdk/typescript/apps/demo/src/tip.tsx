// What a chart says of the thing under the pointer.

import type { ReactNode } from "react";

interface Props {
  /** The thing's place in the plot, in pixels. */
  readonly x: number;
  readonly y: number;
  /** The plot's width. */
  readonly width: number;
  readonly children: ReactNode;
}

/** Stands beside the thing, on the side that has more room. */
export function Tip({ x, y, width, children }: Props) {
  const top = Math.max(0, y - 22);
  return <p className="tip" style={x < width / 2 ? { left: x + 14, top } : { right: width - x + 14, top }}>{children}</p>;
}
