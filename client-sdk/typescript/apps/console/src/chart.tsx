// A plot over time with its newest figures beside it; those at the pointer while there is one.

/*! uPlot, Copyright (c) 2022 Leon Sorokin, MIT License */
import uPlot from "uplot";
import { useEffect, useRef, useState, useSyncExternalStore, type ReactNode } from "react";
import type { Line } from "./reading.js";

/** One line. */
export interface ChartLine {
  readonly label: string;
  readonly line: Line;
}

interface Props {
  readonly title: string;
  /** What is plotted, for those who wonder. */
  readonly note: string;
  readonly at: readonly number[];
  readonly lines: readonly ChartLine[];
  readonly show: (value: number) => string;
  /** What to say while there is nothing to plot. */
  readonly none?: string;
  /** The steps between marks of the axis; otherwise decimal ones. */
  readonly steps?: number[];
}

const HEIGHT = 120;
/** The axis of time covers at least so much, seconds, however little of it is known. */
const SPAN_SECONDS_MIN = 60;
const COLOURS = ["--line-1", "--line-2", "--line-3"];

export function Chart({ title, note, at, lines, show, none = "Nothing to show yet", steps }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [pointed, setPointed] = useState<number | null>(null);
  const scheme = useSyncExternalStore(followScheme, isDark);
  const showing = useRef(show);
  showing.current = show;
  const labels = lines.map((line) => line.label).join();

  useEffect(() => {
    const element = box.current!;
    const style = getComputedStyle(element);
    const colour = (name: string): string => style.getPropertyValue(name);
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const made = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        padding: [8, 4, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
        scales: {
          x: { range: (_, min, max) => [Math.min(min ?? 0, (max ?? 0) - SPAN_SECONDS_MIN), max ?? 0] },
          y: { range: (_, __, max) => [0, max > 0 ? max * 1.15 : 1] },
        },
        axes: [
          { ...axis, size: 22, space: 72, values: (self, splits) => splits.map((at) => (isWithin(self, at) ? clock(at) : "")) },
          { ...axis, size: 56, gap: 6, space: 32, ...(steps && { incrs: steps }), values: (_, splits) => splits.map((value) => showing.current(value)) },
        ],
        series: [
          {},
          ...labels.split(",").map((label, index) => ({
            label,
            stroke: colour(COLOURS[index]!),
            width: 1.5,
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(self) => setPointed(self.cursor.idx ?? null)] },
      },
      [[]],
      element,
    );
    plot.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    sized.observe(element);
    return () => {
      sized.disconnect();
      made.destroy();
    };
  }, [scheme, labels]);

  useEffect(() => {
    plot.current?.setData([[...at], ...lines.map(({ line }) => [...line])]);
  }, [at, lines, scheme]);

  const index = pointed !== null && pointed < at.length ? pointed : at.length - 1;
  return (
    <figure className="chart">
      <figcaption>
        <h3 title={note}>{title}</h3>
        <dl>
          {lines.map(({ label, line }, number) => {
            const value = line[index];
            return (
              <div key={label}>
                <dt><span className="swatch" style={{ background: `var(${COLOURS[number]})` }} />{label}</dt>
                <dd>{value === null || value === undefined ? "–" : show(value)}</dd>
              </div>
            );
          })}
        </dl>
      </figcaption>
      <div className="plot">
        <div ref={box} aria-hidden="true" />
        {lines.every(({ line }) => line.every((value) => value === null)) && <p className="none"><span>{none}</span></p>}
      </div>
      <p className="visually-hidden">{note}</p>
    </figure>
  );
}

/** Whether there is room for a moment's time at the axis: at its right end it would be cut off. */
function isWithin({ scales: { x } }: uPlot, at: number): boolean {
  const [min, max] = [x!.min!, x!.max!];
  return at <= max - 0.06 * (max - min);
}

const clock = (seconds: number): string =>
  new Date(seconds * 1_000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const darkness = matchMedia("(prefers-color-scheme: dark)");
const isDark = (): boolean => darkness.matches;
const followScheme = (changed: () => void): (() => void) => {
  darkness.addEventListener("change", changed);
  return () => darkness.removeEventListener("change", changed);
};
