// One limit: what is configured and what is in force, its meters by pressure, and what can be done about it.
import { get, path, query } from "../../api/client";
import type { LimitState, Meter, MeterPage } from "../../api/shapes";
import { count, counted, definitionInWords, holds, inForce, nameOf, span } from "../../format";
import { useLive } from "../../live";
import { useMay } from "../../overview";
import { Audit } from "../../parts/audit";
import { Mark, Usage } from "../../parts/marks";
import { Loading, Trouble } from "../../parts/notice";
import { Count, Head, Panel } from "../../parts/page";
import { Table, type Column } from "../../parts/table";
import { href } from "../../route";
import { LimitFlow } from "../flow/charts";
import * as act from "./actions";

const EVERY_MS = 1_000;
/** Partitions shown, those with most waiting. */
const PARTITIONS_MAX = 1_000;

export function LimitDetail({ name, partition }: { name: string; partition: string | undefined }) {
  const limit = useLive((signal) => get<LimitState>(path`/v1/limits/${name}`, signal), EVERY_MS * 2, [name]);
  const meters = useLive(
    (signal) => get<MeterPage>(query(path`/v1/meters/${name}`, { order: "pressure", limit: PARTITIONS_MAX }), signal),
    EVERY_MS,
    [name],
  );
  const refresh = () => (limit.refresh(), meters.refresh());
  const waiting = lanesAt(meters.data);
  return (
    <>
      <Head
        title={name}
        crumb={<a href={href("limits")}>Limits</a>}
        says={limit.data && definitionInWords(inForce(limit.data))}
      >
        <a class="button" href={href("whatif", [name])}>
          What if
        </a>
        {limit.data && <Actions limit={limit.data} waiting={waiting} refresh={refresh} />}
      </Head>
      <Trouble error={limit.error} />
      {!limit.data ? !limit.error && <Loading what={name} /> : <InForce limit={limit.data} meters={meters.data} />}
      {limit.data && (
        <>
          {partition !== undefined && <PartitionPanel limit={limit.data} partition={partition} refresh={refresh} />}
          {meters.data && (
            <MeterPanel
              title={meters.data.partitions.length > 0 ? "Global meter" : "Meter"}
              meter={meters.data.global}
              limit={limit.data}
              refresh={refresh}
            />
          )}
          {(meters.data || meters.error) && <LimitFlow limit={limit.data} meters={meters.data} />}
          <Trouble error={meters.error} />
          <Partitions limit={limit.data} meters={meters.data?.partitions ?? []} refresh={refresh} />
          <Audit name={name} kinds={["limit", "pin", "override", "meter"]} />
        </>
      )}
    </>
  );
}

/** How many lanes wait at the meters that are known. */
function lanesAt(page: MeterPage | undefined): string {
  if (!page) return "lanes";
  const lanes = page.partitions.reduce((sum, meter) => sum + meter.waiting, page.global.waiting);
  return `${page.partitions.length < PARTITIONS_MAX ? "" : "at least "}${counted(lanes, "lane")}`;
}

/** Not all overrides come with the limit if there are many; what is in force at a meter does. */
function isOverridden(limit: LimitState, meter: Meter): boolean {
  if (limit.overrides.some((one) => one.partition === meter.partition)) return true;
  const isCut = limit.overrides.length < limit.overrides_count;
  return isCut && definitionInWords(meter.definition) !== definitionInWords(inForce(limit));
}

function Actions({ limit, waiting, refresh }: { limit: LimitState; waiting: string; refresh(): void }) {
  if (!useMay("admin")) return null;
  return (
    <>
      <button type="button" onClick={() => act.editLimit(limit, waiting, refresh)}>
        Change
      </button>
      <button type="button" onClick={() => act.pinLimit(limit, refresh)}>
        Pin
      </button>
      {limit.pinned && (
        <button type="button" onClick={() => act.unpinLimit(limit, refresh)}>
          Unpin
        </button>
      )}
      <button type="button" onClick={() => act.overridePartition(limit, undefined, refresh)}>
        Override
      </button>
      {limit.paused ? (
        <button type="button" onClick={() => act.resumeLimit(limit.name, refresh)}>
          Resume
        </button>
      ) : (
        <button type="button" onClick={() => act.pauseLimit(limit.name, waiting, refresh)}>
          Pause
        </button>
      )}
      <button type="button" onClick={() => act.removeLimit(limit.name, waiting)}>
        Remove
      </button>
    </>
  );
}

/** What holds the limit back, or what is in force. */
function Standing({ limit, meters }: { limit: LimitState; meters: MeterPage | undefined }) {
  const closed = meters?.partitions.filter((meter) => meter.closed_for_ms).length ?? 0;
  if (limit.paused) return <Mark tone="stop">paused: nothing passes</Mark>;
  if (meters?.global.closed_for_ms) return <Mark tone="stop">{holds(meters.global)}</Mark>;
  if (closed > 0) return <Mark tone="stop">{counted(closed, "partition")} closed</Mark>;
  return limit.pinned ? <Mark tone="flight">pinned</Mark> : <Mark tone="pass">as configured</Mark>;
}

function InForce({ limit, meters }: { limit: LimitState; meters: MeterPage | undefined }) {
  const { totals } = limit;
  return (
    <Panel title="In force" aside={<Standing limit={limit} meters={meters} />}>
      <dl class="facts inside">
        <Fact name="Configured" text={definitionInWords(limit.definition)} />
        <Fact
          name="Effective"
          text={limit.paused ? "nothing, while it is paused" : definitionInWords(inForce(limit))}
        />
        <Fact name="Waiting" text={meters ? lanesAt(meters) : "not known"} />
        <Fact name="Overridden" text={counted(limit.overrides_count, "partition")} />
        {totals && (
          <Fact
            name="Admitted since the start"
            text={`${counted(totals.admitted.count, "call")}, ${counted(totals.admitted.weight, "unit")}`}
          />
        )}
        {totals && <Fact name="Refused since the start" text={counted(totals.refused.count, "call")} />}
        {totals && <Fact name="Waited here, all together" text={span(totals.waited_ms)} />}
      </dl>
    </Panel>
  );
}

function Fact({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="figure">{text}</dd>
    </div>
  );
}

function PartitionPanel({ limit, partition, refresh }: { limit: LimitState; partition: string; refresh(): void }) {
  const { data, error } = useLive(
    (signal) => get<Meter>(path`/v1/meters/${limit.name}/${partition}`, signal),
    EVERY_MS,
    [limit.name, partition],
  );
  if (!data) return <Trouble error={error} />;
  return <MeterPanel title={`Partition ${partition}`} meter={data} limit={limit} refresh={refresh} />;
}

function MeterPanel({
  title,
  meter,
  limit,
  refresh,
}: {
  title: string;
  meter: Meter;
  limit: LimitState;
  refresh(): void;
}) {
  const held = holds(meter);
  return (
    <Panel title={title} aside={<MeterActions meter={meter} limit={limit} refresh={refresh} />}>
      <dl class="facts inside">
        <div>
          <dt>Left</dt>
          <dd>
            <Usage meter={meter} />
          </dd>
        </div>
        <Fact name="Waiting" text={counted(meter.waiting, "lane")} />
        <Fact name="In flight" text={counted(meter.in_flight, "slot")} />
        <Fact name="Next admission" text={nextOf(meter)} />
        <Fact name="As new" text={meter.reset_after_ms === 0 ? "now" : `in ${span(meter.reset_after_ms)}`} />
        <div>
          <dt>State</dt>
          <dd>
            {held ? (
              <Mark tone={meter.paused || meter.closed_for_ms ? "stop" : "wait"}>{held}</Mark>
            ) : (
              <Mark tone="pass">open</Mark>
            )}
          </dd>
        </div>
      </dl>
    </Panel>
  );
}

function nextOf(meter: Meter): string {
  if (meter.next_admission_ms === undefined) return "not known";
  return meter.next_admission_ms === 0 ? "now" : `in ${span(meter.next_admission_ms)}`;
}

function MeterActions({ meter, limit, refresh }: { meter: Meter; limit: LimitState; refresh(): void }) {
  if (!useMay("admin")) return null;
  const { partition } = meter;
  return (
    <span class="buttons row-buttons">
      <CloseAndReset meter={meter} refresh={refresh} />
      {partition !== undefined && (
        <button type="button" onClick={() => act.overridePartition(limit, partition, refresh)}>
          Override
        </button>
      )}
      {partition !== undefined && isOverridden(limit, meter) && (
        <button type="button" onClick={() => act.dropOverride(limit.name, partition, limit.definition, refresh)}>
          Drop override
        </button>
      )}
    </span>
  );
}

function CloseAndReset({ meter, refresh }: { meter: Meter; refresh(): void }) {
  return (
    <>
      {meter.closed_for_ms ? (
        <button type="button" onClick={() => act.reopenMeter(meter, refresh)}>
          Reopen
        </button>
      ) : (
        <button type="button" onClick={() => act.closeMeter(meter, refresh)}>
          Close
        </button>
      )}
      <button type="button" onClick={() => act.resetMeter(meter, refresh)}>
        Reset
      </button>
    </>
  );
}

function Partitions({ limit, meters, refresh }: { limit: LimitState; meters: Meter[]; refresh(): void }) {
  const isAdmin = useMay("admin");
  const columns: Column<Meter>[] = [
    {
      title: "Partition",
      cell: (meter) => (
        <>
          <a
            href={href("limits", [limit.name], { partition: meter.partition })}
            title={nameOf(limit.name, meter.partition)}
          >
            {meter.partition}
          </a>
          {isOverridden(limit, meter) && (
            <Mark tone="flight" title={definitionInWords(meter.definition)}>
              overridden
            </Mark>
          )}
          {meter.closed_for_ms ? (
            <Mark tone="stop" title={meter.closed_reason ?? ""}>
              closed for {span(meter.closed_for_ms)}
            </Mark>
          ) : null}
        </>
      ),
    },
    {
      title: "Left",
      width: "190px",
      cell: (meter) => <Usage meter={meter} />,
    },
    {
      title: "Waiting",
      width: "100px",
      isNumber: true,
      cell: (meter) => <Count value={meter.waiting} text={counted(meter.waiting, "lane")} />,
    },
    { title: "Next admission", width: "130px", isNumber: true, isExtra: true, cell: nextOf },
    {
      title: "Admitted",
      width: "130px",
      isNumber: true,
      isExtra: true,
      cell: (meter) => (meter.admitted ? `${count(meter.admitted.weight)} units` : ""),
    },
    {
      title: "",
      width: isAdmin ? "210px" : "72px",
      isExtra: true,
      cell: (meter) => <RowEnd meter={meter} refresh={refresh} />,
    },
  ];
  return (
    <Panel
      title="Partitions by pressure"
      aside={
        <small>
          {meters.length >= PARTITIONS_MAX ? `the first ${count(PARTITIONS_MAX)}` : counted(meters.length, "partition")}
          ; one that is as new is not listed
        </small>
      }
    >
      {meters.length === 0 ? (
        <p class="loading">No partition has spent anything lately.</p>
      ) : (
        <Table
          label="Partitions by pressure"
          rows={meters}
          columns={columns}
          keyOf={(meter) => meter.partition ?? ""}
          isLong
        />
      )}
    </Panel>
  );
}

function RowEnd({ meter, refresh }: { meter: Meter; refresh(): void }) {
  const isAdmin = useMay("admin");
  return (
    <span class="buttons row-buttons">
      <a class="button" href={href("flow", [meter.name, meter.partition ?? ""])}>
        Flow
      </a>
      {isAdmin && <CloseAndReset meter={meter} refresh={refresh} />}
    </span>
  );
}
