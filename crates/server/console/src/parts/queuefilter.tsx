// The choice of a queue and a lane, which several pages begin with.
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { get } from "../api/client";
import type { QueuePage } from "../api/shapes";
import { useLive, type Live } from "../live";
import { refine } from "../route";
import { TypedInput } from "./fields";
import { Loading, Trouble } from "./notice";

const QUEUES_MAX = 1_000;
const EVERY_MS = 10_000;

interface Chosen {
  queue: string;
  lane: string;
  /** By which the first queue is chosen if none is; without it all may be looked at together. */
  most?: "waiting" | "dead";
  queues: Live<QueuePage>;
}

/** The queues to choose from. */
export function useQueues(): Live<QueuePage> {
  return useLive((signal) => get<QueuePage>(`/v1/queues?limit=${QUEUES_MAX}`, signal), EVERY_MS, []);
}

/** What is shown while no queue is chosen: that there is none is not said before it is known. */
export function NoQueue({ queues, children }: { queues: Live<QueuePage>; children: ComponentChildren }) {
  if (queues.error) return <Trouble error={queues.error} />;
  // Of those that are there, one is chosen in a moment.
  if (queues.data?.queues.length !== 0) return <Loading what="queues" />;
  return children;
}

export function QueueFilter({ queue, lane, most, queues: { data } }: Chosen) {
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
        <TypedInput value={lane} placeholder="All lanes" disabled={!queue} commit={(lane) => refine({ lane })} />
      </label>
    </>
  );
}
