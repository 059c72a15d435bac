// Flow: when calls were admitted, drawn against what a limit allows; of a limit, of a partition, or of a lane.
import { asCurl, get, path, query } from "../api/client";
import type { CallPage, LimitPage, LimitState, Meter, MeterPage, Toll } from "../api/shapes";
import { counted, definitionInWords, holds, nameOf, rulesOf, span } from "../format";
import { useLive } from "../live";
import { Chart, type Line } from "../parts/chart";
import { Empty } from "../parts/empty";
import { Mark, Usage } from "../parts/marks";
import { Loading, Trouble } from "../parts/notice";
import { Head, Panel } from "../parts/page";
import { go, href, type Route } from "../route";
import { isRate, perSecondOf } from "./flow/allowance";
import { FlowCharts, LimitFlow } from "./flow/charts";
import { useLaneFlow, useMeterFlow } from "./flow/recent";

const EVERY_MS = 2_000;
const LIMITS_MAX = 1_000;
/** Partitions to choose from, those with most waiting. */
const PARTITIONS_MAX = 200;

export function FlowPage({ route }: { route: Route }) {
  const [limit, partition] = route.names;
  const [queue, lane] = [route.filters.get("queue"), route.filters.get("lane")];
  if (queue && lane) return <LaneFlow queue={queue} lane={lane} />;
  return (
    <>
      <Head
        title={limit === undefined ? "Flow" : nameOf(limit, partition)}
        crumb="Flow of admissions"
        says="What was let through, against what is allowed."
      />
      <Choose limit={limit} partition={partition} />
      {limit !== undefined &&
        (partition === undefined ? <OfLimit name={limit} /> : <OfMeter limit={limit} partition={partition} />)}
    </>
  );
}

function Choose({ limit, partition }: { limit: string | undefined; partition: string | undefined }) {
  const limits = useLive(
    (signal) => get<LimitPage>(query("/v1/limits", { limit: LIMITS_MAX }), signal),
    EVERY_MS * 5,
    [],
  );
  const meters = useLive(
    async (signal) =>
      limit === undefined
        ? undefined
        : get<MeterPage>(query(path`/v1/meters/${limit}`, { order: "pressure", limit: PARTITIONS_MAX }), signal),
    EVERY_MS,
    [limit],
  );
  const names = limits.data?.limits.map((one) => one.name);
  if (names?.length === 0) {
    return (
      <Empty
        title="There is no limit whose flow could be seen"
        command={asCurl({
          method: "PUT",
          path: "/v1/limits/stripe",
          body: { rule: "sliding_window", limit: 10, per: "1s" },
        })}
      >
        Define one, let calls pay there, and see how they are spread so that the limit is kept.
      </Empty>
    );
  }
  const partitions = meters.data?.partitions.map((meter) => meter.partition ?? "") ?? [];
  if (!names && limits.error) return <Trouble error={limits.error} />;
  return (
    <div class="filters">
      <label>
        Limit
        <select value={limit ?? ""} onChange={(event) => go("flow", [event.currentTarget.value])}>
          {limit === undefined && <option value="">Choose a limit</option>}
          {[...new Set([...(names ?? []), ...(limit === undefined ? [] : [limit])])].map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </label>
      {limit !== undefined && (
        <label>
          Partition
          <select
            value={partition === undefined ? "" : `:${partition}`}
            onChange={(event) =>
              go("flow", event.currentTarget.value ? [limit, event.currentTarget.value.slice(1)] : [limit])
            }
          >
            <option value="">All together</option>
            {[...new Set([...partitions, ...(partition === undefined ? [] : [partition])])].map((name) => (
              <option value={`:${name}`}>{name}</option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

function OfLimit({ name }: { name: string }) {
  const limit = useLive((signal) => get<LimitState>(path`/v1/limits/${name}`, signal), EVERY_MS, [name]);
  const meters = useLive((signal) => get<MeterPage>(query(path`/v1/meters/${name}`, { limit: 1 }), signal), EVERY_MS, [
    name,
  ]);
  if (!limit.data) return limit.error ? <Trouble error={limit.error} /> : <Loading what={name} />;
  if (!meters.data && !meters.error) return <Loading what={name} />;
  return <LimitFlow limit={limit.data} meters={meters.data} />;
}

function OfMeter({ limit, partition }: { limit: string; partition: string }) {
  const { meter, error, admissions } = useMeterFlow(limit, partition);
  if (!meter) return error ? <Trouble error={error} /> : <Loading what={nameOf(limit, partition)} />;
  const held = holds(meter);
  return (
    <>
      <div class="note">
        <Usage meter={meter} /> {definitionInWords(meter.definition)} · {counted(meter.waiting, "lane")} waiting
        {meter.next_admission_ms ? ` · next in ${span(meter.next_admission_ms)}` : ""}{" "}
        {held && <Mark tone={meter.closed_for_ms || meter.paused ? "stop" : "wait"}>{held}</Mark>}
        <br />
        <small>One partition is watched from when this page is opened.</small>
      </div>
      <FlowCharts rules={rulesOf(meter.definition)} admissions={admissions} isOneMeter />
    </>
  );
}

function LaneFlow({ queue, lane }: { queue: string; lane: string }) {
  const { times, starts, error } = useLaneFlow(queue, lane);
  const allowed = useLive((signal) => allowances(queue, lane, signal), EVERY_MS * 5, [queue, lane]);
  const lines: Line[] = [{ label: "started", unit: "calls/s", color: "--pass", kind: "bars", values: starts }];
  for (const { label, rate } of allowed.data ?? [])
    lines.push({ label, unit: "calls/s", color: "--amber", kind: "bound", values: times.map(() => rate) });
  return (
    <>
      <Head
        title={lane}
        crumb={<a href={href("queues", [queue], { lane })}>Lane of {queue}</a>}
        says="Its calls as they started, against what its limits let through."
      />
      <Trouble error={error ?? allowed.error} />
      <Panel title="Starts" aside={<small>calls per second, ten minutes</small>}>
        <Chart label="Starts" times={times} lines={lines} height={260} />
      </Panel>
      {allowed.data?.length === 0 && (
        <p class="note">No call of this lane waits now that would say at which limits it pays.</p>
      )}
    </>
  );
}

/** What the limits of the lane's next call would let through, were it alone there. */
async function allowances(
  queue: string,
  lane: string,
  signal: AbortSignal,
): Promise<{ label: string; rate: number }[]> {
  const { calls } = await get<CallPage>(query(path`/v1/queues/${queue}/calls`, { lane, limit: 1 }), signal);
  const tolls = calls[0]?.tolls ?? [];
  const found = await Promise.all(tolls.map((toll) => allowanceOf(toll, signal)));
  return found.flat();
}

async function allowanceOf(toll: Toll, signal: AbortSignal): Promise<{ label: string; rate: number }[]> {
  const { definition } =
    toll.partition === undefined
      ? (await get<MeterPage>(query(path`/v1/meters/${toll.limit}`, { limit: 1 }), signal)).global
      : await get<Meter>(path`/v1/meters/${toll.limit}/${toll.partition}`, signal);
  const rules = rulesOf(definition).filter(isRate);
  return rules.map((rule) => ({
    label: nameOf(toll.limit, toll.partition),
    rate: perSecondOf(rule) / (toll.weight ?? 1),
  }));
}
