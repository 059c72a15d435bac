// What an operator can do to queues and lanes; each says what will happen before it does.
import { path } from "../../api/client";
import type { Lane, QueueState } from "../../api/shapes";
import { counted } from "../../format";
import { ask } from "../../parts/confirm";
import type { Field, Values } from "../../parts/fields";
import { go } from "../../route";

type After = () => void;

const ORDER: Field = {
  name: "parallel",
  label: "Calls of a lane at a time",
  kind: "number",
  value: "",
  isOptional: true,
  hint: "Empty: one, in strict order, also across retries",
};

export function defineQueue(after: After): void {
  ask({
    title: "Define a queue",
    verb: "Define",
    fields: [
      { name: "name", label: "Name", value: "" },
      ORDER,
      {
        name: "destination",
        label: "Destination",
        value: "",
        isOptional: true,
        hint: "A url: Tollgate makes the calls itself. Empty: workers claim them",
      },
    ],
    effect: (values) =>
      `${values.name || "The queue"} takes calls at once, ${values.parallel ? `up to ${values.parallel} of a lane at a time` : "one of a lane at a time, in order"}; ${values.destination ? `Tollgate delivers them to ${values.destination}` : "workers claim them"}. If it is there already, all else of it is by default again.`,
    request: (values) => ({
      method: "PUT",
      path: path`/v1/queues/${given(values.name, "name")}`,
      body: defined(values),
    }),
    done: (_, values) => `queue ${values.name} is there`,
    after,
  });
}

function defined(values: Values): Record<string, unknown> {
  return {
    ...(values.parallel ? { order: { parallel: Number(values.parallel) } } : {}),
    ...(values.destination ? { destination: values.destination } : {}),
  };
}

export function editQueue(queue: QueueState, after: After): void {
  ask({
    title: `Change ${queue.name}`,
    verb: "Change",
    fields: [
      {
        name: "json",
        label: "Definition",
        kind: "lines",
        value: JSON.stringify(queue.definition, null, 2),
        hint: "What is left out is by default. Secrets are shown as ***: write the value itself",
      },
    ],
    effect: () =>
      `${queue.name} changes at once, for ${counted(queue.waiting, "waiting call")} too. What they owe was resolved when they came, and stays.`,
    request: (values) => ({
      method: "PUT",
      path: path`/v1/queues/${queue.name}`,
      body: JSON.parse(values.json ?? "") as unknown,
    }),
    done: () => `queue ${queue.name} is changed`,
    after,
  });
}

export function pauseQueue(queue: QueueState, after: After): void {
  ask({
    title: `Pause ${queue.name}`,
    verb: "Pause",
    isDanger: true,
    effect: () =>
      `None of its ${counted(queue.waiting, "waiting call")} starts until it is resumed. ${counted(queue.in_flight, "call")} in flight go on, and new ones are taken.`,
    request: () => ({ method: "POST", path: path`/v1/queues/${queue.name}/pause` }),
    done: () => `queue ${queue.name} is paused`,
    after,
  });
}

export function resumeQueue(name: string, after: After): void {
  ask({
    title: `Resume ${name}`,
    verb: "Resume",
    effect: () => `Its calls start again, as their limits allow.`,
    request: () => ({ method: "POST", path: path`/v1/queues/${name}/resume` }),
    done: () => `queue ${name} goes on`,
    after,
  });
}

export function removeQueue(queue: QueueState): void {
  ask({
    title: `Remove ${queue.name}`,
    verb: "Remove",
    isDanger: true,
    effect: () =>
      `The queue goes. While calls of it wait, are in flight or dead, the server refuses: now there are ${counted(queue.waiting + queue.in_flight + queue.dead, "call")}.`,
    request: () => ({ method: "DELETE", path: path`/v1/queues/${queue.name}` }),
    done: () => `queue ${queue.name} is removed`,
    after: () => go("queues"),
  });
}

export function pauseLane(queue: string, lane: Lane, after: After): void {
  ask({
    title: `Pause lane ${lane.name}`,
    verb: "Pause",
    isDanger: true,
    effect: () =>
      `None of its ${counted(lane.waiting, "waiting call")} in ${queue} starts until it is resumed. Other lanes go on.`,
    request: () => ({ method: "POST", path: path`/v1/queues/${queue}/lanes/${lane.name}/pause` }),
    done: () => `lane ${lane.name} is paused`,
    after,
  });
}

export function resumeLane(queue: string, lane: Lane, after: After): void {
  ask({
    title: `Resume lane ${lane.name}`,
    verb: "Resume",
    effect: () =>
      lane.held
        ? `A dead call holds the lane. It goes on without that call, which stays dead.`
        : `Its calls start again, as their limits allow.`,
    request: () => ({ method: "POST", path: path`/v1/queues/${queue}/lanes/${lane.name}/resume` }),
    done: () => `lane ${lane.name} goes on`,
    after,
  });
}

export function weighLane(queue: string, lane: Lane, after: After): void {
  ask({
    title: `Weight of lane ${lane.name}`,
    verb: "Weigh",
    fields: [
      {
        name: "weight",
        label: "Weight",
        kind: "number",
        value: String(lane.weight),
        hint: "1 to 100; others have 1 unless it was said",
      },
    ],
    effect: (values) =>
      `Where several lanes wait at a meter, ${lane.name} is served ${values.weight || "…"} times as much as one of weight 1. Alone it is served as ever.`,
    request: (values) => ({
      method: "PUT",
      path: path`/v1/queues/${queue}/lanes/${lane.name}`,
      body: { weight: Number(values.weight) },
    }),
    done: (_, values) => `lane ${lane.name} weighs ${values.weight}`,
    after,
  });
}

function given(value: string | undefined, what: string): string {
  if (!value?.trim()) throw new Error(`it needs a ${what}`);
  return value.trim();
}
