// How a run stands, in a mark and in words.
import type { Run } from "../../api/shapes";
import { counted } from "../../format";
import { Mark, type Tone } from "../../parts/marks";

export function RunMark({ run }: { run: Run }) {
  const outcome = run.ending?.outcome;
  const tones: Record<string, Tone> = {
    done: "pass",
    failed: "stop",
    cancelled: "plain",
    working: "flight",
    going: "flight",
    awaiting: "wait",
    joining: "wait",
  };
  const state = outcome ?? run.state;
  return <Mark tone={tones[state] ?? "plain"}>{state}</Mark>;
}

export function inWords(run: Run): string {
  switch (run.state) {
    case "working": {
      const tasks = run.tasks ?? [];
      const done = tasks.filter((task) => task.state === "done" || task.state === "skipped").length;
      return run.pending
        ? "waits for others of its workflow to end"
        : `${done} of ${counted(tasks.length, "task")} done`;
    }
    case "going":
      return run.step ? `at step ${run.step}` : "";
    case "awaiting":
      return `awaits ${run.names?.join(", ") ?? "a signal"}`;
    case "joining":
      return `joins ${counted(run.children ?? 0, "child", "children")}`;
    case "ended":
      return run.ending?.reason ?? "";
  }
}
