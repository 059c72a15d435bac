// One call's story: what it is, why it waits, what was sent, and what came of every attempt.
import { get, path } from "../../api/client";
import type { Call, CallEvent, Explanation } from "../../api/shapes";
import { bytes, clock, instant, reasonInWords } from "../../format";
import { useLive } from "../../live";
import { useMay } from "../../overview";
import { toneOf } from "../../parts/blocked";
import { StateMark, Tolls, eventInWords, toneOfEvent } from "../../parts/callmarks";
import { ask } from "../../parts/confirm";
import { Mark } from "../../parts/marks";
import { Loading, Trouble } from "../../parts/notice";
import { Head, Panel } from "../../parts/page";
import { When } from "../../parts/time";
import { href } from "../../route";
import { deleteCalls, reviveCalls } from "../dead/actions";

const EVERY_MS = 1_000;

export function CallStory({ id }: { id: string }) {
  const { data: call, error, refresh } = useLive((signal) => get<Call>(path`/v1/calls/${id}`, signal), EVERY_MS, [id]);
  return (
    <>
      <Head
        title={`Call ${id}`}
        crumb={<a href={href("calls", [], call ? { queue: call.queue } : {})}>Calls</a>}
        says={call && <Where call={call} />}
      >
        {call && <Actions call={call} refresh={refresh} />}
      </Head>
      <Trouble error={error} />
      {call ? (
        <>
          {call.waiting && <Waiting explanation={call.waiting} />}
          <Facts call={call} />
          <Request call={call} />
          <Story events={call.history} />
        </>
      ) : (
        !error && <Loading what={`call ${id}`} />
      )}
    </>
  );
}

function Where({ call }: { call: Call }) {
  return (
    <>
      <StateMark state={call.state} /> in lane{" "}
      <a href={href("queues", [call.queue], { lane: call.lane })}>{call.lane}</a> of{" "}
      <a href={href("queues", [call.queue])}>{call.queue}</a>
    </>
  );
}

function Actions({ call, refresh }: { call: Call; refresh(): void }) {
  const isAdmin = useMay("admin");
  // Of one that ended, also of a dead one that was deleted, only its history is left.
  if (!isAdmin || call.attempts === undefined) return null;
  return (
    <>
      {call.state === "dead" ? (
        <>
          <button type="button" class="primary" onClick={() => reviveCalls([call.id], refresh)}>
            Revive
          </button>
          <button type="button" onClick={() => deleteCalls([call.id], refresh)}>
            Delete
          </button>
        </>
      ) : (
        <button type="button" onClick={() => cancel(call, refresh)}>
          Cancel the call
        </button>
      )}
    </>
  );
}

function cancel(call: Call, after: () => void): void {
  ask({
    title: `Cancel call ${call.id}`,
    verb: "Cancel it",
    isDanger: true,
    effect: () =>
      call.state === "in_flight"
        ? "A worker has it and goes on with it; it is not tried again."
        : "It is taken back and never starts. Its lane goes on with the next.",
    request: () => ({ method: "DELETE", path: path`/v1/calls/${call.id}` }),
    done: () => `call ${call.id} is cancelled`,
    after,
  });
}

function Waiting({ explanation }: { explanation: Explanation }) {
  const { position, reasons, not_before: earliest, expected } = explanation;
  return (
    <Panel
      title="Why it waits"
      aside={
        position === undefined ? null : (
          <small>{position === 0 ? "first of its lane" : `${position} before it in its lane`}</small>
        )
      }
    >
      <ul class="story">
        {reasons.map((reason) => {
          const { text, until } = reasonInWords(reason);
          return (
            <li class={toneOf(reason)}>
              {reason.reason === "meter" ? (
                <a href={href("limits", [reason.limit], { partition: reason.partition })}>{text}</a>
              ) : (
                text
              )}{" "}
              {until && <When at={until} />}
            </li>
          );
        })}
        {reasons.length === 0 && <li class="pass">Nothing is in its way.</li>}
      </ul>
      <dl class="facts inside">
        <div>
          <dt>Not before</dt>
          <dd>{earliest ? <When at={earliest} /> : "nobody can know"}</dd>
        </div>
        <div>
          <dt title="If workers always ask and nobody comes in between">Expected</dt>
          <dd>{expected ? <When at={expected} /> : "nobody can know"}</dd>
        </div>
      </dl>
    </Panel>
  );
}

function Facts({ call }: { call: Call }) {
  const moments: [string, string | undefined][] = [
    ["Not before", call.not_before],
    ["Expires", call.expires_at],
    ["Rests until", call.rests_until],
    ["Lease ends", call.lease_expires_at],
    ["Died", call.died_at],
  ];
  if (!call.attempts) return null;
  return (
    <Panel title="What it is">
      <dl class="facts inside">
        <div>
          <dt>Priority</dt>
          <dd class="number">{call.priority} of 9</dd>
        </div>
        <div class="wide">
          <dt>Owes</dt>
          <dd>
            <Tolls tolls={call.tolls ?? []} />
          </dd>
        </div>
        <div>
          <dt>Attempts so far</dt>
          <dd>
            {call.attempts.failures} failed, {call.attempts.crashes} crashed, {call.attempts.limited} limited
          </dd>
        </div>
        {moments.map(
          ([name, at]) =>
            at && (
              <div>
                <dt>{name}</dt>
                <dd>
                  <When at={at} />
                </dd>
              </div>
            ),
        )}
        {call.died_of && (
          <div>
            <dt>Died of</dt>
            <dd>{call.died_of.replace("_", " ")}</dd>
          </div>
        )}
        {call.traceparent && (
          <div class="wide">
            <dt>Trace</dt>
            <dd class="mono">{call.traceparent}</dd>
          </div>
        )}
      </dl>
    </Panel>
  );
}

function Request({ call }: { call: Call }) {
  const hasBody = call.body !== undefined || call.body_base64 !== undefined || call.body_bytes !== undefined;
  if (!hasBody && call.destination === undefined) return null;
  return (
    <Panel title="Request">
      <div class="inside">
        {call.destination !== undefined && <Json value={call.destination} label="Destination" />}
        {call.body !== undefined && <Json value={call.body} label="Body" />}
        {call.body_base64 !== undefined && <Json value={call.body_base64} label="Body, in base64" />}
        {call.body_bytes !== undefined && (
          <p class="soft">The body has {bytes(call.body_bytes)}; this server keeps bodies from those who look.</p>
        )}
      </div>
    </Panel>
  );
}

function Story({ events }: { events: CallEvent[] }) {
  return (
    <Panel title="Story" aside={<small>every attempt that history keeps</small>}>
      {events.length === 0 ? (
        <p class="loading">It has not been tried yet.</p>
      ) : (
        <ol class="story">
          {events.map((event) => (
            <li class={toneOfEvent(event)}>
              <Mark tone={toneOfEvent(event)}>{event.end ?? event.outcome ?? event.event}</Mark> {eventInWords(event)}
              <p>
                <span class="number" title={instant(event.at)}>
                  {clock(event.at)}
                </span>{" "}
                · <When at={event.at} />
                {event.until && (
                  <>
                    {" "}
                    · tried again <When at={event.until} />
                  </>
                )}
              </p>
              {event.report !== undefined && <Json value={event.report} label="Report" />}
              {event.report_base64 !== undefined && <Json value={event.report_base64} label="Report, in base64" />}
              {event.report_bytes !== undefined && (
                <p>A report of {bytes(event.report_bytes)} is kept from those who look.</p>
              )}
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}

export function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <pre class="json" aria-label={label} tabIndex={0}>
      {typeof value === "string" ? value : JSON.stringify(value, null, 2)}
    </pre>
  );
}
