// What a page keeps of a meter and of a lane while it is open: a point for each second, and none where nothing is known.
import type { CallEvent, Points } from "../../api/shapes";
import type { Admissions } from "./charts";

export const STEP_MS = 1_000;
export const POINTS = 600;
/** Fewest points on a chart, so that what began just now has some width. */
const POINTS_MIN = 120;
/** What passed between two looks no further apart is spread over the seconds between; of a longer gap nobody knows when. */
const GAP_MAX = 5;

export function secondOf(at: string | number): number {
  return Math.floor(new Date(at).getTime() / STEP_MS);
}

/** The last so many seconds. */
export function secondsUntil(last: number, points = POINTS): number[] {
  return Array.from({ length: points }, (_, index) => last - (points - 1 - index));
}

/** One meter, looked at about once a second: what it admitted is the difference of two looks. */
export class MeterTrack {
  private readonly points = new Map<number, { weight: number | null; inFlight: number }>();
  private last: { second: number; total: number } | undefined;
  private began = 0;

  look(second: number, total: number, inFlight: number): void {
    const last = this.last;
    if (!last) this.began = second;
    this.last = { second, total };
    const gap = last ? second - last.second : Infinity;
    if (!last || gap < 0 || gap > GAP_MAX) return void this.points.set(second, { weight: null, inFlight });
    // A meter that was forgotten meanwhile counts from zero.
    const weight = total < last.total ? total : total - last.total;
    const steps = Math.max(1, gap);
    for (let step = 0; step < steps; step++) {
      const before = gap === 0 ? (this.points.get(second)?.weight ?? 0) : 0;
      this.points.set(second - step, { weight: before + weight / steps, inFlight });
    }
    for (const known of this.points.keys()) if (known <= second - POINTS) this.points.delete(known);
  }

  admissions(now: number): Admissions {
    const last = this.last?.second ?? now;
    const known = this.last ? last - this.began + 1 : 0;
    const times = secondsUntil(last, Math.min(POINTS, Math.max(known, POINTS_MIN)));
    return {
      stepMs: STEP_MS,
      times,
      weights: times.map((second) => this.points.get(second)?.weight ?? null),
      inFlight: times.map((second) => this.points.get(second)?.inFlight ?? null),
    };
  }
}

/** The starts of one lane: heard as they happen, and read in the history, perhaps both. */
export class StartTrack {
  private readonly seconds = new Map<number, Set<string>>();
  /** From this second on all are known. */
  private since = Infinity;

  /** Everything from this second on was heard or read. */
  knows(since: number): void {
    this.since = Math.min(this.since, since);
  }

  add(event: CallEvent): void {
    const at = event.event === "started" ? event.at : event.started;
    if (at === undefined) return;
    const second = secondOf(at);
    const starts = this.seconds.get(second) ?? new Set();
    this.seconds.set(second, starts.add(`${event.call} ${event.attempt ?? 0}`));
  }

  /** Leaves what was before this second. */
  forget(before: number): void {
    for (const known of this.seconds.keys()) if (known < before) this.seconds.delete(known);
  }

  starts(seconds: readonly number[]): Points {
    return seconds.map((second) => this.seconds.get(second)?.size ?? (second < this.since ? null : 0));
  }
}
