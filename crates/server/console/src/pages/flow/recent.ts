// Timelines that this page keeps itself, from when it is opened: of one meter, and of one lane.
import { useEffect, useState } from "preact/hooks";
import { get, path, query } from "../../api/client";
import { follow } from "../../api/events";
import type { HistoryPage, Meter } from "../../api/shapes";
import { useLive } from "../../live";
import type { Admissions } from "./charts";

const STEP_MS = 1_000;
const POINTS = 600;
/** Fewest points on a chart, so that what began just now has some width. */
const POINTS_MIN = 120;
const HISTORY_MAX = 1_000;

/** One meter, looked at once a second: what it admitted is the difference of two looks. */
export function useMeterFlow(
  limit: string,
  partition: string,
): { meter: Meter | undefined; error: Error | undefined; admissions: Admissions } {
  const { data: meter, error } = useLive(
    (signal) => get<Meter>(path`/v1/meters/${limit}/${partition}`, signal),
    STEP_MS,
    [limit, partition],
  );
  const [kept, setKept] = useState<{ at: number; total: number; weight: number; inFlight: number }[]>([]);
  useEffect(() => setKept([]), [limit, partition]);
  useEffect(() => {
    if (!meter) return;
    const total = meter.admitted?.weight ?? 0;
    setKept((before) => {
      const last = before.at(-1);
      // A meter that was forgotten meanwhile counts from zero.
      const weight = last === undefined ? 0 : total < last.total ? total : total - last.total;
      return [...before, { at: Date.now(), total, weight, inFlight: meter.in_flight }].slice(-POINTS);
    });
  }, [meter]);
  const latest = kept.at(-1)?.at ?? Date.now();
  const times = timesUntil(latest, Math.max(kept.length, POINTS_MIN));
  const lead = Array<null>(times.length - kept.length).fill(null);
  const admissions = {
    stepMs: STEP_MS,
    times,
    weights: [...lead, ...kept.map((one) => one.weight)],
    inFlight: [...lead, ...kept.map((one) => one.inFlight)],
  };
  return { meter, error, admissions };
}

/** The starts of one lane by the second: those that history has, and then as they happen. */
export function useLaneFlow(queue: string, lane: string): { times: number[]; starts: number[] } {
  const [now, setNow] = useState(Date.now());
  const [seconds, setSeconds] = useState<Map<number, number>>(new Map());
  useEffect(() => {
    const ends = new AbortController();
    const counts = new Map<number, number>();
    const add = (at: string) => {
      const second = Math.floor(new Date(at).getTime() / STEP_MS);
      counts.set(second, (counts.get(second) ?? 0) + 1);
    };
    const began = Date.now();
    const from = new Date(began - POINTS * STEP_MS).toISOString();
    const before = get<HistoryPage>(query("/v1/history", { queue, lane, from, limit: HISTORY_MAX }), ends.signal);
    before.then(
      ({ events }) =>
        events.forEach((event) => event.started && new Date(event.started).getTime() < began && add(event.started)),
      () => {},
    );
    void follow({ queue, lane }, { event: (event) => event.event === "started" && add(event.at) }, ends.signal);
    const timer = setInterval(() => (setNow(Date.now()), setSeconds(new Map(counts))), STEP_MS);
    return () => (ends.abort(), clearInterval(timer));
  }, [queue, lane]);
  const times = timesUntil(now, POINTS);
  return { times, starts: times.map((at) => seconds.get(Math.floor(at)) ?? 0) };
}

function timesUntil(latestMs: number, points: number): number[] {
  const last = Math.floor(latestMs / STEP_MS);
  return Array.from({ length: points }, (_, index) => last - (points - 1 - index));
}
