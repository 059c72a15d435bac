// What happened step by step, as the server keeps it: the last ten minutes by the second, the last day by the minute.
import { get, query } from "./api/client";
import type { Points, Series } from "./api/shapes";
import { useLive, type Live } from "./live";

export type Range = "minutes" | "day";

export const RANGES = [
  { id: "minutes", title: "10 min" },
  { id: "day", title: "1 day" },
] as const;

const STEPS: Record<Range, { step: string; everyMs: number; points: number }> = {
  minutes: { step: "1s", everyMs: 1_000, points: 600 },
  day: { step: "1m", everyMs: 5_000, points: 1_440 },
};

export type SeriesName = Exclude<keyof Series, "step_ms" | "until">;

export function useSeries(range: Range, of: { queue?: string; limit?: string } = {}): Live<Series> {
  const { step, everyMs } = STEPS[range];
  return useLive((signal) => get<Series>(query("/v1/series", { step, ...of }), signal), everyMs, [
    step,
    of.queue,
    of.limit,
  ]);
}

/** Fewest points on a chart, so that a young server's has some width. */
const POINTS_MIN = 120;

/** How many points a chart has: as long as the server remembers, and no longer than the range. */
function pointsOf(series: Series, range: Range): number {
  const known = Math.max(series.waiting?.length ?? 0, series.admitted?.length ?? 0);
  return Math.min(STEPS[range].points, Math.max(known, POINTS_MIN));
}

/** The instants of a range in seconds. */
export function timesOf(series: Series, range: Range): number[] {
  const until = new Date(series.until).getTime();
  const points = pointsOf(series, range);
  return Array.from({ length: points }, (_, index) => (until - (points - 1 - index) * series.step_ms) / 1000);
}

/** The values at these instants; what was before the server began is left open. */
export function valuesOf(series: Series, name: SeriesName, range: Range): Points {
  const points = pointsOf(series, range);
  const known = (series[name] ?? []).slice(-points);
  return [...Array<null>(points - known.length).fill(null), ...known];
}

/** The same by the second. */
export function ratesOf(series: Series, name: SeriesName, range: Range): Points {
  return valuesOf(series, name, range).map((value) => (value === null ? null : (value * 1000) / series.step_ms));
}

/** How much a second, over the last few steps; nothing where nothing is known. */
export function lately(series: Series | undefined, name: SeriesName, steps = 5): number | undefined {
  const known = (series?.[name] ?? []).slice(-steps).filter((value) => value !== null);
  if (!series || known.length === 0) return undefined;
  return (known.reduce((sum, value) => sum + value, 0) * 1000) / (known.length * series.step_ms);
}
