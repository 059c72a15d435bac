// Calls: those that have not ended by queue, those that have in the history, and any by its id.
import { useState } from "preact/hooks";
import { asCurl, get, path, query } from "../api/client";
import type { CallEvent, CallPage, CallView, HistoryPage } from "../api/shapes";
import { idIn } from "../format";
import { go, href, refine, type Route } from "../route";
import { usePages, type Pages } from "../paging";
import { CallLink, StateMark, Tolls, eventInWords, toneOfEvent, triesOf } from "../parts/callmarks";
import { Empty } from "../parts/empty";
import { Choice, Instant } from "../parts/filters";
import { Mark } from "../parts/marks";
import { Loading, Trouble } from "../parts/notice";
import { Head, Panel, Tabs } from "../parts/page";
import { NoQueue, QueueFilter, useQueues } from "../parts/queuefilter";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { MessageFilters, Messages } from "./calls/messages";
import { CallStory } from "./calls/story";

const PAGE = 500;

const VIEWS = [
  { id: "now", title: "Not ended" },
  { id: "history", title: "History" },
  { id: "messages", title: "QStash messages" },
] as const;

const STATES = ["waiting", "not_due", "resting", "in_flight", "dead"];
const ENDS = ["done", "dead", "cancelled", "expired", "superseded", "dropped"];

export function CallsPage({ route }: { route: Route }) {
  const [id] = route.names;
  return id === undefined ? <CallList filters={route.filters} /> : <CallStory id={id} />;
}

function CallList({ filters }: { filters: URLSearchParams }) {
  const view = VIEWS.find(({ id }) => id === filters.get("view"))?.id ?? "now";
  const [queue, lane] = [filters.get("queue") ?? "", filters.get("lane") ?? ""];
  const queues = useQueues();
  return (
    <>
      <Head
        title="Calls"
        says="What waits and is under way, and what came of the rest. The logs of other products are here."
      >
        <Tabs label="Which calls" of={VIEWS} chosen={view} choose={(view) => refine({ view, queue })} />
      </Head>
      <div class="filters">
        <FindCall />
        {view === "messages" && <MessageFilters filters={filters} />}
        {view === "now" && <QueueFilter queue={queue} lane={lane} most="waiting" queues={queues} />}
        {view === "now" && <Choice name="state" label="State" of={STATES} filters={filters} />}
        {view === "history" && <QueueFilter queue={queue} lane={lane} queues={queues} />}
        {view === "history" && <Choice name="end" label="End" of={ENDS} filters={filters} />}
        {view !== "now" && <Instant name="from" label="From" filters={filters} />}
        {view !== "now" && <Instant name="to" label="Before" filters={filters} />}
      </div>
      {view === "messages" ? (
        <Messages filters={filters} />
      ) : view === "history" ? (
        <History filters={filters} />
      ) : queue ? (
        <Living queue={queue} lane={lane} state={filters.get("state") ?? ""} />
      ) : (
        <NoQueue queues={queues}>
          <NoCall />
        </NoQueue>
      )}
    </>
  );
}

function FindCall() {
  const [id, setId] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (id.trim()) go("calls", [idIn(id)]);
  };
  return (
    <form onSubmit={submit} role="search">
      <label>
        Call
        <input value={id} placeholder="Its id" onInput={(event) => setId(event.currentTarget.value)} />
      </label>
    </form>
  );
}

const LIVING: Column<CallView>[] = [
  { title: "Call", width: "130px", cell: (call) => <CallLink id={call.id} /> },
  { title: "State", width: "110px", cell: (call) => <StateMark state={call.state} /> },
  { title: "Lane", cell: (call) => <span title={call.lane}>{call.lane}</span> },
  { title: "Owes", isExtra: true, cell: (call) => <Tolls tolls={call.tolls} /> },
  {
    title: "Tries",
    width: "170px",
    isExtra: true,
    cell: (call) => <span class={triesOf(call) === "none" ? "zero" : ""}>{triesOf(call)}</span>,
  },
  { title: "Until", width: "150px", isExtra: true, cell: (call) => <Until call={call} /> },
];

function Until({ call }: { call: CallView }) {
  const at = call.rests_until ?? call.lease_expires_at ?? call.not_before;
  if (call.died_at)
    return (
      <span>
        died <When at={call.died_at} />
      </span>
    );
  return at ? <When at={at} /> : <span class="soft">see why</span>;
}

function Living({ queue, lane, state }: { queue: string; lane: string; state: string }) {
  const pages = usePages(
    async (after, signal) => {
      const page = await get<CallPage>(
        query(path`/v1/queues/${queue}/calls`, { lane, state, limit: PAGE, after }),
        signal,
      );
      return { rows: page.calls, next: page.next };
    },
    [queue, lane, state],
  );
  return (
    <Panel title={`Calls of ${queue}`} aside={<small>in the order in which they were accepted</small>} pages={pages}>
      <Trouble error={pages.error} />
      {!pages.rows ? (
        !pages.error && <Loading what="calls" />
      ) : pages.rows.length === 0 ? (
        <Empty title="No call is like that">Those that ended are in the history.</Empty>
      ) : (
        <Table
          label={`Calls of ${queue}`}
          rows={pages.rows}
          columns={LIVING}
          keyOf={(call) => call.id}
          isLong
          onEnd={pages.more}
        />
      )}
    </Panel>
  );
}

const PAST: Column<CallEvent>[] = [
  { title: "When", width: "120px", cell: (event) => <When at={event.at} /> },
  { title: "Call", width: "120px", cell: (event) => <CallLink id={event.call} /> },
  {
    title: "What",
    width: "110px",
    cell: (event) => <Mark tone={toneOfEvent(event)}>{event.end ?? event.outcome ?? event.event}</Mark>,
  },
  {
    title: "Queue · lane",
    isExtra: true,
    width: "24%",
    cell: (event) => (
      <span>
        {event.queue} <small>{event.lane}</small>
      </span>
    ),
  },
  { title: "Story", cell: (event) => <span title={eventInWords(event)}>{eventInWords(event)}</span> },
];

function History({ filters }: { filters: URLSearchParams }) {
  const fields = Object.fromEntries(
    ["queue", "lane", "end", "from", "to"].map((name) => [name, filters.get(name) ?? ""]),
  );
  // A lane is one of a queue.
  if (!fields.queue) delete fields.lane;
  const pages = usePages(
    async (after, signal) => {
      const page = await get<HistoryPage>(query("/v1/history", { ...fields, limit: PAGE, after }), signal);
      return { rows: page.events, next: page.next };
    },
    [fields],
  );
  return (
    <Panel title="History" aside={<small>newest first, as long as it is kept</small>} pages={pages}>
      <Trouble error={pages.error} />
      {!pages.rows ? (
        !pages.error && <Loading what="history" />
      ) : pages.rows.length === 0 ? (
        <NotFound pages={pages} />
      ) : (
        <Table
          label="History"
          rows={pages.rows}
          columns={PAST}
          keyOf={({ call, event, at, attempt, limit, partition }) =>
            JSON.stringify([call, event, at, attempt, limit, partition])
          }
          isLong
          onEnd={pages.more}
        />
      )}
    </Panel>
  );
}

/** History is read from its newest end, so much at a time. */
function NotFound({ pages }: { pages: Pages<CallEvent> }) {
  if (!pages.hasMore) return <Empty title="Nothing like that is in the history" />;
  return (
    <Empty title="Nothing like that is among the newest of the history">
      <button type="button" onClick={pages.more}>
        Look further
      </button>
    </Empty>
  );
}

function NoCall() {
  return (
    <Empty
      title="There is no queue to have calls"
      command={asCurl({ method: "PUT", path: "/v1/queues/charges", body: {} })}
    >
      Define a queue and hand in a call; then its story is here. <a href={href("queues")}>Queues</a> say how.
    </Empty>
  );
}
