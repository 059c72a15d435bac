// Dead calls as a file: a line of JSON each, with its body.
import { get, path, query } from "../../api/client";
import type { Call, CallPage } from "../../api/shapes";

const PAGE = 1_000;
/** How long the browser has to begin with the download. */
const KEPT_MS = 60_000;
/** Calls read at a time. */
const TOGETHER = 4;

/** Reads all dead calls of a queue, or of a lane, and hands them to the browser as a download. */
export async function exportDead(
  of: { queue: string; lane?: string },
  progress: (done: number) => void,
): Promise<number> {
  const lines: string[] = [];
  let after: string | undefined;
  do {
    const page: CallPage = await get<CallPage>(query("/v1/dead", { ...of, limit: PAGE, after }));
    for (let at = 0; at < page.calls.length; at += TOGETHER) {
      const some = page.calls.slice(at, at + TOGETHER);
      const whole = await Promise.all(some.map((call) => get<Call>(path`/v1/calls/${call.id}`)));
      lines.push(...whole.map((call) => JSON.stringify(call)));
      progress(lines.length);
    }
    after = page.next;
  } while (after !== undefined);
  download(`dead-${of.queue}.ndjson`, lines.map((line) => `${line}\n`).join(""));
  return lines.length;
}

function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.download = name.replaceAll(/[^\w.-]+/g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
