// Dead calls as a file: a line of JSON each, with its body.
import { get, path, Problem, query } from "../../api/client";
import type { Call, CallPage } from "../../api/shapes";

const PAGE = 1_000;
/** How long the browser has to begin with the download. */
const KEPT_MS = 60_000;
/** Calls read at a time. */
const TOGETHER = 4;

/** How many calls are in the file, and how many were gone before they were read. */
export interface Exported {
  calls: number;
  gone: number;
}

/** Reads all dead calls of a queue, or of a lane, and hands them to the browser as a download. */
export async function exportDead(
  of: { queue: string; lane?: string },
  progress: (done: number) => void,
  signal: AbortSignal,
): Promise<Exported> {
  const lines: string[] = [];
  let gone = 0;
  let after: string | undefined;
  do {
    const page: CallPage = await get<CallPage>(query("/v1/dead", { ...of, limit: PAGE, after }), signal);
    for (let at = 0; at < page.calls.length; at += TOGETHER) {
      const some = page.calls.slice(at, at + TOGETHER);
      const whole = await Promise.all(some.map((call) => readDead(call.id, signal)));
      const there = whole.filter((call) => call !== undefined);
      lines.push(...there.map((call) => `${JSON.stringify(call)}\n`));
      gone += whole.length - there.length;
      progress(lines.length);
    }
    after = page.next;
  } while (after !== undefined);
  download(`dead-${of.queue}.ndjson`, lines);
  return { calls: lines.length, gone };
}

/** The call; nothing if it was revived or deleted since it was listed. */
async function readDead(id: string, signal: AbortSignal): Promise<Call | undefined> {
  try {
    const call = await get<Call>(path`/v1/calls/${id}`, signal);
    return call.state === "dead" && call.attempts ? call : undefined;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return undefined;
    throw error;
  }
}

function download(name: string, lines: string[]): void {
  const link = document.createElement("a");
  // In parts: one text of them all may be longer than a text can be.
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  link.download = name.replaceAll(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
