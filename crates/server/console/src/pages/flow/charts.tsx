// Admissions against the allowance, so that one sees the limit being kept.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { LimitState, MeterPage, Points, Rule } from "../../api/shapes";
import { count, inForce, ruleInWords, rulesOf, span, spanOf } from "../../format";
import { useSeen } from "../../overview";
import { Chart } from "../../parts/chart";
import { Loading, Trouble } from "../../parts/notice";
import { Panel, Tabs } from "../../parts/page";
import { RANGES, timesOf, useSeries, valuesOf, type Range } from "../../series";
import { isRate, perSecondOf, trailing, windowOf, type RateRule } from "./allowance";

/** Ten minutes are kept by the second: longer periods are looked at by the minute. */
const MINUTES_MS = 600_000;
/** Before that there are too few minutes to see anything. */
const YOUNG_MS = 3_600_000;

/** What was admitted in each step. */
export interface Admissions {
  stepMs: number;
  times: number[];
  weights: Points;
  inFlight: Points;
}

/** Limits with partitions, also while all of them are as new and none is listed. */
const parted = new Set<string>();

/** Whether the limit's global meter admitted all that its limit did, so that its rule bounds what is drawn. */
function isOneMeter(limit: LimitState, meters: MeterPage | undefined): boolean {
  if (!meters) return false;
  if (meters.partitions.length > 0 || limit.overrides_count > 0) parted.add(limit.name);
  if (parted.has(limit.name)) return false;
  // What the global meter did not admit others did, or itself before it was last as new.
  return meters.global.admitted?.weight !== 0 || limit.totals?.admitted.weight === 0;
}

/** A limit as the server remembers it, all its meters together. */
export function LimitFlow({ limit, meters }: { limit: LimitState; meters: MeterPage | undefined }) {
  const rules = rulesOf(inForce(limit));
  const isLong = rules.some((rule) => isRate(rule) && spanOf(rule.per) > MINUTES_MS);
  const isYoung = (useSeen().data?.uptime_ms ?? 0) < YOUNG_MS;
  const [range, setRange] = useState<Range>(isLong && !isYoung ? "day" : "minutes");
  const { data, error } = useSeries(range, { limit: limit.name });
  const aside = <Tabs label="Time shown" of={RANGES} chosen={range} choose={setRange} />;
  if (!data) {
    return (
      <Panel title="Admissions" aside={aside}>
        {error ? <Trouble error={error} /> : <Loading what="admissions" />}
      </Panel>
    );
  }
  const admissions: Admissions = {
    stepMs: data.step_ms,
    times: timesOf(data, range),
    weights: valuesOf(data, "weight", range),
    inFlight: valuesOf(data, "in_flight", range),
  };
  return <FlowCharts rules={rules} admissions={admissions} isOneMeter={isOneMeter(limit, meters)} aside={aside} />;
}

/** One chart for what passes, and one for each rule of what it let pass in all times of some length. */
export function FlowCharts({
  rules,
  admissions,
  isOneMeter,
  aside,
}: {
  rules: Rule[];
  admissions: Admissions;
  isOneMeter: boolean;
  aside?: ComponentChildren;
}) {
  const { stepMs, times, weights } = admissions;
  const rates = rules.filter(isRate);
  const perSecond = weights.map((value) => (value === null ? null : (value * 1000) / stepMs));
  const refills = isOneMeter
    ? rates.map((rule) =>
        line(
          `allowance: ${ruleInWords(rule)}`,
          "units/s",
          times.map(() => perSecondOf(rule)),
        ),
      )
    : [];
  return (
    <>
      <Panel title="Admissions" aside={aside ?? <small>units per second</small>}>
        <Chart
          label="Admissions"
          times={times}
          lines={[{ label: "admitted", unit: "units/s", color: "--pass", kind: "bars", values: perSecond }, ...refills]}
        />
        {!isOneMeter && (
          <p class="under-chart">All meters together. Choose a partition to see it against its allowance.</p>
        )}
      </Panel>
      {isOneMeter && rates.map((rule) => <Kept rule={rule} admissions={admissions} />)}
      {isOneMeter && rules.map((rule) => !isRate(rule) && <Slots limit={rule.limit} admissions={admissions} />)}
    </>
  );
}

function Kept({ rule, admissions }: { rule: RateRule; admissions: Admissions }) {
  const { stepMs, times, weights } = admissions;
  const { lengthMs, steps, bound } = windowOf(rule, stepMs);
  const passed = trailing(weights, steps);
  const most = passed.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  // Of a longer time than is shown, what is shown is a part: it may reach what the whole allows, and no more.
  const shownMs = times.length * stepMs;
  const time = lengthMs > shownMs ? `in the ${span(shownMs)} shown` : `in any ${span(lengthMs)}`;
  const allowed = lengthMs > shownMs ? `that ${span(lengthMs)} allow` : "units";
  const isOver = most > bound;
  const told = isOver
    ? `${count(most)} units, where the rule of now allows ${count(bound)}`
    : `at most ${count(most)} of ${count(bound)} ${allowed}`;
  return (
    <Panel
      title={`Admitted ${time}${isOver ? "" : ": never over the line"}`}
      aside={<small class="number">{told}</small>}
    >
      <Chart
        label={`Admitted ${time}`}
        times={times}
        lines={[
          { label: "admitted", unit: "units", color: "--flight", kind: "area", values: passed },
          line(
            boundInWords(rule),
            "units",
            times.map(() => bound),
          ),
        ]}
      />
    </Panel>
  );
}

function Slots({ limit, admissions }: { limit: number; admissions: Admissions }) {
  const most = admissions.inFlight.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
  const told =
    most > limit ? `${count(most)}, where the rule of now allows ${count(limit)}` : `never over ${count(limit)}`;
  return (
    <Panel title={`At a time: ${told}`} aside={<small>slots</small>}>
      <Chart
        label="In flight"
        times={admissions.times}
        lines={[
          { label: "in flight", unit: "slots", color: "--flight", kind: "area", values: admissions.inFlight },
          line(
            "allowed",
            "slots",
            admissions.times.map(() => limit),
          ),
        ]}
      />
    </Panel>
  );
}

function boundInWords(rule: RateRule): string {
  if (rule.rule === "token_bucket") return "allowed: burst and refill";
  return rule.rule === "fixed_window" ? "allowed: two windows may meet" : "allowed";
}

function line(label: string, unit: string, values: number[]) {
  return { label, unit, color: "--amber", kind: "bound" as const, values };
}
