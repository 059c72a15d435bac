// Limits: each with its rule, what is left, who waits there and when the next is admitted.
import { asCurl, get, path, Problem, query } from "../api/client";
import type { LimitLine, LimitPage, Meter, MeterPage } from "../api/shapes";
import { count, counted, definitionInWords, holds, inForce, span } from "../format";
import { useLive } from "../live";
import { useMay } from "../overview";
import { Empty } from "../parts/empty";
import { Mark, Usage } from "../parts/marks";
import { Loading, Trouble } from "../parts/notice";
import { Head, Panel } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { useFound, usePages } from "../paging";
import { href, refine, type Route } from "../route";
import { defineLimit } from "./limits/actions";
import { LimitDetail } from "./limits/detail";

const EVERY_MS = 2_000;
/** What is kept fresh, and what is read behind it at a time. */
const PAGE = 200;
const FURTHER = 1_000;

export function LimitsPage({ route }: { route: Route }) {
  const [name] = route.names;
  return name === undefined ? (
    <LimitList sought={route.filters.get("find") ?? ""} />
  ) : (
    <LimitDetail name={name} partition={route.filters.get("partition") ?? undefined} />
  );
}

function LimitList({ sought }: { sought: string }) {
  const isAdmin = useMay("admin");
  const pages = usePages(async (after, signal) => {
    const page = await get<LimitPage>(query("/v1/limits", { limit: after ? FURTHER : PAGE, after }), signal);
    return { rows: page.limits, next: page.next };
  }, []);
  const rows = useFound(pages, sought);
  return (
    <>
      <Head
        title="Limits"
        says="What may pass, and how much of it is left. Flow-control keys of QStash are limits, too."
      >
        {isAdmin && (
          <button type="button" class="primary" onClick={() => defineLimit(pages.refresh)}>
            Define a limit
          </button>
        )}
      </Head>
      <Panel
        pages={pages}
        title={rows ? counted(rows.length, "limit") + (pages.hasMore ? " and more" : "") : "Limits"}
        aside={
          <div class="filters">
            <input
              type="search"
              aria-label="Find a limit"
              placeholder="Find a limit"
              value={sought}
              onInput={(event) => refine({ find: event.currentTarget.value })}
            />
          </div>
        }
      >
        <Trouble error={pages.error} />
        {!rows ? (
          !pages.error && <Loading what="limits" />
        ) : rows.length === 0 ? (
          <None sought={sought} among={pages.hasMore ? pages.rows?.length : undefined} />
        ) : (
          <Table
            label="Limits"
            rows={rows}
            columns={COLUMNS}
            keyOf={(limit) => limit.name}
            isLong
            onEnd={() => sought || pages.more()}
          />
        )}
      </Panel>
    </>
  );
}

const COLUMNS: Column<LimitLine>[] = [
  { title: "Limit", width: "20%", cell: (limit) => <Name limit={limit} /> },
  {
    title: "Rule",
    width: "20%",
    isExtra: true,
    cell: (limit) => <span title={definitionInWords(inForce(limit))}>{definitionInWords(inForce(limit))}</span>,
  },
  { title: "Left · waiting · next admission", cell: (limit) => <Now limit={limit} /> },
  { title: "", width: "72px", isExtra: true, cell: (limit) => <a href={href("flow", [limit.name])}>Flow</a> },
];

function Name({ limit }: { limit: LimitLine }) {
  return (
    <>
      <a href={href("limits", [limit.name])}>{limit.name}</a>
      {limit.pinned && (
        <Mark tone="flight" title={`callers define ${definitionInWords(limit.definition)}`}>
          pinned
        </Mark>
      )}
    </>
  );
}

/** How the limit stands where it is pressed most; asked for only while its row is in sight. */
function Now({ limit }: { limit: LimitLine }) {
  const { data, error } = useLive(
    (signal) => get<MeterPage>(path`/v1/meters/${limit.name}` + "?order=pressure&limit=1", signal),
    EVERY_MS,
    [limit.name],
  );
  if (error instanceof Problem && !data)
    return (
      <span class="soft" title={error.message}>
        not listed here
      </span>
    );
  if (!data) return <span class="soft">…</span>;
  const meter = pressed(data);
  const held = holds(meter);
  return (
    <span class="now">
      <Usage meter={meter} />
      <span class={meter.waiting === 0 ? "number zero" : "number"}>
        {counted(meter.waiting, "lane")} wait{meter.waiting === 1 ? "s" : ""}
      </span>
      <span>
        {held ? (
          <Mark tone={meter.paused || meter.closed_for_ms ? "stop" : "wait"} title={held}>
            {held}
          </Mark>
        ) : (
          <span class="soft">open</span>
        )}
        {meter.next_admission_ms ? <small class="number"> next in {span(meter.next_admission_ms)}</small> : null}
        {meter.partition !== undefined && <small> at {meter.partition}</small>}
      </span>
    </span>
  );
}

function pressed({ global, partitions }: MeterPage): Meter {
  const [first] = partitions;
  const weight = (meter: Meter) =>
    (meter.closed_for_ms ? 1e9 : 0) + meter.waiting * 1e3 - meter.available / Math.max(1, meter.limit);
  return first && weight(first) >= weight(global) ? first : global;
}

/** Among so many, if there are others that were not read. */
function None({ sought, among }: { sought: string; among: number | undefined }) {
  if (sought && among) return <Empty title={`None of the first ${count(among)} limits has “${sought}” in its name`} />;
  if (sought) return <Empty title={`No limit has “${sought}” in its name`} />;
  return (
    <Empty
      title="There is no limit yet"
      command={asCurl({
        method: "PUT",
        path: "/v1/limits/stripe",
        body: { rule: "token_bucket", limit: 100, per: "1m", burst: 150 },
      })}
    >
      A limit is a named rule: {count(100)} per minute, 20 at a time, 10,000 a day in Berlin. Calls pay there when they
      start, each tenant at a meter of its own.
    </Empty>
  );
}
