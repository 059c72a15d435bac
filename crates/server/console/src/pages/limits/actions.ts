// What an operator can do to a limit and its meters; each says what will happen before it does.
import { path } from "../../api/client";
import type { Definition, LimitState, Meter } from "../../api/shapes";
import { counted, definitionInWords, inForce, nameOf } from "../../format";
import { ask } from "../../parts/confirm";
import type { Values } from "../../parts/fields";
import { go } from "../../route";
import { definitionOf, fieldsOf, saidIn } from "./edit";

type After = () => void;

export function defineLimit(after: After): void {
  ask({
    title: "Define a limit",
    verb: "Define",
    fields: [{ name: "name", label: "Name", value: "" }, ...fieldsOf()],
    effect: (values) =>
      `${values.name || "The limit"} will admit ${saidIn(values)}, at once. If it is there already, it changes, and what was spent stays spent.`,
    request: (values) => ({ method: "PUT", path: path`/v1/limits/${named(values)}`, body: definitionOf(values) }),
    done: (_, values) => `${values.name} admits ${saidIn(values)}`,
    after,
  });
}

/** `lanes` says how many wait there. */
export function editLimit(limit: LimitState, lanes: string, after: After, to = limit.definition): void {
  const { name } = limit;
  ask({
    title: `Change ${name}`,
    verb: "Change",
    fields: fieldsOf(to),
    effect: (values) =>
      `${name} goes from ${definitionInWords(limit.definition)} to ${saidIn(values)}: at once, also for ${lanes} that wait. What was spent stays spent.` +
      (limit.pinned ? " A pin is over it and stays in force." : ""),
    request: (values) => ({ method: "PUT", path: path`/v1/limits/${name}`, body: definitionOf(values) }),
    done: (_, values) => `${name} admits ${saidIn(values)}`,
    after,
  });
}

export function pinLimit(limit: LimitState, after: After, to = limit.pinned ?? limit.definition): void {
  const { name } = limit;
  ask({
    title: `Pin ${name}`,
    verb: "Pin",
    fields: fieldsOf(to),
    effect: (values) =>
      `${saidIn(values)} is put over what callers define for ${name}, a rate over rates and slots over slots, until it is unpinned. In force is then: ${saidIn(values, (pinned) => inForce({ ...limit, pinned }))}.`,
    request: (values) => ({ method: "PUT", path: path`/v1/limits/${name}/pin`, body: definitionOf(values) }),
    done: (_, values) => `${name} is pinned to ${saidIn(values)}`,
    after,
  });
}

export function unpinLimit({ name, definition }: LimitState, after: After): void {
  ask({
    title: `Unpin ${name}`,
    verb: "Unpin",
    effect: () => `What callers define is in force again: ${definitionInWords(definition)}.`,
    request: () => ({ method: "DELETE", path: path`/v1/limits/${name}/pin` }),
    done: () => `${name} is unpinned`,
    after,
  });
}

export function pauseLimit(name: string, lanes: string, after: After): void {
  ask({
    title: `Pause ${name}`,
    verb: "Pause",
    isDanger: true,
    effect: () =>
      `Nothing that pays at ${name} starts until it is resumed, in any partition: ${lanes} that wait, and all to come. Calls in flight go on.`,
    request: () => ({ method: "POST", path: path`/v1/limits/${name}/pause` }),
    done: () => `${name} is paused`,
    after,
  });
}

export function resumeLimit(name: string, after: After): void {
  ask({
    title: `Resume ${name}`,
    verb: "Resume",
    effect: () => `Calls that pay at ${name} start again, as its rules allow.`,
    request: () => ({ method: "POST", path: path`/v1/limits/${name}/resume` }),
    done: () => `${name} goes on`,
    after,
  });
}

export function removeLimit(name: string, lanes: string): void {
  ask({
    title: `Remove ${name}`,
    verb: "Remove",
    isDanger: true,
    effect: () =>
      `${name} goes with all its meters, and what was spent is forgotten. Calls that owe there (${lanes} of them now) wait until it is defined again.`,
    request: () => ({ method: "DELETE", path: path`/v1/limits/${name}` }),
    done: () => `${name} is removed`,
    after: () => go("limits"),
  });
}

export function overridePartition(limit: LimitState, partition: string | undefined, after: After): void {
  const { name } = limit;
  const before = limit.overrides.find((override) => override.partition === partition)?.definition ?? limit.definition;
  const fields =
    partition === undefined ? [{ name: "partition", label: "Partition", value: "", hint: "A tenant, say" }] : [];
  const of = (values: Values) => partition ?? values.partition ?? "";
  ask({
    title: partition === undefined ? `Override a partition of ${name}` : `Override ${nameOf(name, partition)}`,
    verb: "Override",
    fields: [...fields, ...fieldsOf(before)],
    effect: (values) =>
      `${nameOf(name, of(values) || "the partition")} will admit ${saidIn(values)} instead of ${definitionInWords(limit.definition)}. Other partitions stay as they are.`,
    request: (values) => ({
      method: "PUT",
      path: path`/v1/limits/${name}/partitions/${given(of(values), "partition")}`,
      body: definitionOf(values),
    }),
    done: (_, values) => `${nameOf(name, of(values))} admits ${saidIn(values)}`,
    after,
  });
}

export function dropOverride(name: string, partition: string, definition: Definition, after: After): void {
  ask({
    title: `Take away the override of ${nameOf(name, partition)}`,
    verb: "Take away",
    effect: () => `${partition} will have what all partitions have: ${definitionInWords(definition)}.`,
    request: () => ({ method: "DELETE", path: path`/v1/limits/${name}/partitions/${partition}` }),
    done: () => `${nameOf(name, partition)} is as all partitions`,
    after,
  });
}

export function closeMeter(meter: Meter, after: After): void {
  const name = nameOf(meter.name, meter.partition);
  ask({
    title: `Close ${name}`,
    verb: "Close",
    isDanger: true,
    fields: [
      { name: "for", label: "For", value: "30s", hint: "Up to a day: 250ms, 10s, 5m, 1h30m" },
      { name: "reason", label: "Reason", value: "", isOptional: true, hint: "Whoever waits is told" },
    ],
    effect: (values) =>
      `Nothing passes ${name} for ${values.for || "…"}. ${counted(meter.waiting, "waiting lane")} keep${meter.waiting === 1 ? "s" : ""} ${meter.waiting === 1 ? "its place" : "their places"}; it opens again by itself.`,
    request: (values) => ({
      method: "POST",
      path: `${at(meter)}/close`,
      body: { for: given(values.for, "time"), ...(values.reason ? { reason: values.reason } : {}) },
    }),
    done: (_, values) => `${name} is closed for ${values.for}`,
    after,
  });
}

export function reopenMeter(meter: Meter, after: After): void {
  const name = nameOf(meter.name, meter.partition);
  ask({
    title: `Reopen ${name}`,
    verb: "Reopen",
    effect: () =>
      `The closure ends now, before its time. If the upstream still refuses, its next answer closes it again.`,
    request: () => ({ method: "POST", path: `${at(meter)}/reopen` }),
    done: () => `${name} is open`,
    after,
  });
}

export function resetMeter(meter: Meter, after: After): void {
  const name = nameOf(meter.name, meter.partition);
  ask({
    title: `Reset ${name}`,
    verb: "Reset",
    isDanger: true,
    effect: () =>
      `What was spent at ${name} is forgotten: it is as new, and may admit its whole burst at once, which the upstream may not expect. Slots stay held.`,
    request: () => ({ method: "POST", path: `${at(meter)}/reset` }),
    done: () => `${name} is as new`,
    after,
  });
}

function at(meter: Meter): string {
  return meter.partition === undefined
    ? path`/v1/meters/${meter.name}`
    : path`/v1/meters/${meter.name}/${meter.partition}`;
}

function named(values: Values): string {
  return given(values.name, "name");
}

function given(value: string | undefined, what: string): string {
  if (!value?.trim()) throw new Error(`it needs a ${what}`);
  return value.trim();
}
