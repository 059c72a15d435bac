// What would become of what waits: when the last starts, how much is left meanwhile, and for which tenants.
import type { Forecast, LaneForecast } from "../../api/shapes";
import { count, counted, span } from "../../format";
import { Chart, type Axis, type Line } from "../../parts/chart";
import { Stat, type Tone } from "../../parts/marks";
import { Panel } from "../../parts/page";
import { Table, type Column } from "../../parts/table";
import { href } from "../../route";
import { leftAt, pairsOf, stepsOf, type LanePair } from "./left";

const FROM_NOW: Axis = { at: (seconds) => (seconds === 0 ? "now" : span(seconds * 1_000)), last: "in the end" };

interface Shown {
  now: Forecast;
  then: Forecast;
  words: { now: string; then: string };
  /** How far was looked ahead, in words. */
  within: string;
}

export function OutlookPanels({ now, then, words, within }: Shown) {
  if (now.waiting === 0)
    return <p class="note">Nothing waits now, so there is nothing that would start sooner or later.</p>;
  const steps = stepsOf([now, then]);
  const lines: Line[] = [
    {
      label: "as it is",
      unit: "calls left",
      color: "--plain",
      kind: "line",
      values: steps.map((ms) => leftAt(now, ms)),
    },
    { label: "then", unit: "calls left", color: "--pass", kind: "area", values: steps.map((ms) => leftAt(then, ms)) },
  ];
  return (
    <>
      <div class="pair">
        <Drained label={`As it is: ${words.now}`} forecast={now} tone="plain" within={within} />
        <Drained label={`Then: ${words.then}`} forecast={then} tone={toneOf(now, then)} within={within} />
      </div>
      <Panel title="What is left" aside={<small>of {counted(now.waiting, "call")} that wait now</small>}>
        <Chart label="What is left" times={steps.map((ms) => ms / 1_000)} lines={lines} height={240} axis={FROM_NOW} />
      </Panel>
      <Lanes now={now} then={then} within={within} />
      <p class="note">
        Every call is taken to succeed, and nothing more to be handed in. The scheduler itself looked ahead, on a copy:
        order, fairness, every rule and the overrides of partitions are as they are.
      </p>
    </>
  );
}

function Drained(props: { label: string; forecast: Forecast; tone: Tone; within: string }) {
  const { label, forecast, tone, within } = props;
  const { started, waiting, last_ms } = forecast;
  const isAll = started === waiting;
  const value = isAll ? span(last_ms) : count(started);
  const unit = isAll
    ? "until the last has started"
    : `of ${counted(waiting, "call")} start ${forecast.cut ? "before the forecast is cut" : `within ${within}`}`;
  return <Stat label={label} value={value} unit={unit} tone={tone} />;
}

function toneOf(now: Forecast, then: Forecast): Tone {
  if (then.started !== now.started) return then.started > now.started ? "pass" : "stop";
  if (then.last_ms === now.last_ms) return "plain";
  return then.last_ms < now.last_ms ? "pass" : "stop";
}

function Lanes({ now, then, within }: { now: Forecast; then: Forecast; within: string }) {
  const pairs = pairsOf(now, then);
  const columns: Column<LanePair>[] = [
    {
      title: "Lane",
      cell: ({ queue, lane }) => (
        <>
          <a href={href("queues", [queue], { lane })}>{lane}</a> <small>{queue}</small>
        </>
      ),
    },
    {
      title: "Waiting",
      width: "110px",
      isNumber: true,
      isExtra: true,
      cell: ({ waiting }) => counted(waiting, "call"),
    },
    { title: "Last starts, as it is", isNumber: true, cell: (pair) => <Ends lane={pair.now} within={within} /> },
    { title: "Then", isNumber: true, cell: (pair) => <Ends lane={pair.then} within={within} /> },
    { title: "Difference", width: "150px", isNumber: true, isExtra: true, cell: difference },
  ];
  const isAll = now.lanes_count <= now.lanes.length;
  return (
    <Panel
      title="Lanes that wait longest"
      aside={<small>{isAll ? counted(now.lanes_count, "lane") : `of ${counted(now.lanes_count, "lane")}`}</small>}
    >
      <Table
        label="Lanes that wait longest"
        rows={pairs}
        columns={columns}
        keyOf={({ queue, lane }) => JSON.stringify([queue, lane])}
        isLong
      />
    </Panel>
  );
}

function Ends({ lane, within }: { lane: LaneForecast | undefined; within: string }) {
  if (!lane) return <span class="soft">sooner than these</span>;
  if (lane.started === lane.waiting) return <span>in {span(lane.last_ms ?? 0)}</span>;
  const text = lane.started === 0 ? `none within ${within}` : `${count(lane.started)} within ${within}`;
  return <span class="soft">{text}</span>;
}

function difference({ now, then }: LanePair): string {
  if (!now || !then || now.started < now.waiting || then.started < then.waiting) return "";
  const ms = (then.last_ms ?? 0) - (now.last_ms ?? 0);
  if (ms === 0) return "none";
  return ms < 0 ? `${span(-ms)} sooner` : `${span(ms)} later`;
}
