// What is in a call's way, in one line: the reason that ends last, and how many others there are.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, path } from "../api/client";
import type { Call, Explanation, Reason } from "../api/shapes";
import { reasonInShort, reasonInWords } from "../format";
import { useLive } from "../live";
import { href } from "../route";
import { Mark, type Tone } from "./marks";
import { When } from "./time";

const EVERY_MS = 5_000;

/** Asks why the call waits, as long as it is in sight: the whole call comes with the answer. */
export function Blocked({ call }: { call: string }) {
  const place = useRef<HTMLSpanElement>(null);
  const isInSight = useInSight(place);
  const { data, refresh } = useLive(
    (signal) => get<Call>(path`/v1/calls/${call}`, signal),
    EVERY_MS,
    [call],
    () => !isInSight,
  );
  useEffect(() => {
    if (isInSight) refresh();
  }, [isInSight]);
  return <span ref={place}>{data ? <Way call={data} /> : <span class="soft">…</span>}</span>;
}

function useInSight(place: { current: Element | null }): boolean {
  const [isInSight, setInSight] = useState(false);
  useEffect(() => {
    const watcher = new IntersectionObserver((seen) => setInSight(seen.at(-1)?.isIntersecting ?? false));
    if (place.current) watcher.observe(place.current);
    return () => watcher.disconnect();
  }, []);
  return isInSight;
}

function Way({ call }: { call: Call }) {
  if (!call.waiting) return <Mark tone="flight">{call.state.replace("_", " ")}</Mark>;
  return <Why explanation={call.waiting} />;
}

export function Why({ explanation }: { explanation: Explanation }) {
  const [first, ...others] = [...explanation.reasons].sort((a, b) => endOf(b) - endOf(a));
  if (!first) return <Mark tone="pass">nothing</Mark>;
  const [text, { until }] = [reasonInShort(first), reasonInWords(first)];
  return (
    <span title={explanation.reasons.map((reason) => reasonInWords(reason).text).join("; ")}>
      <Mark tone={toneOf(first)}>
        {first.reason === "meter" ? (
          <a href={href("limits", [first.limit], { partition: first.partition })}>{text}</a>
        ) : (
          text
        )}
      </Mark>{" "}
      {until && <When at={until} />}
      {others.length > 0 && <small> and {others.length} more</small>}
    </span>
  );
}

export function toneOf(reason: Reason): Tone {
  switch (reason.reason) {
    case "in_flight":
    case "lane_busy":
      return "flight";
    case "queue_paused":
    case "lane_paused":
    case "lane_held":
      return "stop";
    case "meter":
      return reason.cause === "spent" || reason.cause === "slots" || reason.cause === "turn" ? "wait" : "stop";
    case "behind":
    case "not_due":
      return "plain";
    default:
      return "wait";
  }
}

/** What has no known end comes first. */
function endOf(reason: Reason): number {
  if (reason.reason === "behind") return -1;
  const { until } = reasonInWords(reason);
  return until ? new Date(until).getTime() : reason.reason === "no_worker" ? 0 : Infinity;
}
