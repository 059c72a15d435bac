// Dead: calls that failed too often or were given up. They wait here to be revived, deleted or exported.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, path, query } from "../api/client";
import type { CallPage, CallView, QueueState } from "../api/shapes";
import { count, counted } from "../format";
import { useLive } from "../live";
import { useMay } from "../overview";
import { usePages } from "../paging";
import { CallLink, Tolls, triesOf } from "../parts/callmarks";
import { Empty } from "../parts/empty";
import { Mark } from "../parts/marks";
import { Loading, Trouble, say } from "../parts/notice";
import { Head, Panel } from "../parts/page";
import { NoQueue, QueueFilter, useQueues } from "../parts/queuefilter";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import type { Route } from "../route";
import { deleteAll, deleteCalls, reviveAll, reviveCalls } from "./dead/actions";
import { exportDead } from "./dead/export";

const PAGE = 500;
const EVERY_MS = 2_000;

export function DeadPage({ route }: { route: Route }) {
  const [queue, lane] = [route.filters.get("queue") ?? "", route.filters.get("lane") ?? ""];
  const queues = useQueues();
  return (
    <>
      <Head
        title="Dead"
        says="Calls that failed, crashed or were limited too often, or were given up: dead letters. They stay until you decide."
      />
      <div class="filters">
        <QueueFilter queue={queue} lane={lane} most="dead" queues={queues} />
      </div>
      {queue ? (
        <DeadOf key={JSON.stringify([queue, lane])} queue={queue} lane={lane} />
      ) : (
        <NoQueue queues={queues}>
          <NoneDead />
        </NoQueue>
      )}
    </>
  );
}

function DeadOf({ queue, lane }: { queue: string; lane: string }) {
  const isAdmin = useMay("admin");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const of = lane ? { queue, lane } : { queue };
  const state = useLive((signal) => get<QueueState>(path`/v1/queues/${queue}`, signal), EVERY_MS, [queue]);
  const pages = usePages(
    async (after, signal) => {
      const page = await get<CallPage>(query("/v1/dead", { ...of, limit: PAGE, after }), signal);
      return { rows: page.calls, next: page.next };
    },
    [queue, lane],
  );
  const refresh = () => {
    setChosen(new Set());
    pages.refresh();
    state.refresh();
  };
  const dead = lane ? undefined : state.data?.dead;
  const ids = pages.rows?.map((call) => call.id).filter((id) => chosen.has(id)) ?? [];
  const toggle = (id: string) =>
    setChosen((before) =>
      before.has(id) ? new Set([...before].filter((one) => one !== id)) : new Set([...before, id]),
    );
  const actions = pages.rows && pages.rows.length > 0 && (
    <div class="buttons">
      <ExportButton of={of} />
      {isAdmin && ids.length > 0 && (
        <>
          <button type="button" onClick={() => reviveCalls(ids, refresh)}>
            Revive {count(ids.length)}
          </button>
          <button type="button" onClick={() => deleteCalls(ids, refresh)}>
            Delete {count(ids.length)}
          </button>
        </>
      )}
      {isAdmin && ids.length === 0 && (
        <>
          <button type="button" class="primary" onClick={() => reviveAll(of, dead, refresh)}>
            Revive all
          </button>
          <button type="button" onClick={() => deleteAll(of, dead, refresh)}>
            Delete all
          </button>
        </>
      )}
    </div>
  );
  return (
    <Panel title={dead === undefined ? "Dead calls" : counted(dead, "dead call")} aside={actions} pages={pages}>
      <Trouble error={pages.error} />
      {!pages.rows ? (
        !pages.error && <Loading what="dead calls" />
      ) : pages.rows.length === 0 ? (
        <NoneDead />
      ) : (
        <Table
          label="Dead calls"
          rows={pages.rows}
          columns={columnsFor(isAdmin, chosen, toggle)}
          keyOf={(call) => call.id}
          isLong
          onEnd={pages.more}
          isChosen={(call) => chosen.has(call.id)}
        />
      )}
    </Panel>
  );
}

function ExportButton({ of }: { of: { queue: string; lane?: string } }) {
  const [done, setDone] = useState<number | null>(null);
  const ends = useMemo(() => new AbortController(), []);
  useEffect(() => () => ends.abort(), []);
  const start = async () => {
    setDone(0);
    try {
      const { calls, gone } = await exportDead(of, setDone, ends.signal);
      const missing = gone > 0 ? `; ${counted(gone, "call")} of the list had gone meanwhile` : "";
      say(`${counted(calls, "call")} exported, a line of JSON each${missing}`);
    } catch (error) {
      if (!ends.signal.aborted) say((error as Error).message, true);
    }
    setDone(null);
  };
  return (
    <button type="button" disabled={done !== null} onClick={start}>
      {done === null ? "Export" : `Exporting, ${counted(done, "call")}`}
    </button>
  );
}

function columnsFor(isAdmin: boolean, chosen: ReadonlySet<string>, toggle: (id: string) => void): Column<CallView>[] {
  const columns: Column<CallView>[] = [
    { title: "Call", width: "120px", cell: (call) => <CallLink id={call.id} /> },
    {
      title: "Died of",
      width: "110px",
      cell: (call) => <Mark tone="stop">{(call.died_of ?? "unknown").replace("_", " ")}</Mark>,
    },
    { title: "Died", width: "120px", cell: (call) => call.died_at && <When at={call.died_at} /> },
    { title: "Lane", cell: (call) => <span title={call.lane}>{call.lane}</span> },
    { title: "Tries", width: "170px", isExtra: true, cell: triesOf },
    { title: "Owes", isExtra: true, cell: (call) => <Tolls tolls={call.tolls} /> },
  ];
  const tick: Column<CallView> = {
    title: "",
    width: "50px",
    cell: (call) => (
      <input
        type="checkbox"
        aria-label={`Choose call ${call.id}`}
        checked={chosen.has(call.id)}
        onChange={() => toggle(call.id)}
      />
    ),
  };
  return isAdmin ? [tick, ...columns] : columns;
}

function NoneDead() {
  return (
    <Empty title="Nobody is dead here">
      A call dies after so many failures, crashes or pauses, as its queue says in failures_max, crashes_max and
      limited_max, or when a worker gives it up. Then it waits here, whole, until it is revived or deleted.
    </Empty>
  );
}
