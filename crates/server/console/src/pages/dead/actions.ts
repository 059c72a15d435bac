// Dead calls live again or go for good, a few or all of a queue; each says what will happen before it does.
import type { Request } from "../../api/client";
import { counted, span, spanOf } from "../../format";
import { ask } from "../../parts/confirm";

type After = () => void;

const NONE = "nothing was done: no such call is dead any more";

function revived(answer: unknown): string {
  const { revived } = answer as { revived: number };
  return revived === 0 ? NONE : `${counted(revived, "call")} wait${revived === 1 ? "s" : ""} again`;
}

function deleted(answer: unknown): string {
  const { deleted } = answer as { deleted: number };
  return deleted === 0 ? NONE : `${counted(deleted, "dead call")} deleted`;
}

export function reviveCalls(ids: string[], after: After): void {
  ask({
    title: `Revive ${counted(ids.length, "call")}`,
    verb: "Revive",
    effect: () =>
      `${ids.length === 1 ? "It waits" : "They wait"} again as if never started, at the end of ${ids.length === 1 ? "its lane" : "their lanes"}, and pay their tolls anew.`,
    request: () => ({ method: "POST", path: "/v1/dead/revive", body: { ids } }),
    done: revived,
    after,
  });
}

export function reviveAll(of: { queue: string; lane?: string }, dead: number | undefined, after: After): void {
  const where = of.lane === undefined ? of.queue : `lane ${of.lane} of ${of.queue}`;
  ask({
    title: `Revive all of ${where}`,
    verb: "Revive all",
    fields: [
      {
        name: "every",
        label: "One every",
        value: "100ms",
        isOptional: true,
        hint: "So that what killed them is not hit by all at once. Empty: all together",
      },
    ],
    effect: ({ every }) =>
      `${dead === undefined ? "All dead calls" : counted(dead, "dead call")} of ${where} wait again as if never started${inAll(every, dead)}. If the queue is full on the way, the rest stays dead.`,
    request: ({ every }): Request => ({
      method: "POST",
      path: "/v1/dead/revive",
      body: { ...of, ...(every ? { every } : {}) },
    }),
    done: revived,
    after,
  });
}

function inAll(every: string | undefined, dead: number | undefined): string {
  if (!every) return ", all at once";
  return dead === undefined ? `, one every ${every}` : `, one every ${every}: that takes ${span(spanOf(every) * dead)}`;
}

export function deleteCalls(ids: string[], after: After): void {
  ask({
    title: `Delete ${counted(ids.length, "dead call")}`,
    verb: "Delete",
    isDanger: true,
    effect: () =>
      `${ids.length === 1 ? "It is" : "They are"} gone for good, with ${ids.length === 1 ? "its body" : "their bodies"}. Export first what you may want again.`,
    request: () => ({ method: "POST", path: "/v1/dead/delete", body: { ids } }),
    done: deleted,
    after,
  });
}

export function deleteAll(of: { queue: string; lane?: string }, dead: number | undefined, after: After): void {
  const where = of.lane === undefined ? of.queue : `lane ${of.lane} of ${of.queue}`;
  ask({
    title: `Delete all dead of ${where}`,
    verb: "Delete all",
    isDanger: true,
    effect: () =>
      `${dead === undefined ? "All dead calls" : counted(dead, "dead call")} of ${where} are gone for good, with their bodies. Export first what you may want again.`,
    request: () => ({ method: "POST", path: "/v1/dead/delete", body: of }),
    done: deleted,
    after,
  });
}
