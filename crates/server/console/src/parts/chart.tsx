// The one chart: what happened, step by step, drawn by uPlot in the colours of the page.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Points } from "../api/shapes";
import { count, perSecond } from "../format";
import { painted } from "../session";
import { useStore } from "../store";

export interface Line {
  label: string;
  unit: string;
  /** The name of a colour of the page: `--pass`. */
  color: string;
  values: Points;
  kind: "bars" | "line" | "area" | "bound";
}

/** What the times are. */
export interface Axis {
  at(seconds: number, hasSeconds?: boolean): string;
  /** When the last of them is, in a word. */
  last: string;
}

interface Drawn {
  label: string;
  /** In seconds, oldest first. */
  times: number[];
  lines: Line[];
  height?: number;
  /** Times of the day unless it is said. */
  axis?: Axis;
}

const HEIGHT_PX = 180;
/** The scale ends here at the lowest, so that its ticks are whole. */
const TOP_MIN = 4;
const CLOCK: Axis = { at: clockOf, last: "now" };

export function Chart({ label, times, lines, height = HEIGHT_PX, axis = CLOCK }: Drawn) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const colours = useStore(painted);
  const data: uPlot.AlignedData = [times, ...lines.map((line) => line.values)];
  const shape = JSON.stringify([colours, height, lines.map(({ label, color, kind }) => [label, color, kind])]);

  useEffect(() => {
    const parent = box.current;
    if (!parent) return;
    const made = new uPlot(options(parent, lines, height, axis), data, parent);
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height }));
    watcher.observe(parent);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [times, lines]);

  return <div class="chart" ref={box} role="img" aria-label={`${label}: ${inWords(lines, axis)}`} />;
}

/** What the chart says, for those who do not see it. */
function inWords(lines: Line[], axis: Axis): string {
  const parts = lines.map(({ label, unit, values }) => {
    const known = values.filter((value) => value !== null);
    const most = known.reduce((most, value) => Math.max(most, value), 0);
    return `${label} ${axis.last} ${figure(known.at(-1) ?? 0)}, at most ${figure(most)} ${unit}`;
  });
  return parts.join("; ");
}

function options(parent: HTMLElement, lines: Line[], height: number, times: Axis): uPlot.Options {
  const colour = (name: string) => getComputedStyle(parent).getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour("--soft"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px Sans, system-ui, sans-serif",
  };
  return {
    width: parent.clientWidth,
    height,
    padding: [8, 4, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, __, most) => [0, Math.max(TOP_MIN, most * 1.12)] } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((at) => times.at(at)), space: 70, size: 26 },
      { ...axis, size: 44, values: (_, ticks) => ticks.map(shortened), space: 32 },
    ],
    series: [
      { label: "at", value: (_, at) => (at == null ? times.last : times.at(at, true)) },
      ...lines.map((line) => seriesOf(line, colour)),
    ],
  };
}

function seriesOf(line: Line, colour: (name: string) => string): uPlot.Series {
  const stroke = colour(line.color);
  const isBars = line.kind === "bars";
  const series: uPlot.Series = {
    label: line.label,
    stroke,
    width: isBars ? 0 : 1.5,
    points: { show: false },
    value: (plot, value, index) => `${figure(value ?? latest(plot, index))} ${line.unit}`,
  };
  if (isBars) series.paths = uPlot.paths.bars?.({ size: [0.9, 40], align: -1 }) ?? uPlot.paths.linear!();
  if (isBars) series.fill = `${stroke}cc`;
  if (line.kind === "area") series.fill = `${stroke}2e`;
  if (line.kind === "bound") series.dash = [5, 4];
  return series;
}

/** Without a pointer on the chart its legend tells the latest. */
function latest(plot: uPlot, index: number): number {
  return plot.data[index]?.at(-1) ?? 0;
}

function figure(value: number): string {
  if (value > 0 && value < 0.1) return value.toPrecision(2);
  return Number.isInteger(value) ? count(value) : perSecond(value);
}

function clockOf(at: number, hasSeconds = false): string {
  const date = new Date(at * 1000);
  const shown: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
  const day: Intl.DateTimeFormatOptions = { day: "numeric", month: "short" };
  // A day goes back into yesterday: where it begins is said, and at the pointer which of the two it is.
  if (!hasSeconds && date.getHours() + date.getMinutes() + date.getSeconds() === 0)
    return date.toLocaleDateString("en-GB", day);
  if (hasSeconds && date.toDateString() !== new Date().toDateString()) Object.assign(shown, day);
  if (hasSeconds || date.getSeconds() !== 0) shown.second = "2-digit";
  return date.toLocaleString("en-GB", shown);
}

function shortened(value: number): string {
  return Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}
