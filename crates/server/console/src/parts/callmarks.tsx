// Calls in tables and stories: their state, what they owe, and events in words.
import type { Call, CallEvent, CallView, Toll } from "../api/shapes";
import { count, nameOf, span, spanOf } from "../format";
import { href } from "../route";
import { Mark, type Tone } from "./marks";

const STATES: Record<Call["state"], Tone> = {
  waiting: "wait",
  not_due: "plain",
  resting: "wait",
  in_flight: "flight",
  dead: "stop",
  done: "pass",
  cancelled: "plain",
  expired: "stop",
  superseded: "plain",
  dropped: "stop",
};

export function StateMark({ state }: { state: Call["state"] }) {
  return <Mark tone={STATES[state]}>{state.replace("_", " ")}</Mark>;
}

export function Tolls({ tolls }: { tolls: Toll[] }) {
  if (tolls.length === 0) return <span class="soft">no limit</span>;
  const text = tolls.map((toll) => `${count(toll.weight ?? 1)} at ${nameOf(toll.limit, toll.partition)}`).join(", ");
  return (
    <span title={text}>
      {tolls.map((toll, index) => (
        <>
          {index > 0 && ", "}
          <span class="number">{count(toll.weight ?? 1)}</span> <small>at</small>{" "}
          <a href={href("limits", [toll.limit], { partition: toll.partition })}>{nameOf(toll.limit, toll.partition)}</a>
        </>
      ))}
    </span>
  );
}

export function CallLink({ id }: { id: string }) {
  return (
    <a class="mono" href={href("calls", [id])}>
      {id}
    </a>
  );
}

export function triesOf({ attempts }: CallView): string {
  const parts = [
    attempts.failures > 0 ? `${count(attempts.failures)} failed` : "",
    attempts.crashes > 0 ? `${count(attempts.crashes)} crashed` : "",
    attempts.limited > 0 ? `${count(attempts.limited)} limited` : "",
  ];
  return parts.filter(Boolean).join(", ") || "none";
}

export function toneOfEvent(event: CallEvent): Tone {
  switch (event.event) {
    case "started":
      return "flight";
    case "throttled":
    case "unknown":
      return "wait";
    case "settled":
      return event.outcome === "done" ? "pass" : event.outcome === "released" ? "plain" : "stop";
    case "ended":
      return event.end === "done"
        ? "pass"
        : event.end === "dead" || event.end === "expired" || event.end === "dropped"
          ? "stop"
          : "plain";
    default:
      return "plain";
  }
}

const OUTCOMES: Record<string, string> = {
  done: "was done",
  failed: "failed",
  dead: "failed for good",
  released: "was handed back",
  limited: "was limited by the upstream",
  crashed: "crashed: its lease ran out",
  cancelled: "was cancelled",
};

/** What happened, in a sentence. */
export function eventInWords(event: CallEvent): string {
  switch (event.event) {
    case "enqueued":
      return "accepted";
    case "revived":
      return "revived from the dead";
    case "unknown":
      return `waits for ${nameOf(event.limit ?? "", event.partition)}, which nobody has defined`;
    case "throttled":
      return `${nameOf(event.limit ?? "", event.partition)} held back: ${count(event.granted ?? 0)} of ${count(event.wanted ?? 0)} went`;
    case "started":
      return `attempt ${event.attempt ?? 1} started${waitsInWords(event)}`;
    case "settled":
      return `attempt ${event.attempt ?? 1} ${OUTCOMES[event.outcome ?? ""] ?? "was settled"}${tookInWords(event)}${waitsInWords(event)}`;
    case "ended":
      return `ended: ${event.end ?? ""} after ${count(event.attempts ?? 0)} attempt${event.attempts === 1 ? "" : "s"}`;
  }
}

function tookInWords(event: CallEvent): string {
  if (!event.started) return "";
  return ` after ${span(new Date(event.at).getTime() - new Date(event.started).getTime())}`;
}

function waitsInWords(event: CallEvent): string {
  const waits = Object.entries(event.waits ?? {});
  if (waits.length === 0) return "";
  return `, having waited ${waits.map(([limit, text]) => `${span(spanOf(text))} at ${limit}`).join(" and ")}`;
}
