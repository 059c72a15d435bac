// Who changed what, when, and what was before.
import { get, query } from "../api/client";
import type { Change, ChangePage, Definition } from "../api/shapes";
import { definitionInWords, span } from "../format";
import { useLive } from "../live";
import { Loading, Trouble } from "./notice";
import { Panel } from "./page";
import { Table, type Column } from "./table";
import { When } from "./time";

const EVERY_MS = 5_000;
const SHOWN_MAX = 50;

const COLUMNS: Column<Change>[] = [
  { title: "When", width: "130px", cell: (change) => <When at={change.at} /> },
  { title: "Who", width: "150px", cell: (change) => <span title={change.who}>{change.who}</span> },
  {
    title: "What",
    width: "170px",
    isExtra: true,
    cell: (change) => {
      const part = change.partition ?? change.lane;
      return part === undefined ? change.kind : `${change.kind} of ${part}`;
    },
  },
  { title: "Change", cell: (change) => <Told change={change} /> },
];

export function Audit({ name, kinds }: { name: string; kinds: readonly Change["kind"][] }) {
  const path = query("/v1/audit", { name, kind: kinds.join(","), limit: SHOWN_MAX });
  const { data, error } = useLive((signal) => get<ChangePage>(path, signal), EVERY_MS, [path]);
  const changes = data?.changes;
  return (
    <Panel title="Changes" aside={<small>who, when, before and after</small>}>
      {!changes ? (
        error ? (
          <Trouble error={error} />
        ) : (
          <Loading what="the audit log" />
        )
      ) : changes.length === 0 ? (
        <p class="loading">Nothing was changed that the log still has.</p>
      ) : (
        <Table
          label="Changes"
          rows={changes}
          columns={COLUMNS}
          keyOf={(change) => change.at + change.kind + (change.partition ?? change.lane ?? "")}
        />
      )}
    </Panel>
  );
}

function Told({ change }: { change: Change }) {
  const text = change.action
    ? actionInWords(change)
    : `${inWords(change, change.before)} → ${inWords(change, change.after)}`;
  return <span title={text}>{text}</span>;
}

const DONE = { pause: "paused", resume: "goes on", close: "closed", reopen: "reopened", reset: "reset" };

function actionInWords({ action, for_ms, reason }: Change): string {
  if (!action) return "";
  return for_ms === undefined ? DONE[action] : `${DONE[action]} for ${span(for_ms)}: ${reason ?? ""}`;
}

function inWords(change: Change, what: Record<string, unknown> | undefined): string {
  if (!what) return "none";
  if (change.kind === "queue") return JSON.stringify(what);
  return definitionInWords(what as unknown as Definition);
}
