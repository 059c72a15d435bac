// A destination on loopback that records every request, and answers as its path says:
//
//   /ok…               200 with a small body
//   /status/N…         N, always
//   /fail-then-ok/N…   500 for the first N requests with that url, then 200
//   /489…              489 with the header that says: do not try again
//   /hang…             nothing, until `release`
//
// and as `answer` says for paths that a scenario wants to be different.

import { EventEmitter, once } from "node:events";
import http from "node:http";

// Longest wait for something that is to happen.
export const PATIENCE_MS = 30_000;

export class Destination {
  // Every request, in order of arrival.
  requests = [];
  // What is wrong with requests that `verify` was asked about.
  faults = [];
  // Looks at each request as it arrives; whatever it throws is a fault.
  verify = async () => {};
  #events = new EventEmitter().setMaxListeners(0);
  #answers = [];
  #counts = new Map();
  #server = http.createServer((request, response) => this.#take(request, response));

  static async start() {
    const destination = new Destination();
    destination.#server.keepAliveTimeout = 0;
    destination.#server.listen(0, "127.0.0.1");
    await once(destination.#server, "listening");
    return destination;
  }

  async stop() {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  get origin() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  // The url of a path here.
  url(path) {
    return this.origin + path;
  }

  // Answers requests whose url begins with `path` by `how(request)`: `{ status, headers, body }`, or a promise of it.
  answer(path, how) {
    this.#answers.unshift({ path, how });
  }

  // Requests whose url begins with `path`.
  at(path) {
    return this.requests.filter((request) => request.url.startsWith(path));
  }

  // Their urls alone, to be shown when there should be none.
  urls(path) {
    return this.at(path).map((request) => request.url);
  }

  // Those of them that nobody has answered yet, and whose sender is still there.
  open(path) {
    return this.at(path).filter((request) => request.endedAt === undefined);
  }

  // The most of them that were there at the same time.
  peak(path) {
    const changes = this.at(path).flatMap((request) => [
      { at: request.arrivedAt, by: 1 },
      { at: request.endedAt ?? Infinity, by: -1 },
    ]);
    // What ended at the same moment as something began made room for it.
    changes.sort((one, other) => one.at - other.at || one.by - other.by);
    let now = 0;
    return changes.reduce((most, change) => Math.max(most, (now += change.by)), 0);
  }

  // Waits until `count` requests have come to `path`; those requests.
  async arrived(path, count = 1, patienceMs = PATIENCE_MS) {
    await this.until(() => this.at(path).length >= count, `${count} requests at ${path}`, patienceMs);
    return this.at(path).slice(0, count);
  }

  // Waits until `count` requests at `path` are open at a time.
  async opened(path, count, patienceMs = PATIENCE_MS) {
    await this.until(() => this.open(path).length >= count, `${count} open requests at ${path}`, patienceMs);
    return this.open(path);
  }

  // Waits until the condition holds, which is looked at whenever a request begins or ends.
  async until(condition, what, patienceMs = PATIENCE_MS) {
    const deadline = AbortSignal.timeout(patienceMs);
    while (!condition()) {
      try {
        await once(this.#events, "change", { signal: deadline });
      } catch {
        const seen = this.requests.map((request) => `${request.method} ${request.url}`).slice(-30);
        throw new Error(`waited in vain for ${what}; the last that came:\n  ${seen.join("\n  ")}`);
      }
    }
  }

  // Answers the oldest `count` requests that hang at `path`.
  release(path, count = Infinity, answer = { status: 200, body: "released" }) {
    const open = this.open(path).slice(0, count);
    for (const request of open) request.release(answer);
    return open.length;
  }

  // Answers all that hang at `path`, and all that come there from now on.
  letGo(path) {
    this.answer(path, () => ({ status: 200, body: "let go" }));
    return this.release(path);
  }

  async #take(incoming, response) {
    const record = {
      method: incoming.method,
      url: incoming.url,
      headers: incoming.headers,
      rawHeaders: incoming.rawHeaders,
      // Of one clock with the server's, for comparison with what it tells; the other never goes back.
      wallMs: Date.now(),
      arrivedAt: performance.now(),
      endedAt: undefined,
      answered: undefined,
    };
    const released = new Promise((resolve) => (record.release = resolve));
    const chunks = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk);
    } catch {
      return; // The sender was killed amidst its request.
    }
    record.bytes = Buffer.concat(chunks);
    record.body = record.bytes.toString();
    record.nth = (this.#counts.get(record.url) ?? 0) + 1;
    this.#counts.set(record.url, record.nth);
    this.requests.push(record);
    response.on("close", () => this.#end(record));
    this.#events.emit("change");
    this.verify(record).catch((error) => this.faults.push(`${record.method} ${record.url}: ${error.message}`));
    record.released = released;
    const { status, headers, body } = await this.#decide(record);
    // Before the answer leaves, since the sender may act on it before `close` is told of here.
    this.#end(record, status);
    response.writeHead(status, headers ?? {});
    response.end(body ?? "");
  }

  #end(record, status) {
    if (record.endedAt !== undefined) return;
    record.endedAt = performance.now();
    record.answered = status;
    this.#events.emit("change");
  }

  async #decide(record) {
    const special = this.#answers.find(({ path }) => record.url.startsWith(path));
    if (special) return await special.how(record);
    const [, kind, number] = record.url.split(/[/?]/);
    switch (kind) {
      case "status":
        return { status: Number(number), body: `status ${number}` };
      case "fail-then-ok":
        return record.nth <= Number(number) ? { status: 500, body: "not yet" } : { status: 200, body: "at last" };
      case "489":
        return { status: 489, headers: { "Upstash-NonRetryable-Error": "true" }, body: "never" };
      case "hang":
        return await record.released;
      default:
        return { status: 200, headers: { "X-Answer": "yes" }, body: "fine" };
    }
  }
}
