// One run: its graph, its timeline attempt by attempt, and what can be said to it.
import { get, getText, path } from "../../api/client";
import type { Run, StepAttempt } from "../../api/shapes";
import { clock, counted, span, spanOf } from "../../format";
import { useLive } from "../../live";
import { useMay } from "../../overview";
import { ask } from "../../parts/confirm";
import { Mark } from "../../parts/marks";
import { Loading, Trouble } from "../../parts/notice";
import { Head, Panel } from "../../parts/page";
import { When } from "../../parts/time";
import { href } from "../../route";
import { Json } from "../calls/story";
import { graphOf, NODE, pathOf } from "./graph";
import { RunMark, inWords } from "./marks";

const EVERY_MS = 1_000;

export function RunDetail({ id }: { id: string }) {
  const { data: run, error, refresh } = useLive((signal) => get<Run>(path`/v1/runs/${id}`, signal), EVERY_MS, [id]);
  const timeline = useLive(
    (signal) => get<{ attempts: StepAttempt[] }>(path`/v1/runs/${id}/timeline`, signal),
    EVERY_MS,
    [id],
  );
  const picture = useLive((signal) => getText(path`/v1/runs/${id}/picture`, signal), EVERY_MS, [id]);
  return (
    <>
      <Head
        title={<span class="mono">{id}</span>}
        crumb={<a href={href("runs")}>Runs</a>}
        says={
          run && (
            <>
              {run.name} version {run.version} · <RunMark run={run} /> {inWords(run)}
            </>
          )
        }
      >
        {run && <Actions run={run} refresh={refresh} />}
      </Head>
      <Trouble error={error} />
      {run ? (
        <>
          <Facts run={run} />
          <Panel title="Graph">
            <Trouble error={picture.error} />
            {picture.data ? <Picture text={picture.data} /> : !picture.error && <Loading what="the picture" />}
          </Panel>
          <Panel title="Timeline" aside={<small>each attempt, with what it waited for</small>}>
            <Trouble error={timeline.error} />
            {timeline.data ? (
              <Timeline attempts={timeline.data.attempts} />
            ) : (
              !timeline.error && <Loading what="the timeline" />
            )}
          </Panel>
        </>
      ) : (
        !error && <Loading what="the run" />
      )}
    </>
  );
}

function Facts({ run }: { run: Run }) {
  const { ending } = run;
  return (
    <Panel title="How it stands">
      <dl class="facts inside">
        <div>
          <dt>Began</dt>
          <dd>
            <When at={run.began_at} />
          </dd>
        </div>
        {run.ended_at && (
          <div>
            <dt>Ended</dt>
            <dd>
              <When at={run.ended_at} />
            </dd>
          </div>
        )}
        {run.ended_at && (
          <div>
            <dt>Took</dt>
            <dd class="number">{span(new Date(run.ended_at).getTime() - new Date(run.began_at).getTime())}</dd>
          </div>
        )}
        {run.correlation && (
          <div>
            <dt>Key</dt>
            <dd>{run.correlation}</dd>
          </div>
        )}
        {run.call && (
          <div>
            <dt>Call of its step</dt>
            <dd>
              <a class="mono" href={href("calls", [run.call])}>
                {run.call}
              </a>
            </dd>
          </div>
        )}
        {run.names && (
          <div>
            <dt>Awaits</dt>
            <dd>{run.names.join(", ")}</dd>
          </div>
        )}
        {ending?.reason && (
          <div class="wide">
            <dt>Reason</dt>
            <dd>{ending.reason}</dd>
          </div>
        )}
      </dl>
      {ending?.value !== undefined && (
        <div class="inside">
          <Json value={ending.value} label="Value" />
        </div>
      )}
    </Panel>
  );
}

function Actions({ run, refresh }: { run: Run; refresh(): void }) {
  const [mayAct, maySignal] = [useMay("admin"), useMay("enqueue")];
  const isEnded = run.state === "ended";
  return (
    <>
      {maySignal && !isEnded && run.tasks === undefined && (
        <button type="button" onClick={() => signal(run, refresh)}>
          Signal
        </button>
      )}
      {mayAct && !isEnded && (
        <button type="button" onClick={() => cancel(run, refresh)}>
          Cancel the run
        </button>
      )}
      {mayAct && isEnded && (
        <button type="button" class="primary" onClick={() => rerun(run, refresh)}>
          Run again
        </button>
      )}
    </>
  );
}

function signal(run: Run, after: () => void): void {
  ask({
    title: "Signal the run",
    verb: "Signal",
    fields: [
      { name: "name", label: "Name", value: run.names?.[0] ?? "" },
      { name: "payload", label: "Payload, as JSON", kind: "lines", value: "null" },
    ],
    effect: (values) =>
      run.names?.includes(values.name ?? "")
        ? `The run awaits ${values.name} and goes on with it.`
        : "The run does not await this now; it keeps it until it asks.",
    request: (values) => ({
      method: "POST",
      path: path`/v1/runs/${run.run}/signals`,
      body: { name: values.name ?? "", payload: JSON.parse(values.payload ?? "null") as unknown },
    }),
    done: (_, values) => `the run was told ${values.name}`,
    after,
  });
}

function cancel(run: Run, after: () => void): void {
  ask({
    title: "Cancel the run",
    verb: "Cancel it",
    isDanger: true,
    effect: () => "It ends, nothing more of it starts, and the children that it waits for end, too.",
    request: () => ({ method: "POST", path: path`/v1/runs/${run.run}/cancel` }),
    done: (answer) =>
      (answer as { cancelled: boolean }).cancelled ? "the run is cancelled" : "the run had ended before",
    after,
  });
}

function rerun(run: Run, after: () => void): void {
  ask({
    title: "Run again",
    verb: "Run again",
    fields: [
      {
        name: "from",
        label: "From",
        value: run.ending?.step ?? "",
        isOptional: true,
        hint: "A task or step; empty: where it failed",
      },
    ],
    effect: (values) =>
      `The run goes on from ${values.from || "where it failed"}, with all that was given before, and pays again for what it does again.`,
    request: (values) => ({
      method: "POST",
      path: path`/v1/runs/${run.run}/rerun`,
      body: values.from ? { from: values.from } : {},
    }),
    done: () => "the run goes on",
    after,
  });
}

function Picture({ text }: { text: string }) {
  const { nodes, edges, width, height } = graphOf(text);
  if (nodes.length === 0) return <p class="loading">No step was made yet.</p>;
  const label = nodes.map((node) => `${node.lines[0]} ${node.state}`).join(", ");
  return (
    <div class="graph" tabIndex={0} role="region" aria-label="Graph of the run">
      <svg
        role="img"
        aria-label={label}
        width={width + 8}
        height={height + 8}
        viewBox={`-4 -4 ${width + 8} ${height + 8}`}
      >
        {edges.map((edge) => (
          <path class="edge" d={pathOf(edge)} />
        ))}
        {nodes.map((node) => (
          <g class={`node ${node.state}`} transform={`translate(${node.x} ${node.y})`}>
            <title>{node.lines.join("\n")}</title>
            <rect width={NODE.width} height={NODE.height} rx={9} />
            <text x={14} y={24}>
              {cut(node.lines[0] ?? "", 20)}
            </text>
            <text class="under" x={14} y={43}>
              {cut([node.state, ...node.lines.slice(1)].filter(Boolean).join(" · "), 25)}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function Timeline({ attempts }: { attempts: StepAttempt[] }) {
  if (attempts.length === 0) return <p class="loading">Nothing was tried yet, or history no longer has it.</p>;
  const at = (text: string) => new Date(text).getTime();
  const waited = (attempt: StepAttempt) =>
    Object.values(attempt.waits ?? {}).reduce((sum, text) => sum + spanOf(text), 0);
  const first = Math.min(...attempts.map((attempt) => at(attempt.started_at) - waited(attempt)));
  const whole = Math.max(1, Math.max(...attempts.map((attempt) => at(attempt.settled_at))) - first);
  const part = (ms: number) => `${(ms / whole) * 100}%`;
  return (
    <ol class="gantt">
      {attempts.map((attempt) => {
        const [began, took] = [at(attempt.started_at), at(attempt.settled_at) - at(attempt.started_at)];
        const waits = Object.entries(attempt.waits ?? {});
        return (
          <li title={`${clock(attempt.started_at)}, ${span(took)}`}>
            <span class="gantt-name">
              <a href={href("calls", [attempt.call])}>{attempt.step ?? "step"}</a>{" "}
              {attempt.attempt > 1 && <small>attempt {attempt.attempt}</small>}
            </span>
            <span class="gantt-bar" aria-hidden="true">
              <span
                class="gantt-wait"
                style={{ left: part(began - waited(attempt) - first), width: part(waited(attempt)) }}
              />
              <span
                class={`gantt-run ${attempt.settlement === "done" ? "pass" : "stop"}`}
                style={{ left: part(began - first), width: part(took) }}
              />
            </span>
            <span class="gantt-text">
              <Mark tone={attempt.settlement === "done" ? "pass" : "stop"}>{attempt.settlement}</Mark>{" "}
              <span class="number">{span(took)}</span>
              {waits.length > 0 && (
                <small> after {waits.map(([limit, text]) => `${span(spanOf(text))} at ${limit}`).join(", ")}</small>
              )}
            </span>
          </li>
        );
      })}
      <li class="soft">
        {counted(attempts.length, "attempt")} in {span(whole)}
      </li>
    </ol>
  );
}
