// Events as they happen. EventSource sends no headers and so no token; a stream that is fetched does.
import { open, Problem, query } from "./client";
import type { CallEvent } from "./shapes";

/** How long it rests before it connects again, at first and at most. */
const REST_MS = 500;
const REST_MS_MAX = 10_000;
/** The server says something every 15 seconds: one that says nothing for so long is gone. */
const SILENCE_MAX_MS = 40_000;

export interface Watch {
  queue?: string;
  lane?: string;
  call?: string;
}

export interface Heard {
  event(event: CallEvent): void;
  /** Events were left out: whoever wants them all looks into the history. */
  missed?(): void;
  /** Whether it is connected now. */
  connected?(is: boolean): void;
  /** The server refuses, and would again: it is not asked any more. */
  failed?(problem: Problem): void;
}

/** Follows events until the signal says stop, or the server no. Connected again, it goes on behind the last that it heard. */
export async function follow(watch: Watch, heard: Heard, signal: AbortSignal): Promise<void> {
  const at = query("/v1/events", { ...watch });
  const stream = new Stream(heard);
  let rest = REST_MS;
  while (!signal.aborted) {
    const silence = new Silence(signal);
    try {
      const response = await open({ method: "GET", path: at }, silence.signal, stream.headers());
      heard.connected?.(true);
      rest = REST_MS;
      await stream.read(response, () => silence.broken());
    } catch (error) {
      if (isRefusal(error)) return heard.failed?.(error);
      // It is over, or tried again below.
    } finally {
      silence.over();
    }
    heard.connected?.(false);
    if (signal.aborted) return;
    await pause(rest, signal);
    rest = Math.min(rest * 2, REST_MS_MAX);
  }
}

/** Whether asking again would not help: who has no token is asked for one, and who asks too often may ask later. */
function isRefusal(error: unknown): error is Problem {
  if (!(error instanceof Problem)) return false;
  return error.status < 500 && error.status !== 401 && error.status !== 429;
}

/** Ends a connection on which nothing was heard for too long. */
class Silence {
  private readonly ends = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  readonly signal: AbortSignal;

  constructor(outer: AbortSignal) {
    this.signal = AbortSignal.any([outer, this.ends.signal]);
    this.broken();
  }

  broken(): void {
    this.over();
    this.timer = setTimeout(() => this.ends.abort(), SILENCE_MAX_MS);
  }

  over(): void {
    clearTimeout(this.timer);
  }
}

/** Server-sent events as they come in, and which of them was the last. */
class Stream {
  private last = "";

  constructor(private readonly heard: Heard) {}

  headers(): HeadersInit {
    return { accept: "text/event-stream", ...(this.last ? { "last-event-id": this.last } : {}) };
  }

  async read(response: Response, broken: () => void): Promise<void> {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return;
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      broken();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) this.tell(block);
    }
  }

  private tell(block: string): void {
    let data = "";
    for (const line of block.split("\n")) {
      if (line.startsWith("data: ")) data += line.slice("data: ".length);
      else if (line.startsWith("id: ")) this.last = line.slice("id: ".length);
      else if (line === "event: missed") this.heard.missed?.();
    }
    if (!data.startsWith("{")) return;
    const event = JSON.parse(data) as Partial<CallEvent>;
    if (event.event && event.call !== undefined) this.heard.event(event as CallEvent);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
