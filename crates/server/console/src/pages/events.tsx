// Events: what happens to calls, as it happens; a thousand a second stay smooth, and a pause holds them still.
import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../api/events";
import type { CallEvent, EventKind } from "../api/shapes";
import { isHeld } from "../live";
import { clock, count, counted, idIn, instant, perSecond } from "../format";
import { CallLink, eventInWords, toneOfEvent } from "../parts/callmarks";
import { Empty } from "../parts/empty";
import { TypedInput } from "../parts/fields";
import { Mark } from "../parts/marks";
import { Trouble } from "../parts/notice";
import { Head, Panel } from "../parts/page";
import { QueueFilter, useQueues } from "../parts/queuefilter";
import { Table, type Column } from "../parts/table";
import { refine, type Route } from "../route";
import { token } from "../session";
import { useStore } from "../store";

/** Events kept on the page; older ones are in the history. */
const KEPT_MAX = 5_000;
/** Shortest time between two paints: faster than anyone reads would only warm the machine. */
const PAINT_MS = 100;
const KINDS: EventKind[] = ["enqueued", "started", "throttled", "settled", "ended", "revived", "unknown"];

interface Kept {
  number: number;
  event: CallEvent;
}

interface Tail {
  events: Kept[];
  heard: number;
  rate: number;
  hasMissed: boolean;
  isConnected: boolean;
  error: Error | undefined;
}

const NOTHING: Tail = { events: [], heard: 0, rate: 0, hasMissed: false, isConnected: false, error: undefined };

export function EventsPage({ route }: { route: Route }) {
  const field = (name: string) => route.filters.get(name) ?? "";
  const [isPaused, setPaused] = useState(false);
  const [queue, lane, call, kind] = [field("queue"), field("lane"), field("call"), field("kind")];
  const isStill = useStore(isHeld) || isPaused;
  const tail = useTail(queue, lane, call, isStill);
  const rows = kind ? tail.events.filter(({ event }) => event.event === kind) : tail.events;
  const state = isStill ? "Paused" : tail.isConnected ? "Following" : tail.error ? "Not followed" : "Connecting";
  return (
    <>
      <Head title="Events" says="What happens to calls, as it happens, newest first.">
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Go on" : "Pause"}
        </button>
      </Head>
      <div class="filters">
        <QueueFilter queue={queue} lane={lane} queues={useQueues()} />
        <label>
          Call
          <TypedInput value={call} placeholder="Its id" commit={(call) => refine({ call: idIn(call) })} />
        </label>
        <label>
          What
          <select value={kind} onChange={(event) => refine({ kind: event.currentTarget.value })}>
            <option value="">Everything</option>
            {KINDS.map((kind) => (
              <option value={kind}>{kind}</option>
            ))}
          </select>
        </label>
      </div>
      <Panel
        title={state}
        aside={
          <small class="number">
            {counted(tail.heard, "event")} heard, {perSecond(tail.rate)} events/s
            {tail.hasMissed ? "; some were missed and are in the history" : ""}
          </small>
        }
      >
        <Trouble error={tail.error} />
        {rows.length === 0 ? (
          <Empty title={isStill ? "Held still" : "Nothing happens right now"}>
            Each call that is accepted, started, held back, settled or ended appears here. The last {count(KEPT_MAX)}{" "}
            stay on the page.
          </Empty>
        ) : (
          <Table label="Events" rows={rows} columns={COLUMNS} keyOf={(kept) => String(kept.number)} isLong />
        )}
      </Panel>
    </>
  );
}

const COLUMNS: Column<Kept>[] = [
  {
    title: "At",
    width: "120px",
    cell: ({ event }) => (
      <span class="number" title={instant(event.at)}>
        {clock(event.at)}
      </span>
    ),
  },
  { title: "What", width: "110px", cell: ({ event }) => <Mark tone={toneOfEvent(event)}>{event.event}</Mark> },
  { title: "Call", width: "120px", cell: ({ event }) => <CallLink id={event.call} /> },
  {
    title: "Queue · lane",
    width: "22%",
    isExtra: true,
    cell: ({ event }) => (
      <span title={`${event.queue} · ${event.lane}`}>
        {event.queue} <small>{event.lane}</small>
      </span>
    ),
  },
  {
    title: "Story",
    isExtra: true,
    cell: ({ event }) => <span title={eventInWords(event)}>{eventInWords(event)}</span>,
  },
];

/** Follows events into a ring, and paints it in the next frame, however many come, ten times a second at most. */
function useTail(queue: string, lane: string, call: string, isPaused: boolean): Tail {
  const [tail, setTail] = useState<Tail>(NOTHING);
  const holder = useStore(token);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  useEffect(() => {
    const ends = new AbortController();
    const ring = new Ring(KEPT_MAX);
    let [frame, painted, isConnected, hasMissed] = [0, 0, false, false];
    let error: Error | undefined;
    const paint = (now: number) => {
      frame = 0;
      if (paused.current) return;
      if (now - painted < PAINT_MS) return soon();
      painted = now;
      setTail({
        events: ring.newestFirst(),
        heard: ring.heard,
        rate: ring.rate(performance.now()),
        hasMissed,
        isConnected,
        error,
      });
    };
    const soon = () => {
      frame ||= requestAnimationFrame(paint);
    };
    const watch = { ...(queue ? { queue } : {}), ...(queue && lane ? { lane } : {}), ...(call ? { call } : {}) };
    const heard = {
      event: (event: CallEvent) => (ring.push(event), soon()),
      missed: () => ((hasMissed = true), soon()),
      connected: (is: boolean) => ((isConnected = is), soon()),
      failed: (problem: Error) => ((error = problem), soon()),
    };
    setTail(NOTHING);
    void follow(watch, heard, ends.signal);
    const timer = setInterval(soon, 1_000);
    return () => {
      ends.abort();
      cancelAnimationFrame(frame);
      clearInterval(timer);
    };
  }, [queue, lane, call, holder]);
  return tail;
}

/** The latest so many, the oldest overwritten. */
class Ring {
  heard = 0;
  private readonly slots: Kept[] = [];
  private seen: { at: number; heard: number }[] = [];

  constructor(private readonly size: number) {}

  push(event: CallEvent): void {
    this.slots[this.heard % this.size] = { number: this.heard, event };
    this.heard += 1;
  }

  newestFirst(): Kept[] {
    const { slots, heard, size } = this;
    const first = Math.max(0, heard - size);
    return Array.from({ length: heard - first }, (_, index) => slots[(heard - 1 - index) % size]!);
  }

  /** Events a second, over the last few. */
  rate(now: number): number {
    this.seen = [...this.seen.filter((one) => now - one.at < 3_000), { at: now, heard: this.heard }];
    const [first] = this.seen;
    if (!first || now - first.at < 250) return 0;
    return ((this.heard - first.heard) * 1000) / (now - first.at);
  }
}
