// The lanes of a queue: the busiest, or all by name, however many there are.
import { useState } from "preact/hooks";
import { asCurl, get, path, query } from "../../api/client";
import type { Lane, LanePage, QueueState } from "../../api/shapes";
import { count, counted } from "../../format";
import { useMay } from "../../overview";
import { usePages } from "../../paging";
import { Blocked } from "../../parts/blocked";
import { Empty } from "../../parts/empty";
import { Mark } from "../../parts/marks";
import { Loading, Trouble } from "../../parts/notice";
import { Count, Panel, Tabs } from "../../parts/page";
import { Table, type Column } from "../../parts/table";
import { href, refine } from "../../route";
import { LaneButtons, LanePanel } from "./lane";

const PAGE = 1_000;

type View = "busiest" | "named";

const VIEWS = [
  { id: "busiest", title: "Busiest" },
  { id: "named", title: "By name" },
] as const;

export function Lanes({ queue, from }: { queue: QueueState; from: string }) {
  const [view, setView] = useState<View>(from ? "named" : "busiest");
  const isAdmin = useMay("admin");
  const pages = usePages(
    async (after, signal) => read(queue.name, view, after ?? before(from), signal),
    [queue.name, view, view === "named" ? from : ""],
  );
  const isAll = (pages.rows?.length ?? 0) >= queue.lanes;
  // Of some of them nobody knows what share of all they have.
  const weights = isAll ? pages.rows?.reduce((sum, lane) => sum + (lane.waiting > 0 ? lane.weight : 0), 0) : 0;
  const which = view === "busiest" && pages.rows && !isAll ? `, the busiest ${count(pages.rows.length)}` : "";
  const aside = (
    <div class="filters">
      <input
        aria-label="Go to a lane by its name"
        placeholder="Go to a lane"
        value={from}
        onInput={(event) => (setView("named"), refine({ lane: event.currentTarget.value }))}
      />
      <Tabs label="Lanes" of={VIEWS} chosen={view} choose={setView} />
    </div>
  );
  const chosen = pages.rows?.find((lane) => lane.name === from);
  return (
    <>
      {chosen && <LanePanel queue={queue.name} lane={chosen} refresh={pages.refresh} />}
      <Panel title={counted(queue.lanes, "lane") + which} aside={aside} pages={pages}>
        <Trouble error={pages.error} />
        {!pages.rows ? (
          !pages.error && <Loading what="lanes" />
        ) : pages.rows.length === 0 ? (
          <NoLane queue={queue.name} from={from} />
        ) : (
          <Table
            label="Lanes"
            rows={pages.rows}
            columns={columnsFor(queue.name, isAdmin, weights ?? 0, pages.refresh)}
            keyOf={(lane) => lane.name}
            isLong
            onEnd={pages.more}
            isChosen={(lane) => lane === chosen}
          />
        )}
      </Panel>
    </>
  );
}

async function read(queue: string, view: View, after: string | undefined, signal: AbortSignal) {
  const fields = view === "busiest" ? { order: "waiting", limit: PAGE } : { after, limit: PAGE };
  const page = await get<LanePage>(query(path`/v1/queues/${queue}/lanes`, fields), signal);
  return { rows: page.lanes, next: page.next };
}

/** The last name before this one, as bytes go: a page behind it begins with the lane itself. */
function before(name: string): string | undefined {
  const letters = [...name];
  const last = letters.pop()?.codePointAt(0);
  if (last === undefined || last <= 1) return undefined;
  // The codes from D800 to DFFF are no letters.
  const lower = last === 0xe000 ? 0xd7ff : last - 1;
  return `${letters.join("")}${String.fromCodePoint(lower)}\u{10ffff}`;
}

function columnsFor(queue: string, isAdmin: boolean, weights: number, refresh: () => void): Column<Lane>[] {
  const share = (lane: Lane) => (lane.waiting > 0 && weights > 0 ? percent(lane.weight / weights) : "");
  const columns: Column<Lane>[] = [
    { title: "Lane", width: "24%", cell: (lane) => <Name queue={queue} lane={lane} /> },
    {
      title: "Waiting",
      width: "110px",
      isNumber: true,
      cell: (lane) => <Count value={lane.waiting} text={counted(lane.waiting, "call")} />,
    },
    {
      title: "In flight",
      width: "92px",
      isNumber: true,
      isExtra: true,
      cell: (lane) => <Count value={lane.in_flight} text={counted(lane.in_flight, "call")} />,
    },
    {
      title: "Dead",
      width: "84px",
      isNumber: true,
      isExtra: true,
      cell: (lane) => <Count value={lane.dead} text={counted(lane.dead, "call")} />,
    },
    {
      title: "Weight · share",
      width: "116px",
      isNumber: true,
      isExtra: true,
      cell: (lane) => (
        <span title="Its share where all these lanes wait at one meter">
          × {count(lane.weight)} <small>{share(lane)}</small>
        </span>
      ),
    },
    {
      title: "What blocks its first call",
      cell: (lane) =>
        lane.head === undefined ? <span class="soft">nothing waits</span> : <Blocked call={lane.head} />,
    },
    {
      title: "",
      width: isAdmin ? "270px" : "132px",
      isExtra: true,
      cell: (lane) => <LaneButtons queue={queue} lane={lane} refresh={refresh} />,
    },
  ];
  return columns;
}

function percent(part: number): string {
  return part < 0.01 ? "< 1 %" : `${Math.round(part * 100)} %`;
}

function Name({ queue, lane }: { queue: string; lane: Lane }) {
  return (
    <>
      <a href={href("queues", [queue], { lane: lane.name })} title={lane.name}>
        {lane.name}
      </a>
      {lane.paused && <Mark tone="stop">paused</Mark>}
      {lane.held && (
        <Mark tone="stop" title="a dead call holds it">
          held
        </Mark>
      )}
    </>
  );
}

function NoLane({ queue, from }: { queue: string; from: string }) {
  if (from) return <Empty title={`No lane is called ${from}, or comes after it`} />;
  return (
    <Empty
      title="No lane has calls"
      command={asCurl({
        method: "POST",
        path: path`/v1/queues/${queue}/calls`,
        body: { lane: "acme", body: { cents: 1900 } },
      })}
    >
      A lane is made by its first call, and forgotten with its last.
    </Empty>
  );
}
