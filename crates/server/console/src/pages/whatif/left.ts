// What is left of a backlog as time goes on.
import type { Forecast, LaneForecast } from "../../api/shapes";

/** How many wait that long after now. Within a step they are taken to start evenly. */
export function leftAt(forecast: Forecast, ms: number): number {
  const whole = Math.min(Math.floor(ms / forecast.step_ms), forecast.starts.length);
  const before = forecast.starts.slice(0, whole).reduce((sum, starts) => sum + starts, 0);
  const part = (forecast.starts[whole] ?? 0) * (ms / forecast.step_ms - whole);
  return Math.round(forecast.waiting - before - part);
}

/** Milliseconds at which either has a step, the end of the longer last. */
export function stepsOf(forecasts: Forecast[]): number[] {
  const edges = forecasts.flatMap(({ step_ms, starts }) => [0, ...starts.map((_, index) => (index + 1) * step_ms)]);
  return [...new Set(edges)].sort((a, b) => a - b);
}

/** A lane as it is and as it would be; missing where it is not among those that wait longest. */
export interface LanePair {
  queue: string;
  lane: string;
  waiting: number;
  now: LaneForecast | undefined;
  then: LaneForecast | undefined;
}

/** Lanes of both, those first that wait longest as things are. */
export function pairsOf(now: Forecast, then: Forecast): LanePair[] {
  const pairs = new Map<string, LanePair>();
  const pairOf = ({ queue, lane, waiting }: LaneForecast) => {
    const key = JSON.stringify([queue, lane]);
    const pair = pairs.get(key) ?? { queue, lane, waiting, now: undefined, then: undefined };
    pairs.set(key, pair);
    return pair;
  };
  for (const one of now.lanes) pairOf(one).now = one;
  for (const one of then.lanes) pairOf(one).then = one;
  return [...pairs.values()];
}
