// Schedules: calls that are handed in by the calendar, when the next comes and what became of the last.
import { asCurl, get, path, query } from "../api/client";
import type { Schedule, SchedulePage } from "../api/shapes";
import { counted } from "../format";
import { useMay } from "../overview";
import { usePages } from "../paging";
import { ask } from "../parts/confirm";
import { Empty } from "../parts/empty";
import type { Field, Values } from "../parts/fields";
import { Mark } from "../parts/marks";
import { Loading, Trouble } from "../parts/notice";
import { Head, Panel } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { href } from "../route";

const PAGE = 500;

export function SchedulesPage() {
  const isAdmin = useMay("admin");
  const pages = usePages(async (after, signal) => {
    const page = await get<SchedulePage>(query("/v1/schedules", { limit: PAGE, after }), signal);
    return { rows: page.schedules, next: page.next };
  }, []);
  return (
    <>
      <Head
        title="Schedules"
        says="Calls that come by the calendar of a time zone. Ticks that were missed happen once together."
      >
        {isAdmin && (
          <button type="button" class="primary" onClick={() => define(pages.refresh)}>
            Define a schedule
          </button>
        )}
      </Head>
      <Trouble error={pages.error} />
      {pages.rows ? (
        <Panel title={counted(pages.rows.length, "schedule") + (pages.hasMore ? " and more" : "")} pages={pages}>
          {pages.rows.length === 0 ? (
            <None />
          ) : (
            <Table
              label="Schedules"
              rows={pages.rows}
              columns={columnsFor(isAdmin, pages.refresh)}
              keyOf={(schedule) => schedule.name}
              isLong
              onEnd={pages.more}
            />
          )}
        </Panel>
      ) : (
        !pages.error && <Loading what="schedules" />
      )}
    </>
  );
}

function columnsFor(isAdmin: boolean, refresh: () => void): Column<Schedule>[] {
  const columns: Column<Schedule>[] = [
    { title: "Schedule", cell: (schedule) => <Name schedule={schedule} /> },
    { title: "When", isExtra: true, cell: (schedule) => <Times schedule={schedule} /> },
    {
      title: "Next",
      width: "min(150px, 28vw)",
      cell: (schedule) =>
        schedule.next ? <When at={schedule.next} /> : <span class="soft">not while it is paused</span>,
    },
    {
      title: "Last",
      width: "150px",
      isExtra: true,
      cell: (schedule) => (schedule.last ? <When at={schedule.last} /> : <span class="soft">not yet</span>),
    },
    {
      title: "Queue · lane",
      isExtra: true,
      cell: (schedule) => (
        <span>
          <a href={href("queues", [schedule.queue])}>{schedule.queue}</a> <small>{schedule.call.lane}</small>
        </span>
      ),
    },
  ];
  if (isAdmin)
    columns.push({
      title: "",
      width: "min(240px, 40vw)",
      cell: (schedule) => <RowEnd schedule={schedule} refresh={refresh} />,
    });
  return columns;
}

function Name({ schedule }: { schedule: Schedule }) {
  return (
    <>
      <strong>{schedule.name}</strong>
      {schedule.paused && <Mark tone="stop">paused</Mark>}
      {schedule.problem && (
        <Mark tone="stop" title={schedule.problem}>
          {schedule.problem}
        </Mark>
      )}
    </>
  );
}

function Times({ schedule }: { schedule: Schedule }) {
  if (schedule.at)
    return (
      <span>
        once, <When at={schedule.at} />
      </span>
    );
  return (
    <span>
      <code>{schedule.cron}</code> <small>{schedule.zone ?? "UTC"}</small>
    </span>
  );
}

function RowEnd({ schedule, refresh }: { schedule: Schedule; refresh(): void }) {
  return (
    <span class="buttons row-buttons">
      <button type="button" onClick={() => (schedule.paused ? resume(schedule, refresh) : pause(schedule, refresh))}>
        {schedule.paused ? "Resume" : "Pause"}
      </button>
      <button type="button" class="extra" onClick={() => change(schedule, refresh)}>
        Change
      </button>
      <button type="button" onClick={() => remove(schedule, refresh)}>
        Remove
      </button>
    </span>
  );
}

function define(after: () => void): void {
  ask({
    title: "Define a schedule",
    verb: "Define",
    fields: [
      { name: "name", label: "Name", value: "" },
      ...timeFields(),
      { name: "lane", label: "Lane", value: "" },
      { name: "body", label: "Body, as JSON", kind: "lines", value: "null" },
    ],
    effect: (values) =>
      `A call goes into lane ${values.lane || "…"} of ${values.queue || "…"} ${timesInWords(values)}. A schedule of this name that is there already is replaced, with all it says.`,
    request: (values) => {
      if (!values.name?.trim()) throw new Error("it needs a name");
      const call = { lane: values.lane ?? "", body: JSON.parse(values.body ?? "null") as unknown };
      return { method: "PUT", path: path`/v1/schedules/${values.name.trim()}`, body: { ...timesOf(values), call } };
    },
    done: (_, values) => `schedule ${values.name} is there`,
    after,
  });
}

function change(schedule: Schedule, after: () => void): void {
  const { name, call } = schedule;
  ask({
    title: `Change ${name}`,
    verb: "Change",
    fields: [
      ...timeFields(schedule),
      { name: "call", label: "Call, as JSON", kind: "lines", value: JSON.stringify(call, null, 2) },
    ],
    effect: (values) => `From now on this call goes into ${values.queue || "…"} ${timesInWords(values)}.`,
    request: (values) => ({
      method: "PUT",
      path: path`/v1/schedules/${name}`,
      body: { ...timesOf(values), call: JSON.parse(values.call ?? "") as unknown },
    }),
    done: () => `schedule ${name} is changed`,
    after,
  });
}

/** Where to and when. */
function timeFields(schedule?: Schedule): Field[] {
  const isOnce = (values: Values) => values.when === "once";
  return [
    { name: "queue", label: "Queue", value: schedule?.queue ?? "" },
    {
      name: "when",
      label: "When",
      kind: "choice",
      value: schedule?.at ? "once" : "cron",
      choices: [
        { value: "cron", label: "By the calendar, again and again" },
        { value: "once", label: "Once" },
      ],
    },
    {
      name: "cron",
      label: "Cron",
      value: schedule?.cron ?? "0 9 * * 1-5",
      hint: "minute hour day month weekday",
      when: (values) => !isOnce(values),
    },
    { name: "zone", label: "Time zone", value: schedule?.zone ?? "UTC", when: (values) => !isOnce(values) },
    { name: "at", label: "At", value: schedule?.at ?? "", hint: "As in 2026-12-24T18:00:00Z", when: isOnce },
  ];
}

function timesOf({ queue = "", when, cron = "", zone, at = "" }: Values): Record<string, string> {
  return when === "once" ? { queue, at: at.trim() } : { queue, cron, zone: zone || "UTC" };
}

function timesInWords({ when, cron, zone, at }: Values): string {
  return when === "once" ? `once, at ${at || "…"}` : `at each tick of ${cron || "…"} in ${zone || "UTC"}`;
}

function pause({ name }: Schedule, after: () => void): void {
  ask({
    title: `Pause ${name}`,
    verb: "Pause",
    effect: () => "It hands in nothing until it is resumed. Ticks meanwhile are left out.",
    request: () => ({ method: "POST", path: path`/v1/schedules/${name}/pause` }),
    done: () => `schedule ${name} is paused`,
    after,
  });
}

function resume({ name }: Schedule, after: () => void): void {
  ask({
    title: `Resume ${name}`,
    verb: "Resume",
    effect: () => "It goes on with the next tick from now.",
    request: () => ({ method: "POST", path: path`/v1/schedules/${name}/resume` }),
    done: () => `schedule ${name} goes on`,
    after,
  });
}

function remove({ name }: Schedule, after: () => void): void {
  ask({
    title: `Remove ${name}`,
    verb: "Remove",
    isDanger: true,
    effect: () => "The schedule goes. Calls that came of it stay.",
    request: () => ({ method: "DELETE", path: path`/v1/schedules/${name}` }),
    done: () => `schedule ${name} is removed`,
    after,
  });
}

const DIGEST = {
  queue: "mails",
  cron: "0 9 * * 1-5",
  zone: "Europe/Berlin",
  call: { lane: "digest", body: { kind: "daily" } },
};

function None() {
  return (
    <Empty
      title="There is no schedule yet"
      command={asCurl({ method: "PUT", path: "/v1/schedules/digest", body: DIGEST })}
    >
      A schedule hands in a call at each tick, into a queue that is there.
    </Empty>
  );
}
