// Runs of workflows and step machines: those that live, and those that ended within a day.
import { asCurl, get, query } from "../api/client";
import type { Run, RunPage, WorkflowPage } from "../api/shapes";
import { counted } from "../format";
import { useLive } from "../live";
import { usePages } from "../paging";
import { Empty } from "../parts/empty";
import { TypedInput } from "../parts/fields";
import { Loading, Trouble } from "../parts/notice";
import { Head, Panel, Tabs } from "../parts/page";
import { Table, type Column } from "../parts/table";
import { When } from "../parts/time";
import { href, refine, type Route } from "../route";
import { RunDetail } from "./runs/detail";
import { RunMark, inWords } from "./runs/marks";

const PAGE = 200;
const EVERY_MS = 5_000;

const VIEWS = [
  { id: "living", title: "Living" },
  { id: "ended", title: "Ended" },
] as const;

export function RunsPage({ route }: { route: Route }) {
  const [id] = route.names;
  return id === undefined ? <RunList filters={route.filters} /> : <RunDetail id={id} />;
}

function RunList({ filters }: { filters: URLSearchParams }) {
  const view = filters.get("view") === "ended" ? "ended" : "living";
  const name = filters.get("name") ?? "";
  const workflows = useLive((signal) => get<WorkflowPage>("/v1/workflows?limit=1000", signal), EVERY_MS, []);
  const pages = usePages(
    async (after, signal) => {
      const page = await get<RunPage>(
        query("/v1/runs", { ended: view === "ended" ? "true" : undefined, name, limit: PAGE, after }),
        signal,
      );
      return { rows: page.runs, next: page.next };
    },
    [view, name],
  );
  return (
    <>
      <Head title="Runs" says="Workflows and step machines, each run with how far it is.">
        <Tabs label="Which runs" of={VIEWS} chosen={view} choose={(view) => refine({ view })} />
      </Head>
      <div class="filters">
        <label>
          Workflow or machine
          <TypedInput value={name} list="workflows" placeholder="All" commit={(name) => refine({ name })} />
          <datalist id="workflows">
            {workflows.data?.workflows.map((workflow) => (
              <option value={workflow.name} />
            ))}
          </datalist>
        </label>
      </div>
      <Trouble error={pages.error} />
      {pages.rows ? (
        <Panel
          title={counted(pages.rows.length, "run") + (pages.hasMore ? " and more" : "")}
          aside={<small>in the order in which they began</small>}
          pages={pages}
        >
          {pages.rows.length === 0 ? (
            <None view={view} hasWorkflows={(workflows.data?.workflows.length ?? 0) > 0} />
          ) : (
            <Table
              label="Runs"
              rows={pages.rows}
              columns={COLUMNS}
              keyOf={(run) => run.run}
              isLong
              onEnd={pages.more}
            />
          )}
        </Panel>
      ) : (
        !pages.error && <Loading what="runs" />
      )}
    </>
  );
}

const COLUMNS: Column<Run>[] = [
  {
    title: "Run",
    width: "230px",
    cell: (run) => (
      <a class="mono" href={href("runs", [run.run])}>
        {run.run}
      </a>
    ),
  },
  {
    title: "Of",
    cell: (run) => (
      <span>
        {run.name} <small>version {run.version}</small>
      </span>
    ),
  },
  { title: "State", width: "110px", cell: (run) => <RunMark run={run} /> },
  { title: "How far", isExtra: true, cell: (run) => <span title={inWords(run)}>{inWords(run)}</span> },
  { title: "Key", width: "140px", isExtra: true, cell: (run) => run.correlation ?? <span class="soft">none</span> },
  { title: "Began", width: "130px", isExtra: true, cell: (run) => <When at={run.began_at} /> },
];

const TASKS = [
  { name: "fetch", type: "http.get" },
  { name: "ask", type: "llm.chat", after: ["fetch"] },
];

function None({ view, hasWorkflows }: { view: "living" | "ended"; hasWorkflows: boolean }) {
  if (hasWorkflows || view === "ended")
    return (
      <Empty title={view === "ended" ? "No run ended that is still kept" : "No run is under way"}>
        Runs that ended are kept for a day.
      </Empty>
    );
  return (
    <Empty
      title="There is no workflow yet"
      command={[
        asCurl({ method: "PUT", path: "/v1/workflows/summarise", body: { tasks: TASKS } }),
        asCurl({ method: "POST", path: "/v1/workflows/summarise/runs", body: { url: "https://example.com" } }),
      ].join("\n")}
    >
      A workflow is tasks that depend on each other, and the limit sits on the type of a task. Workers claim tasks from
      the queues task/TYPE.
    </Empty>
  );
}
