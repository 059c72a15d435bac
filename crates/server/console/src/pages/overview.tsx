// Overview: how much passes, what waits, which limits bite and until when, and who is the noisy tenant.
import { useState } from "preact/hooks";
import { asCurl, type Request } from "../api/client";
import type { Bite, BusyQueue, Overview } from "../api/shapes";
import { count, counted, holds, perSecond, span } from "../format";
import { SEEN_MAX, useSeen } from "../overview";
import { Chart, type Line } from "../parts/chart";
import { Command, Empty } from "../parts/empty";
import { Mark, Stat } from "../parts/marks";
import { Loading, Trouble } from "../parts/notice";
import { Oldest } from "../parts/oldest";
import { Count, Head, Panel, Tabs } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { href } from "../route";
import { RANGES, lately, ratesOf, timesOf, useSeries, valuesOf, type Range } from "../series";

/** Points of the small charts: two minutes. */
const TREND = 120;

export function OverviewPage() {
  const { data } = useSeen();
  const [range, setRange] = useState<Range>("minutes");
  const recent = useSeries("minutes").data;
  if (!data) return <Loading what="the server" />;
  const isNew =
    data.queues.length === 0 && data.limits.length === 0 && data.waiting === 0 && !lately(recent, "admitted", 600);
  const admitted = lately(recent, "admitted");
  const trend = (name: "admitted" | "waiting" | "in_flight" | "dead") =>
    recent?.[name]?.slice(-TREND).map((value) => value ?? 0);
  const withTrend = (values: number[] | undefined) => (values ? { trend: values } : {});
  return (
    <>
      <Head title="Overview" says={inOneSentence(data)}>
        <Tabs label="Time shown" of={RANGES} chosen={range} choose={setRange} />
      </Head>
      <div class="stats">
        <Stat
          label="Admitted"
          value={admitted === undefined ? "not known" : perSecond(admitted)}
          unit={admitted === undefined ? "" : "tolls per second"}
          tone="pass"
          {...withTrend(trend("admitted"))}
          href={href("limits")}
        />
        <Stat
          label="Waiting"
          value={count(data.waiting)}
          unit={data.waiting === 1 ? "call" : "calls"}
          tone="wait"
          {...withTrend(trend("waiting"))}
          href={href("queues")}
        />
        <Stat
          label="In flight"
          value={count(data.in_flight)}
          unit={data.in_flight === 1 ? "call" : "calls"}
          tone="flight"
          {...withTrend(trend("in_flight"))}
          href={href("queues")}
        />
        <Stat
          label="Dead"
          value={count(data.dead)}
          unit={data.dead === 1 ? "call" : "calls"}
          tone="stop"
          {...withTrend(trend("dead"))}
          href={href("dead")}
        />
        <Stat
          label="Asking"
          value={count(data.asking)}
          unit={data.asking === 1 ? "claim of workers" : "claims of workers"}
          tone="plain"
          href={href("queues")}
        />
      </div>
      {isNew && <FirstSteps />}
      <Charts range={range} />
      <Panel title="Limits that bite" aside={<small>most waiting first</small>}>
        <Bites bites={data.limits} />
      </Panel>
      <div class="pair">
        <Panel title="Busiest lanes" aside={<small>who is the noisy tenant</small>}>
          <Lanes seen={data} />
        </Panel>
        <Panel title="Fullest queues" aside={<a href={href("queues")}>All queues</a>}>
          <Queues seen={data} />
        </Panel>
      </div>
    </>
  );
}

function inOneSentence(seen: Overview): string {
  if (!seen.ready) return "The server is not ready: it would not keep what it is told.";
  const closed = seen.limits.filter((bite) => bite.paused || bite.closed_for_ms).length;
  const parts = [
    seen.limits.length === 0
      ? "No limit holds anything back"
      : `${counted(seen.limits.length, "meter")}${seen.limits.length < SEEN_MAX ? "" : " or more"} ${seen.limits.length === 1 ? "bites" : "bite"}`,
  ];
  if (closed > 0) parts.push(`${closed} closed or paused`);
  if (seen.dead > 0) parts.push(`${counted(seen.dead, "dead call")} to look at`);
  if (seen.waiting > 0 && seen.asking === 0 && seen.in_flight === 0) parts.push("no worker asks");
  return `${parts.join(", ")}.`;
}

function Charts({ range }: { range: Range }) {
  const { data, error } = useSeries(range);
  if (!data) return error ? <Trouble error={error} /> : <div class="charts-to-come" />;
  const times = timesOf(data, range);
  const rate = (label: string, name: "admitted" | "throttled" | "done", color: string, kind: Line["kind"]): Line => ({
    label,
    // Of the limits together nothing but tolls is counted, and a call may owe several.
    unit: name === "done" ? "calls/s" : "tolls/s",
    color,
    kind,
    values: ratesOf(data, name, range),
  });
  const level = (label: string, name: "waiting" | "in_flight" | "dead", color: string, kind: Line["kind"]): Line => ({
    label,
    unit: "calls",
    color,
    kind,
    values: valuesOf(data, name, range),
  });
  return (
    <div class="pair">
      <Panel title="Through the gate" aside={<small>per second</small>}>
        <Chart
          label="Through the gate"
          times={times}
          lines={[
            rate("admitted", "admitted", "--pass", "area"),
            rate("done", "done", "--flight", "line"),
            rate("refused", "throttled", "--amber", "line"),
          ]}
        />
      </Panel>
      <Panel title="Backlog" aside={<small>calls</small>}>
        <Chart
          label="Backlog"
          times={times}
          lines={[
            level("waiting", "waiting", "--amber", "area"),
            level("in flight", "in_flight", "--flight", "line"),
            level("dead", "dead", "--stop", "line"),
          ]}
        />
      </Panel>
    </div>
  );
}

const BITES: Column<Bite>[] = [
  { title: "Limit", width: "26%", cell: (bite) => <MeterName bite={bite} /> },
  {
    title: "Why",
    cell: (bite) => (
      <Mark tone={bite.paused || bite.closed_for_ms ? "stop" : "wait"} title={holds(bite) ?? ""}>
        {holds(bite) ?? "open again"}
      </Mark>
    ),
  },
  {
    title: "Next admission",
    isNumber: true,
    width: "132px",
    cell: (bite) =>
      bite.next_admission_ms === undefined
        ? "not known"
        : bite.next_admission_ms === 0
          ? "now"
          : `in ${span(bite.next_admission_ms)}`,
  },
  { title: "Waiting", isNumber: true, width: "120px", cell: (bite) => counted(bite.waiting, "lane") },
  { title: "Left", isNumber: true, isExtra: true, width: "120px", cell: (bite) => counted(bite.available, "unit") },
  {
    title: "",
    isExtra: true,
    width: "72px",
    cell: (bite) => (
      <a href={href("flow", bite.partition === undefined ? [bite.limit] : [bite.limit, bite.partition])}>Flow</a>
    ),
  },
];

function MeterName({ bite }: { bite: Bite }) {
  return (
    <a href={href("limits", [bite.limit], { partition: bite.partition })}>
      {bite.limit}
      {bite.partition !== undefined && <small> : {bite.partition}</small>}
    </a>
  );
}

function Bites({ bites }: { bites: Bite[] }) {
  if (bites.length === 0) {
    return <Empty title="Nothing is held back">Whatever waits here waits for a worker, not for a limit.</Empty>;
  }
  return (
    <Table
      label="Limits that bite"
      rows={bites}
      columns={BITES}
      keyOf={(bite) => JSON.stringify([bite.limit, bite.partition])}
    />
  );
}

type SeenLane = Overview["lanes"][number];

const LANES: Column<SeenLane>[] = [
  { title: "Lane", cell: (lane) => <LaneName lane={lane} /> },
  { title: "Waiting", isNumber: true, width: "110px", cell: (lane) => counted(lane.waiting, "call") },
  {
    title: "In flight",
    isNumber: true,
    isExtra: true,
    width: "90px",
    cell: (lane) => <Count value={lane.in_flight} text={counted(lane.in_flight, "call")} />,
  },
  { title: "Weight", isNumber: true, isExtra: true, width: "70px", cell: (lane) => `× ${lane.weight}` },
];

function LaneName({ lane }: { lane: SeenLane }) {
  return (
    <>
      <a href={href("queues", [lane.queue], { lane: lane.lane })}>{lane.lane}</a> <small>{lane.queue}</small>
      {lane.paused && <Mark tone="stop">paused</Mark>}
      {lane.held && <Mark tone="stop">held</Mark>}
    </>
  );
}

function Lanes({ seen }: { seen: Overview }) {
  if (seen.lanes.length === 0)
    return <Empty title="No lane has calls">A lane is the calls of one key, in order: one for each tenant, say.</Empty>;
  return (
    <Table
      label="Busiest lanes"
      rows={seen.lanes.slice(0, 12)}
      columns={LANES}
      keyOf={(lane) => JSON.stringify([lane.queue, lane.lane])}
    />
  );
}

const QUEUES: Column<BusyQueue>[] = [
  { title: "Queue", cell: (queue) => <QueueName queue={queue} /> },
  {
    title: "Waiting",
    isNumber: true,
    width: "110px",
    cell: (queue) => <Count value={queue.waiting} text={counted(queue.waiting, "call")} />,
  },
  { title: "Oldest", isNumber: true, isExtra: true, width: "100px", cell: (queue) => <Oldest of={queue} /> },
  {
    title: "In flight",
    isNumber: true,
    isExtra: true,
    width: "90px",
    cell: (queue) => <Count value={queue.in_flight} text={counted(queue.in_flight, "call")} />,
  },
  {
    title: "Dead",
    isNumber: true,
    width: "90px",
    cell: (queue) => <Count value={queue.dead} text={counted(queue.dead, "call")} />,
  },
];

function QueueName({ queue }: { queue: BusyQueue }) {
  return (
    <>
      <a href={href("queues", [queue.queue])}>{queue.queue}</a>
      {queue.paused && <Mark tone="stop">paused</Mark>}
      {!queue.paused && queue.waiting > 0 && queue.asking === 0 && queue.in_flight === 0 && (
        <Mark tone="wait">no worker asks</Mark>
      )}
    </>
  );
}

function Queues({ seen }: { seen: Overview }) {
  if (seen.queues.length === 0)
    return (
      <Empty title="There is no queue yet" command={asCurl({ method: "PUT", path: "/v1/queues/charges", body: {} })} />
    );
  return (
    <Table label="Fullest queues" rows={seen.queues.slice(0, 12)} columns={QUEUES} keyOf={(queue) => queue.queue} />
  );
}

const CALL = { lane: "acme", body: { cents: 1900 }, tolls: [{ limit: "stripe", partition: "acme" }] };

const FIRST: Request[] = [
  { method: "PUT", path: "/v1/limits/stripe", body: { rule: "token_bucket", limit: 100, per: "1m" } },
  { method: "PUT", path: "/v1/queues/charges", body: {} },
  { method: "POST", path: "/v1/queues/charges/calls", body: CALL },
  { method: "POST", path: "/v1/queues/charges/claim", body: { wait: "20s" } },
];

function FirstSteps() {
  return (
    <Panel title="The first minute">
      <div class="inside first">
        <p>
          Define a limit, hand in a call that pays there, and let a worker take it. This page shows each as it happens.
        </p>
        {FIRST.map((request) => (
          <Command text={asCurl(request)} />
        ))}
      </div>
    </Panel>
  );
}
