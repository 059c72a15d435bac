// One queue: its pace, and its lanes with what blocks the first call of each.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get, path } from "../../api/client";
import type { QueueState } from "../../api/shapes";
import { count, counted, perSecond } from "../../format";
import { useLive } from "../../live";
import { useMay } from "../../overview";
import { Audit } from "../../parts/audit";
import { Chart, type Line } from "../../parts/chart";
import { Mark } from "../../parts/marks";
import { Loading, Trouble } from "../../parts/notice";
import { OldestOf } from "../../parts/oldest";
import { Head, Panel, Tabs } from "../../parts/page";
import { href } from "../../route";
import { RANGES, lately, ratesOf, timesOf, useSeries, valuesOf, type Range } from "../../series";
import * as act from "./actions";
import { Lanes } from "./lanes";

const EVERY_MS = 1_000;

export function QueueDetail({ name, lane }: { name: string; lane: string }) {
  const {
    data: queue,
    error,
    refresh,
  } = useLive((signal) => get<QueueState>(path`/v1/queues/${name}`, signal), EVERY_MS, [name]);
  return (
    <>
      <Head title={name} crumb={<a href={href("queues")}>Queues</a>} says={queue && inWords(queue)}>
        {queue && <Actions queue={queue} refresh={refresh} />}
      </Head>
      <Trouble error={error} />
      {queue ? (
        <>
          <Facts queue={queue} />
          <Pace name={name} />
          <Lanes queue={queue} from={lane} />
          <Audit name={name} kinds={["queue", "lane"]} />
        </>
      ) : (
        !error && <Loading what={name} />
      )}
    </>
  );
}

function inWords({ definition }: QueueState): string {
  const order =
    definition.order === "strict"
      ? "One call of a lane at a time, in order"
      : `Up to ${count(definition.order.parallel)} calls of a lane at a time`;
  const tolls =
    definition.tolls.length > 0 ? `; each pays at ${definition.tolls.map((toll) => toll.limit).join(", ")}` : "";
  const url = definition.destination?.url;
  return `${order}${tolls}; ${definition.destination ? `delivered to ${url ?? "the url of each call"}` : "workers claim them"}.`;
}

function Actions({ queue, refresh }: { queue: QueueState; refresh(): void }) {
  const isAdmin = useMay("admin");
  return (
    <>
      <a class="button" href={href("calls", [], { queue: queue.name })}>
        Its calls
      </a>
      {isAdmin && (
        <>
          <button type="button" onClick={() => act.editQueue(queue, refresh)}>
            Change
          </button>
          {queue.paused ? (
            <button type="button" onClick={() => act.resumeQueue(queue.name, refresh)}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => act.pauseQueue(queue, refresh)}>
              Pause
            </button>
          )}
          <button type="button" onClick={() => act.removeQueue(queue)}>
            Remove
          </button>
        </>
      )}
    </>
  );
}

function Facts({ queue }: { queue: QueueState }) {
  const started = lately(useSeries("minutes", { queue: queue.name }).data, "started");
  const facts: [string, ComponentChildren][] = [
    ["Waiting", counted(queue.waiting, "call")],
    ["Oldest in line", queue.waiting === 0 ? "none" : <OldestOf queue={queue.name} />],
    ["In flight", counted(queue.in_flight, "call")],
    ["Dead", counted(queue.dead, "call")],
    ["Lanes", counted(queue.lanes, "lane")],
    ["Asking", counted(queue.asking, "claim")],
    ["Started", started === undefined ? "not known" : `${perSecond(started)} calls/s`],
    [
      "Room",
      `${count(queue.definition.depth_max - queue.waiting - queue.in_flight)} of ${counted(queue.definition.depth_max, "call")}`,
    ],
    ["Lease", queue.definition.lease],
  ];
  const isIdle = !queue.paused && queue.waiting > 0 && queue.asking === 0 && queue.in_flight === 0;
  return (
    <Panel
      title="Now"
      aside={
        queue.paused ? (
          <Mark tone="stop">paused: nothing starts</Mark>
        ) : isIdle ? (
          <Mark tone="wait">no worker asks: nothing starts</Mark>
        ) : (
          <Mark tone="pass">open</Mark>
        )
      }
    >
      <dl class="facts inside">
        {facts.map(([name, text]) => (
          <div>
            <dt>{name}</dt>
            <dd class="number">{text}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

function Pace({ name }: { name: string }) {
  const [range, setRange] = useState<Range>("minutes");
  const { data, error } = useSeries(range, { queue: name });
  const aside = <Tabs label="Time shown" of={RANGES} chosen={range} choose={setRange} />;
  if (!data)
    return (
      <Panel title="Pace" aside={aside}>
        {error ? <Trouble error={error} /> : <Loading what="its pace" />}
      </Panel>
    );
  const times = timesOf(data, range);
  const rate = (label: "enqueued" | "started" | "failed", color: string, kind: Line["kind"]): Line => ({
    label,
    unit: "calls/s",
    color,
    kind,
    values: ratesOf(data, label, range),
  });
  return (
    <div class="pair">
      <Panel title="Pace" aside={aside}>
        <Chart
          label="Pace"
          times={times}
          lines={[
            rate("started", "--pass", "area"),
            rate("enqueued", "--amber", "line"),
            rate("failed", "--stop", "line"),
          ]}
        />
      </Panel>
      <Panel title="Depth" aside={<small>calls</small>}>
        <Chart
          label="Depth"
          times={times}
          lines={[
            {
              label: "waiting",
              unit: "calls",
              color: "--amber",
              kind: "area",
              values: valuesOf(data, "waiting", range),
            },
            {
              label: "in flight",
              unit: "calls",
              color: "--flight",
              kind: "line",
              values: valuesOf(data, "in_flight", range),
            },
          ]}
        />
      </Panel>
    </div>
  );
}
