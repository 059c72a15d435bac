// The log of messages in QStash's own words: by address, label and flow-control key.
import { asCurl, get, query } from "../../api/client";
import type { MessageLine, MessageLog } from "../../api/shapes";
import { idIn } from "../../format";
import { usePages } from "../../paging";
import { CallLink } from "../../parts/callmarks";
import { Empty } from "../../parts/empty";
import { Choice, Text } from "../../parts/filters";
import { Mark, type Tone } from "../../parts/marks";
import { Loading, Trouble } from "../../parts/notice";
import { Panel } from "../../parts/page";
import { Table, type Column } from "../../parts/table";
import { When } from "../../parts/time";
import { href } from "../../route";

const PAGE = 500;

const STATES: Record<string, Tone> = {
  CREATED: "plain",
  ACTIVE: "flight",
  RETRY: "wait",
  ERROR: "stop",
  DELIVERED: "pass",
  FAILED: "stop",
  CANCEL_REQUESTED: "plain",
  CANCELED: "plain",
};

export function MessageFilters({ filters }: { filters: URLSearchParams }) {
  return (
    <>
      <Choice name="message" label="State" of={Object.keys(STATES)} filters={filters} />
      <Text name="url" label="Address" placeholder="https://…, whole" filters={filters} />
      <Text name="label" label="Label" placeholder="Any" filters={filters} />
      <Text name="key" label="Flow-control key" placeholder="Any" filters={filters} />
    </>
  );
}

const COLUMNS: Column<MessageLine>[] = [
  { title: "When", width: "120px", cell: (line) => <When at={line.time} /> },
  { title: "Message", width: "120px", cell: (line) => <CallLink id={idIn(line.messageId)} /> },
  {
    title: "State",
    width: "120px",
    cell: (line) => <Mark tone={STATES[line.state] ?? "plain"}>{line.state.toLowerCase().replace("_", " ")}</Mark>,
  },
  { title: "Address", cell: (line) => <span title={`${line.method} ${line.url}`}>{line.url}</span> },
  { title: "Label", width: "14%", isExtra: true, cell: (line) => <Labels line={line} /> },
  {
    title: "Key",
    width: "14%",
    isExtra: true,
    cell: (line) => line.flowControlKey && <a href={href("limits", [line.flowControlKey])}>{line.flowControlKey}</a>,
  },
  { title: "Answer", width: "16%", isExtra: true, cell: (line) => <Answer line={line} /> },
];

function Labels({ line }: { line: MessageLine }) {
  const labels = (line.labels ?? []).join(", ");
  return <span title={labels}>{labels}</span>;
}

function Answer({ line }: { line: MessageLine }) {
  const told = [line.responseStatus, line.error].filter(Boolean).join(" · ");
  return <span title={told}>{told}</span>;
}

export function Messages({ filters }: { filters: URLSearchParams }) {
  const asked = (name: string) => filters.get(name) ?? "";
  const fields = {
    state: asked("message"),
    url: asked("url"),
    label: asked("label"),
    flowControlKey: asked("key"),
    fromDate: millisOf(asked("from")),
    toDate: millisOf(asked("to")),
  };
  const pages = usePages(
    async (cursor, signal) => {
      const asked = { ...fields, count: PAGE, cursor, trimBody: "true" };
      const { logs, cursor: next } = await get<MessageLog>(query("/v2/logs", asked), signal);
      return { rows: logs, next };
    },
    [fields],
  );
  return (
    <Panel title="Messages" aside={<small>newest first, as long as it is kept</small>} pages={pages}>
      <Trouble error={pages.error} />
      {!pages.rows ? (
        !pages.error && <Loading what="messages" />
      ) : pages.rows.length === 0 ? (
        <Empty title="No message is like that" command={asCurl(PUBLISH)}>
          Messages come over QStash's API, from its SDKs or from curl.
        </Empty>
      ) : (
        <Table
          label="Messages"
          rows={pages.rows}
          columns={COLUMNS}
          keyOf={({ messageId, time, state }) => JSON.stringify([messageId, time, state])}
          isLong
          onEnd={pages.more}
        />
      )}
    </Panel>
  );
}

/** What is no instant is asked for as it is: the server tells what is wrong with it. */
function millisOf(instant: string): string {
  const at = new Date(instant).getTime();
  return Number.isNaN(at) ? instant : String(at);
}

const PUBLISH = { method: "POST", path: "/v2/publish/https://example.com/hook", body: { n: 1 } } as const;
