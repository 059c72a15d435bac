// What if: a limit changed on paper, and what would become of all that waits.
import { useState } from "preact/hooks";
import { asCurl, get, path, query, send, type Request } from "../api/client";
import type { Definition, LimitPage, LimitState, Outlook } from "../api/shapes";
import { counted, definitionInWords, inForce } from "../format";
import { useLive } from "../live";
import { useMay, useSeen } from "../overview";
import { Command, Empty } from "../parts/empty";
import { Fields, valuesOf, type Field, type Values } from "../parts/fields";
import { Loading, Trouble } from "../parts/notice";
import { Head, Panel } from "../parts/page";
import { go, href, type Route } from "../route";
import { editLimit, pinLimit } from "./limits/actions";
import { definitionOf, fieldsOf, saidIn } from "./limits/edit";
import { OutlookPanels } from "./whatif/outlook";

const LIMITS_MAX = 1_000;
const EVERY_MS = 10_000;

export function WhatIfPage({ route }: { route: Route }) {
  const [name] = route.names;
  const limits = useLive((signal) => get<LimitPage>(query("/v1/limits", { limit: LIMITS_MAX }), signal), EVERY_MS, []);
  return (
    <>
      <Head
        title="What if"
        crumb={name !== undefined && <a href={href("limits", [name])}>{name}</a>}
        says="Change a limit on paper, and see when all that waits would have started. Nothing is changed."
      />
      <Trouble error={limits.error} />
      {limits.data?.limits.length === 0 ? (
        <Empty
          title="There is no limit that could be another"
          command={asCurl({
            method: "PUT",
            path: "/v1/limits/stripe",
            body: { rule: "token_bucket", limit: 100, per: "1m" },
          })}
        >
          Define one, hand in calls that pay there, and ask here what a larger or a smaller one would do to them.
        </Empty>
      ) : (
        <Choose names={limits.data?.limits.map((limit) => limit.name) ?? []} chosen={name} />
      )}
      {name !== undefined && <OfLimit key={name} name={name} />}
    </>
  );
}

function Choose({ names, chosen }: { names: string[]; chosen: string | undefined }) {
  const shown = new Set([...names, ...(chosen === undefined ? [] : [chosen])]);
  return (
    <div class="filters">
      <label>
        Limit
        <select value={chosen ?? ""} onChange={(event) => go("whatif", [event.currentTarget.value])}>
          {chosen === undefined && <option value="">Choose a limit</option>}
          {[...shown].map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

function OfLimit({ name }: { name: string }) {
  const { data, error, refresh } = useLive((signal) => get<LimitState>(path`/v1/limits/${name}`, signal), EVERY_MS, [
    name,
  ]);
  if (!data) return error ? <Trouble error={error} /> : <Loading what={name} />;
  return <Paper limit={data} refresh={refresh} />;
}

/** Beside the rule: how calls are worked on meanwhile. */
const WORK: Field[] = [
  { name: "takes", label: "A call takes", value: "1s", hint: "From its start to its end: 250ms, 10s, 5m" },
  {
    name: "hands",
    label: "In flight at most, in calls",
    kind: "number",
    value: "",
    isOptional: true,
    hint: "Of each queue, as many as its workers take; empty: any number",
  },
  {
    name: "within",
    label: "Look ahead",
    kind: "choice",
    value: "1d",
    choices: [
      { value: "1h", label: "an hour" },
      { value: "1d", label: "a day" },
      { value: "7d", label: "a week" },
      { value: "30d", label: "thirty days" },
    ],
  },
];

function Paper({ limit, refresh }: { limit: LimitState; refresh(): void }) {
  const [fields] = useState(() => [...fieldsOf(inForce(limit)), ...WORK]);
  const [values, setValues] = useState(() => valuesOf(fields));
  const [told, setTold] = useState<{ outlook: Outlook; of: Values } | undefined>();
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const { request, definition, wrong } = requestOf(limit.name, values);

  const foretell = async (event: Event) => {
    event.preventDefault();
    if (!request) return setTrouble(wrong);
    setBusy(true);
    try {
      setTold({ outlook: await send<Outlook>(request), of: values });
      setTrouble("");
    } catch (error) {
      setTrouble((error as Error).message);
    }
    setBusy(false);
  };
  return (
    <>
      <Panel title={`${limit.name} on paper`} aside={<small>now {definitionInWords(inForce(limit))}</small>}>
        <form class="paper" onSubmit={foretell}>
          <Fields of={fields} values={values} set={(values) => (setTrouble(""), setValues(values))} />
          {trouble && (
            <p class="wrong" role="alert">
              {trouble}
            </p>
          )}
          <div class="buttons">
            <button type="submit" class="primary" disabled={isBusy}>
              {isBusy ? "Looking ahead…" : "Look ahead"}
            </button>
            <ForReal limit={limit} to={definition} refresh={refresh} />
          </div>
          {request && (
            <details>
              <summary>The same from a terminal</summary>
              <Command text={asCurl(request)} />
            </details>
          )}
        </form>
      </Panel>
      {told?.outlook.then && (
        <OutlookPanels
          now={told.outlook.now}
          then={told.outlook.then}
          words={{ now: definitionInWords(inForce(limit)), then: saidIn(told.of) }}
          within={WORK[2]?.choices?.find((choice) => choice.value === told.of.within)?.label ?? ""}
        />
      )}
    </>
  );
}

/** What was thought of can be put in force, by who may: after it was agreed to. */
function ForReal({ limit, to, refresh }: { limit: LimitState; to: Definition | undefined; refresh(): void }) {
  const isAdmin = useMay("admin");
  const bites = useSeen().data?.limits.filter((bite) => bite.limit === limit.name) ?? [];
  if (!isAdmin) return null;
  const lanes = counted(
    bites.reduce((sum, bite) => sum + bite.waiting, 0),
    "lane",
  );
  const change = () => (limit.pinned ? pinLimit(limit, refresh, to) : editLimit(limit, lanes, refresh, to));
  return (
    <button type="button" disabled={!to} onClick={change}>
      Change it for real
    </button>
  );
}

function requestOf(name: string, values: Values): { request?: Request; definition?: Definition; wrong: string } {
  try {
    const definition = definitionOf(values);
    const hands = values.hands?.trim() ? { hands: Number(values.hands.replaceAll(/[,_ ]/g, "")) } : {};
    const body = { limits: { [name]: definition }, takes: values.takes, within: values.within, ...hands };
    return { request: { method: "POST", path: "/v1/forecast", body }, definition, wrong: "" };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}
