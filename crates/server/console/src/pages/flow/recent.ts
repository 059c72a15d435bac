// Timelines that this page keeps itself, from when it is opened: of one meter, and of one lane.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, path, query } from "../../api/client";
import { follow } from "../../api/events";
import type { HistoryPage, Meter, Points } from "../../api/shapes";
import { isIdle, useLive } from "../../live";
import { serverNow } from "../../parts/time";
import { token } from "../../session";
import { useStore } from "../../store";
import type { Admissions } from "./charts";
import { MeterTrack, POINTS, STEP_MS, StartTrack, secondOf, secondsUntil } from "./track";

const HISTORY_PAGE = 1_000;
/** Most pages that are read back: what is before them is left open. */
const HISTORY_PAGES_MAX = 20;

export function useMeterFlow(
  limit: string,
  partition: string,
): { meter: Meter | undefined; error: Error | undefined; admissions: Admissions } {
  const holder = useStore(token);
  const track = useMemo(() => new MeterTrack(), [limit, partition, holder]);
  const { data: meter, error } = useLive(
    async (signal) => {
      const meter = await get<Meter>(path`/v1/meters/${limit}/${partition}`, signal);
      track.look(secondOf(serverNow()), meter.admitted?.weight ?? 0, meter.in_flight);
      return meter;
    },
    STEP_MS,
    [limit, partition],
  );
  return { meter, error, admissions: track.admissions(secondOf(serverNow())) };
}

/** The starts of one lane by the second: those that history has, and then as they happen. */
export function useLaneFlow(
  queue: string,
  lane: string,
): { times: number[]; starts: Points; error: Error | undefined } {
  const holder = useStore(token);
  const track = useMemo(() => new StartTrack(), [queue, lane, holder]);
  const [now, setNow] = useState(secondOf(serverNow()));
  const [error, setError] = useState<Error>();
  useEffect(() => {
    const ends = new AbortController();
    setError(undefined);
    // Once events are heard, so that none is between what history has and what is heard; and for those that were missed.
    let reading: Promise<void> | undefined;
    const lookBack = () =>
      (reading ??= readBack(queue, lane, track, ends.signal)
        .catch(failed)
        .finally(() => (reading = undefined)));
    const failed = (error: Error) => void (ends.signal.aborted || setError(error));
    const heard = {
      event: track.add.bind(track),
      missed: lookBack,
      connected: (is: boolean) => is && (track.knows(secondOf(serverNow()) + 1), lookBack()),
      failed,
    };
    void follow({ queue, lane }, heard, ends.signal);
    const timer = setInterval(() => {
      const now = secondOf(serverNow());
      track.forget(now - POINTS);
      if (!isIdle()) setNow(now);
    }, STEP_MS);
    return () => (ends.abort(), clearInterval(timer));
  }, [track]);
  const times = secondsUntil(now);
  return { times, starts: track.starts(times), error };
}

/** Adds what history has of the time that is shown, the newest first. */
async function readBack(queue: string, lane: string, track: StartTrack, signal: AbortSignal): Promise<void> {
  const first = secondOf(serverNow()) - POINTS;
  const from = new Date(first * STEP_MS).toISOString();
  let after: string | undefined;
  for (let read = 0; read < HISTORY_PAGES_MAX; read++) {
    const page: HistoryPage = await get(
      query("/v1/history", { queue, lane, from, limit: HISTORY_PAGE, after }),
      signal,
    );
    page.events.forEach((event) => track.add(event));
    const oldest = page.events.at(-1);
    track.knows(page.next === undefined ? first : oldest ? secondOf(oldest.at) + 1 : Infinity);
    if (page.next === undefined) return;
    after = page.next;
  }
}
