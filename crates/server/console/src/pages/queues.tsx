// Queues: how deep each is, what is in flight and dead, and whether workers ask for its calls.
import { asCurl, get, query } from "../api/client";
import type { QueuePage, QueueState } from "../api/shapes";
import { count, counted } from "../format";
import { useMay } from "../overview";
import { useFound, usePages } from "../paging";
import { Empty } from "../parts/empty";
import { Mark } from "../parts/marks";
import { Loading, Trouble } from "../parts/notice";
import { OldestOf } from "../parts/oldest";
import { Count, Head, Panel } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { href, refine, type Route } from "../route";
import { defineQueue, pauseQueue, resumeQueue } from "./queues/actions";
import { QueueDetail } from "./queues/detail";

const PAGE = 500;

export function QueuesPage({ route }: { route: Route }) {
  const [name] = route.names;
  if (name === undefined) return <QueueList sought={route.filters.get("find") ?? ""} />;
  return <QueueDetail name={name} lane={route.filters.get("lane") ?? ""} />;
}

function QueueList({ sought }: { sought: string }) {
  const isAdmin = useMay("admin");
  const pages = usePages(async (after, signal) => {
    const page = await get<QueuePage>(query("/v1/queues", { limit: PAGE, after }), signal);
    return { rows: page.queues, next: page.next };
  }, []);
  const rows = useFound(pages, sought);
  return (
    <>
      <Head
        title="Queues"
        says="Calls wait here in lanes, one lane for each key, and start in order as soon as their limits let them."
      >
        {isAdmin && (
          <button type="button" class="primary" onClick={() => defineQueue(pages.refresh)}>
            Define a queue
          </button>
        )}
      </Head>
      <Panel
        pages={pages}
        title={rows ? counted(rows.length, "queue") + (pages.hasMore ? " and more" : "") : "Queues"}
        aside={
          <div class="filters">
            <input
              aria-label="Find a queue"
              placeholder="Find a queue"
              value={sought}
              onInput={(event) => refine({ find: event.currentTarget.value })}
            />
          </div>
        }
      >
        <Trouble error={pages.error} />
        {!rows ? (
          !pages.error && <Loading what="queues" />
        ) : rows.length === 0 ? (
          <None sought={sought} among={pages.hasMore ? pages.rows?.length : undefined} />
        ) : (
          <Table
            label="Queues"
            rows={rows}
            columns={columnsFor(isAdmin, pages.refresh)}
            keyOf={(queue) => queue.name}
            isLong
            onEnd={() => sought || pages.more()}
          />
        )}
      </Panel>
    </>
  );
}

function columnsFor(isAdmin: boolean, refresh: () => void): Column<QueueState>[] {
  const columns: Column<QueueState>[] = [
    { title: "Queue", cell: (queue) => <Name queue={queue} /> },
    {
      title: "Waiting",
      width: "110px",
      isNumber: true,
      cell: (queue) => <Count value={queue.waiting} text={counted(queue.waiting, "call")} />,
    },
    {
      title: "Oldest",
      width: "110px",
      isNumber: true,
      isExtra: true,
      cell: (queue) => (queue.waiting === 0 ? "" : <OldestOf queue={queue.name} />),
    },
    {
      title: "In flight",
      width: "100px",
      isNumber: true,
      isExtra: true,
      cell: (queue) => <Count value={queue.in_flight} text={counted(queue.in_flight, "call")} />,
    },
    {
      title: "Dead",
      width: "100px",
      isNumber: true,
      cell: (queue) =>
        queue.dead === 0 ? (
          <span class="zero">0 calls</span>
        ) : (
          <a href={href("dead", [], { queue: queue.name })}>{counted(queue.dead, "call")}</a>
        ),
    },
    { title: "Lanes", width: "110px", isNumber: true, isExtra: true, cell: (queue) => counted(queue.lanes, "lane") },
    {
      title: "Asking",
      width: "110px",
      isNumber: true,
      isExtra: true,
      cell: (queue) => <Count value={queue.asking} text={counted(queue.asking, "claim")} />,
    },
    { title: "Order", width: "150px", isExtra: true, cell: (queue) => orderOf(queue) },
  ];
  if (isAdmin)
    columns.push({
      title: "",
      width: "96px",
      isExtra: true,
      cell: (queue) => (
        <span class="row-buttons">
          {queue.paused ? (
            <button type="button" onClick={() => resumeQueue(queue.name, refresh)}>
              Resume
            </button>
          ) : (
            <button type="button" onClick={() => pauseQueue(queue, refresh)}>
              Pause
            </button>
          )}
        </span>
      ),
    });
  return columns;
}

function orderOf({ definition }: QueueState): string {
  return definition.order === "strict" ? "strict" : `${count(definition.order.parallel)} at a time`;
}

function Name({ queue }: { queue: QueueState }) {
  return (
    <>
      <a href={href("queues", [queue.name])}>{queue.name}</a>
      {queue.paused && <Mark tone="stop">paused</Mark>}
      {queue.definition.destination && <Mark tone="flight">pushed</Mark>}
      {!queue.paused && queue.waiting > 0 && queue.asking === 0 && queue.in_flight === 0 && (
        <Mark tone="wait">no worker asks</Mark>
      )}
    </>
  );
}

/** Among so many, if there are others that were not read. */
function None({ sought, among }: { sought: string; among: number | undefined }) {
  if (sought && among) return <Empty title={`None of the first ${count(among)} queues has “${sought}” in its name`} />;
  if (sought) return <Empty title={`No queue has “${sought}” in its name`} />;
  return (
    <Empty
      title="There is no queue yet"
      command={[
        asCurl({ method: "PUT", path: "/v1/queues/charges", body: {} }),
        asCurl({ method: "POST", path: "/v1/queues/charges/calls", body: { lane: "acme", body: { cents: 1900 } } }),
      ].join("\n")}
    >
      Calls that must not be lost are handed in to a queue. A worker claims them; or give the queue a destination, and
      Tollgate makes the calls itself.
    </Empty>
  );
}
