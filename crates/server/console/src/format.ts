// Numbers, spans, instants and rules as people read them.
import type { Bite, Cause, Definition, LimitLine, Meter, Reason, Rule } from "./api/shapes";

const NUMBER = new Intl.NumberFormat("en");
const SMALL = new Intl.NumberFormat("en", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const INSTANT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

const SHORT: Record<number, string> = { [SECOND]: "s", [MINUTE]: "min", [HOUR]: "h", [DAY]: "d" };

const UNITS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  ms: 1,
  s: SECOND,
  m: MINUTE,
  h: HOUR,
  d: DAY,
  w: WEEK,
};

export function count(value: number): string {
  return NUMBER.format(value);
}

/** A number with its unit: `1 call`, `12 calls`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function perSecond(value: number): string {
  return value < 100 ? SMALL.format(value) : count(Math.round(value));
}

/** A span that was measured, in the two units that matter. */
export function span(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${SMALL.format(ms / SECOND)} s`;
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`;
  const [first, second] = ms < HOUR ? [MINUTE, SECOND] : ms < DAY ? [HOUR, MINUTE] : [DAY, HOUR];
  const rest = Math.floor((ms % first) / second);
  return `${Math.floor(ms / first)} ${SHORT[first]}${rest > 0 ? ` ${rest} ${SHORT[second]}` : ""}`;
}

/** Milliseconds of a duration as the API writes it: `1h30m`, `864ms221us`; bare numbers are seconds. */
export function spanOf(text: string): number {
  if (/^\d+$/.test(text)) return Number(text) * SECOND;
  let ms = 0;
  for (const [, value, unit] of text.matchAll(/(\d+)([a-z]+)/g)) ms += Number(value) * (UNITS[unit ?? ""] ?? 0);
  return ms;
}

export function instant(at: string | number): string {
  return INSTANT.format(new Date(at));
}

/** The time of day, to the second. */
export function daytime(at: number): string {
  return CLOCK.format(at);
}

/** The time of day, to the millisecond. */
export function clock(at: string): string {
  const date = new Date(at);
  return `${CLOCK.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** An instant against the present: `12 s ago`, `in 4.0 s`. */
export function relative(at: string | number, now: number): string {
  const away = new Date(at).getTime() - now;
  if (Math.abs(away) < SECOND) return "now";
  return away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${count(value)} B`;
  if (value < 1024 ** 2) return `${SMALL.format(value / 1024)} KiB`;
  return `${SMALL.format(value / 1024 ** 2)} MiB`;
}

/** A period as it stands behind `per`: `minute`, `30 s`. */
function period(text: string): string {
  const named: Record<number, string> = {
    [SECOND]: "second",
    [MINUTE]: "minute",
    [HOUR]: "hour",
    [DAY]: "day",
    [WEEK]: "week",
  };
  return named[spanOf(text)] ?? text.replaceAll(/([a-z]+)/g, " $1 ").trim();
}

export function ruleInWords(rule: Rule): string {
  const limit = count(rule.limit);
  const guard = "guard" in rule && rule.guard ? `, guard ${rule.guard}` : "";
  switch (rule.rule) {
    case "token_bucket": {
      const burst = rule.burst !== undefined && rule.burst !== rule.limit ? `, burst ${count(rule.burst)}` : "";
      return `${limit} per ${period(rule.per)}${burst}${guard}`;
    }
    case "fixed_window":
      return rule.align
        ? `${limit} each ${period(rule.per)} in ${rule.align}`
        : `${limit} in each ${period(rule.per)}${guard}`;
    case "sliding_window":
      return `${limit} in any ${period(rule.per)}${guard}`;
    case "concurrency":
      return `${limit} at a time`;
  }
}

export function rulesOf(definition: Definition): Rule[] {
  return "rules" in definition ? definition.rules : [definition];
}

export function definitionInWords(definition: Definition): string {
  const ahead = definition.ahead ? `, taken ahead for ${definition.ahead}` : "";
  return rulesOf(definition).map(ruleInWords).join(" and ") + ahead + (definition.spread ? ", spread" : "");
}

/** Rates are pinned over rates and slots over slots: what is in force of both, as the server puts them together. */
export function inForce({ definition, pinned }: LimitLine): Definition {
  if (!pinned) return definition;
  const isSlots = (rule: Rule) => rule.rule === "concurrency";
  const own = rulesOf(definition).filter((rule) => !rulesOf(pinned).some((over) => isSlots(over) === isSlots(rule)));
  const rules = [...rulesOf(pinned), ...own].sort((a, b) => Number(isSlots(a)) - Number(isSlots(b)));
  return { rules };
}

/** Most that is there to be spent at once, by the rule that the meter tells of: its tightest. */
export function capacityOf({ definition, limit }: Meter): { of: number; unit: "unit" | "slot" } {
  const tightest = rulesOf(definition).find((rule) => rule.limit === limit);
  const of = tightest?.rule === "token_bucket" ? (tightest.burst ?? limit) : limit;
  return { of, unit: tightest?.rule === "concurrency" ? "slot" : "unit" };
}

/** The id of a call in what was typed: that of a QStash message is written `msg_42`. */
export function idIn(text: string): string {
  return text.trim().replace(/^msg_(?=\d+$)/, "");
}

export function nameOf(limit: string, partition?: string): string {
  return partition === undefined ? limit : `${limit}:${partition}`;
}

/** Why a meter holds back, in a few words; nothing if it does not. */
export function holds(meter: Meter | Bite): string | undefined {
  if (meter.paused) return "paused by an operator";
  if (meter.closed_for_ms)
    return `closed for ${span(meter.closed_for_ms)}${meter.closed_reason ? `: ${meter.closed_reason}` : ""}`;
  if (meter.available < 0) return "in debt: later calls pay it first";
  if (meter.waiting === 0) return undefined;
  if (meter.available <= 0) return "spent";
  return meter.next_admission_ms === 0
    ? "too little left for it, or no worker asks"
    : "the next call weighs more than is left";
}

const CAUSES: Record<Cause, string> = {
  spent: "its rate is used up",
  slots: "all its slots are taken",
  closed: "it is closed",
  turn: "others have their turn first",
  impossible: "the call weighs more than it ever lets through",
  missing: "nobody has defined it",
  paused: "it is paused",
  other: "it holds the call back",
};

export function causeInWords(cause: Cause): string {
  return CAUSES[cause];
}

/** What is in a call's way, in as few words as a table has room for. */
export function reasonInShort(reason: Reason): string {
  switch (reason.reason) {
    case "meter":
      return `${nameOf(reason.limit, reason.partition)}: ${reason.cause === "turn" ? "others first" : reason.cause}`;
    case "lane_busy":
      return `${counted(reason.in_flight, "call")} in flight`;
    case "behind":
      return `${counted(reason.calls, "call")} before it`;
    case "no_worker":
      return "no worker asks";
    default:
      return reason.reason.replace("_", " ");
  }
}

/** What is in a call's way; the instant is shown beside it. */
export function reasonInWords(reason: Reason): { text: string; until?: string } {
  switch (reason.reason) {
    case "in_flight":
      return { text: "a worker has it, and its lease ends", until: reason.lease_expires_at };
    case "not_due":
      return { text: "it is not due before", until: reason.until };
    case "resting":
      return { text: "it failed and rests until", until: reason.until };
    case "lane_busy":
      return {
        text: `${counted(reason.in_flight, "call")} of its lane ${reason.in_flight === 1 ? "is" : "are"} in flight`,
      };
    case "behind":
      return { text: `${counted(reason.calls, "call")} of its lane come${reason.calls === 1 ? "s" : ""} first` };
    case "meter": {
      const text = `limit ${nameOf(reason.limit, reason.partition)}: ${causeInWords(reason.cause)}`;
      return reason.opens_at ? { text: `${text}; opens`, until: reason.opens_at } : { text };
    }
    case "queue_paused":
      return { text: "its queue is paused" };
    case "lane_paused":
      return { text: "its lane is paused" };
    case "lane_held":
      return { text: "a dead call holds its lane: resume the lane, or revive or delete that call" };
    case "no_worker":
      return { text: "nothing is in its way, but no worker asks" };
    case "other":
      return { text: "something this console does not know" };
  }
}
