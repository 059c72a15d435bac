// The real server, on a free port and with a folder of its own, and the requests that tests set it up with.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const BINARY = process.env.TOLLGATE_BIN;

/** Starts a server; `options.arguments` are its flags beside the data folder, `options.token` is what it wants, and
 * `options.prepare` fills the data folder first. */
export async function startServer(options = {}) {
  if (!BINARY) throw new Error("TOLLGATE_BIN names no binary: run ./test console");
  const folder = await mkdtemp(join(tmpdir(), "tollgate-console-"));
  const kept = options.memory ? ["--memory"] : ["--data", join(folder, "data")];
  await options.prepare?.(join(folder, "data"));
  const environment = { ...process.env, ...(options.token ? { TOLLGATE_TOKEN: options.token } : {}) };
  const flags = ["serve", "--listen", "127.0.0.1:0", ...kept, ...(options.arguments ?? [])];
  const child = spawn(BINARY, flags, { env: environment, cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const url = await addressOf(child);
  return new Server(url, child, folder, options.token);
}

async function addressOf(child) {
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /listens on (http:\S+)/.exec(line);
    if (found) return found[1];
  }
  throw new Error("the server ended before it listened");
}

class Server {
  constructor(url, child, folder, token) {
    Object.assign(this, { url, child, folder, token });
  }

  /** Sends a request; one that is refused is an error. */
  async ask(method, path, body) {
    const headers = {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(this.token ? { authorization: `Bearer ${this.token}` } : {}),
    };
    const response = await fetch(this.url + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text.startsWith("{") ? JSON.parse(text) : text;
  }

  /** A limit, a queue, and so many calls in each lane that pay there. */
  async fill({ limit, rule, queue, lanes, calls = 1, order = "strict" }) {
    await this.ask("PUT", `/v1/limits/${limit}`, rule);
    await this.ask("PUT", `/v1/queues/${queue}`, { order, failures_max: 1 });
    const all = lanes.flatMap((lane) =>
      Array.from({ length: calls }, (_, index) => ({ lane, body: { index }, tolls: [{ limit }] })),
    );
    return (await this.ask("POST", `/v1/queues/${queue}/calls`, all)).ids;
  }

  /** Claims calls, and settles each as it is told. */
  async work(queue, outcome, most = 1) {
    const { calls } = await this.ask("POST", `/v1/queues/${queue}/claim`, { max: most, wait: "10s" });
    const settlements = calls.map(({ lease }) => ({
      lease,
      outcome,
      report: { status: outcome === "done" ? 200 : 502 },
    }));
    if (settlements.length > 0) await this.ask("POST", "/v1/settle", settlements);
    return calls;
  }

  async stop() {
    await this.end();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Ends the process and leaves what it kept. */
  async end() {
    if (this.child.signalCode) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await ended;
  }
}
