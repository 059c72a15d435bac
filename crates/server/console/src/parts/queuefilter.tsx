// The choice of a queue and a lane, which several pages begin with.
import { useEffect } from "preact/hooks";
import { get } from "../api/client";
import type { QueuePage } from "../api/shapes";
import { useLive } from "../live";
import { refine } from "../route";

const QUEUES_MAX = 1_000;
const EVERY_MS = 10_000;

interface Chosen {
  queue: string;
  lane: string;
  /** By which the first queue is chosen if none is; without it all may be looked at together. */
  most?: "waiting" | "dead";
}

export function QueueFilter({ queue, lane, most }: Chosen) {
  const { data } = useLive((signal) => get<QueuePage>(`/v1/queues?limit=${QUEUES_MAX}`, signal), EVERY_MS, []);
  const queues = data?.queues ?? [];
  const names = queues.map((one) => one.name);
  const fullest = most && [...queues].sort((a, b) => b[most] - a[most])[0]?.name;
  useEffect(() => {
    if (!queue && fullest !== undefined) refine({ queue: fullest });
  }, [queue, fullest]);
  return (
    <>
      <label>
        Queue
        <select value={queue} onChange={(event) => refine({ queue: event.currentTarget.value })}>
          {!most && <option value="">All queues</option>}
          {[...new Set([...names, ...(queue ? [queue] : [])])].map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Lane
        <input
          value={lane}
          placeholder="All lanes"
          disabled={!queue}
          onChange={(event) => refine({ lane: event.currentTarget.value })}
        />
      </label>
    </>
  );
}
