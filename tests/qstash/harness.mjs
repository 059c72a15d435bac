// What every scenario in Node stands on: the SDK as npm has it, a server of its own, and a destination that records.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { once } from "node:events";
import { Destination, PATIENCE_MS } from "./receiver.mjs";

const { QSTASH_PACKAGES, STORE_OF_SCENARIOS, TOLLGATE_BIN } = process.env;

// How far a store's clock may be behind ours: that of PostgreSQL goes on from what the server said last, and is
// behind by as long as that was on its way.
export const BEHIND_MS = STORE_OF_SCENARIOS ? 1_000 : 1;
if (!QSTASH_PACKAGES || !TOLLGATE_BIN) throw new Error("run scenarios with tests/qstash.sh, which installs the SDK");

// The SDK, resolved from where it was installed.
export const sdk = createRequire(join(QSTASH_PACKAGES, "package.json"))("@upstash/qstash");

// Time between two looks at something of which the API tells no event.
const LOOK_MS = 50;

// How scenarios of a file that share a server are run: they wait most of the time.
export const SIDE_BY_SIDE = { concurrency: 8 };

// May do everything on the servers started here.
export const TOKEN = "token-of-the-scenarios";

// One process of the binary, with data that outlives it until `remove`.
export class Server {
  #options;
  #process;
  #said = "";

  static async start(options = {}) {
    const server = new Server();
    server.#options = options;
    server.folder = await mkdtemp(join(tmpdir(), "tollgate-qstash-"));
    if (options.config) await writeFile(join(server.folder, "tollgate.toml"), options.config);
    await server.#spawn();
    return server;
  }

  async #spawn() {
    const { config, env = {} } = this.#options;
    // In a database each has a schema of its own.
    const kept = STORE_OF_SCENARIOS
      ? ["--store", STORE_OF_SCENARIOS, "--prefix", basename(this.folder).toLowerCase().replaceAll("-", "_")]
      : ["--data", join(this.folder, "data")];
    const serve = ["serve", "--listen", "127.0.0.1:0", ...kept];
    if (config) serve.push("--config", join(this.folder, "tollgate.toml"));
    const defaults = { TOLLGATE_TOKEN: TOKEN, TOLLGATE_PUSH_ALLOW_ADDRESSES: "127.0.0.1" };
    this.#process = spawn(TOLLGATE_BIN, this.#options.command ?? serve, {
      cwd: this.folder,
      env: { PATH: process.env.PATH, ...defaults, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process.stderr.on("data", (text) => (this.#said += text));
    this.ended = once(this.#process, "exit");
    const lines = createInterface({ input: this.#process.stdout });
    const listening = new Promise((resolve) => {
      lines.on("line", (line) => line.includes("listens on http") && resolve(line));
    });
    const said = Promise.race([listening, this.ended.then(() => undefined)]);
    const line = await within(said, "the server to start");
    assert(line, `the server did not start: ${this.#said}`);
    this.url = /https?:\/\/[^\s/]+/.exec(line)[0];
  }

  // An SDK client of this server.
  client(token = TOKEN, options = {}) {
    return new sdk.Client({ baseUrl: this.url, token, ...options });
  }

  // Ends it politely, and checks that it took no harm.
  async stop() {
    this.#process.kill("SIGTERM");
    const [code] = await within(this.ended, "the server to end");
    assert.equal(code, 0, `the server ended badly: ${this.#said.slice(-4000)}`);
    assert(!this.#said.includes("panicked"), `the server panicked: ${this.#said.slice(-4000)}`);
  }

  // Ends it at once, as a failing machine does.
  async kill() {
    this.#process.kill("SIGKILL");
    await this.ended;
  }

  // Starts it again, on the same data and another port.
  async startAgain() {
    await this.#spawn();
  }

  async remove() {
    await rm(this.folder, { recursive: true, force: true });
  }

  // A plain request, for what the SDK has no method for. `headers` may be a flat list, to repeat a name.
  async ask(method, path, { token = TOKEN, headers = {}, body } = {}) {
    const list = Array.isArray(headers) ? headers : Object.entries(headers).flat();
    const all = [...(token ? ["Authorization", `Bearer ${token}`] : []), ...list];
    if (body !== undefined) all.push("Content-Length", String(Buffer.byteLength(body)));
    const { hostname, port } = new URL(this.url);
    all.push("Host", `${hostname}:${port}`);
    // The path as it is: nothing between here and the server makes it prettier.
    const request = http.request({ hostname, port, method, path, headers: all, agent: false });
    request.end(body);
    const [response] = await once(request, "response", { signal: AbortSignal.timeout(PATIENCE_MS) });
    const chunks = [];
    for await (const chunk of response) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    return { status: response.statusCode, headers: response.headers, text, json: parsed(text) };
  }
}

// A promise, for as long as patience lasts.
async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), PATIENCE_MS);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// A server, a client of it and a destination; every delivery is verified as it arrives.
export class World {
  #keysOfOthers = [];

  static async start(options = {}) {
    const world = new World();
    world.server = await Server.start(options);
    world.destination = await Destination.start();
    world.client = world.server.client(options.token);
    try {
      await world.trustKeys();
    } catch (error) {
      await world.abandon();
      throw error;
    }
    world.destination.verify = (request) => world.#verify(request);
    return world;
  }

  // Takes the server's signing keys as those that deliveries are signed with from now on.
  async trustKeys() {
    this.keys = await this.#keysOf(TOKEN);
  }

  // Takes those of a token, which has its own if it has a namespace, for what goes to urls that begin with `path`.
  async trustKeysOf(token, path) {
    this.#keysOfOthers.push({ path, keys: await this.#keysOf(token) });
  }

  async #keysOf(token) {
    const answer = await this.server.ask("GET", "/v2/keys", { token });
    assert.equal(answer.status, 200, answer.text);
    return answer.json;
  }

  // After the server was started again: another port, so another client.
  async startAgain() {
    await this.server.startAgain();
    this.client = this.server.client();
  }

  // Ends it all, and tells what was wrong with any delivery.
  async stop() {
    try {
      for (const request of this.destination.open("/")) request.release({ status: 200 });
      await this.server.stop();
      assert.deepEqual(this.destination.faults, [], "each delivery is signed");
    } finally {
      await this.abandon();
    }
  }

  // Ends it all, whatever state it is in; otherwise the process would wait for what is left.
  async abandon() {
    await this.server.kill();
    await this.destination.stop();
    await this.server.remove();
  }

  url(path) {
    return this.destination.url(path);
  }

  async #verify(request) {
    const signature = request.headers["upstash-signature"];
    assert(signature, "there is no signature");
    const other = this.#keysOfOthers.find(({ path }) => request.url.startsWith(path));
    const { current, next } = other?.keys ?? this.keys;
    const receiver = new sdk.Receiver({ currentSigningKey: current, nextSigningKey: next });
    // A destination without a path is signed as it was given, without one.
    const url = request.url === "/" ? undefined : this.url(request.url);
    if (Buffer.from(request.body).equals(request.bytes)) {
      assert(await receiver.verify({ signature, body: request.body, url }));
    } else {
      verifyBytes(signature, request.bytes, current);
    }
  }

  // Waits for `seconds` by the server's own clock: until it has delivered a message that was delayed so long.
  async pass(seconds) {
    const path = `/ok/passed/${Math.random()}`;
    const { messageId } = await this.client.publish({ url: this.url(path), delay: `${seconds}s` });
    await this.destination.arrived(path);
    // Before that, it may still count as one in flight.
    await this.logged(messageId, "DELIVERED");
  }

  // Every entry of the log about a message, oldest first: the server tells the latest first.
  async log(messageId) {
    const { logs } = await this.client.logs({ filter: { messageId } });
    return logs.reverse();
  }

  // Waits until the log says that a message is in a state; that entry.
  async logged(messageId, state) {
    const find = async () => (await this.log(messageId)).find((entry) => entry.state === state);
    return await eventually(find, `${messageId} ${state}`);
  }

  // Checks that the messages of a key, all of them delivered and published after `since`, kept to its rate. A request
  // may be noticed late here, on a busy machine, but never early; so by what arrived, as many windows must have passed
  // as were needed, and by the starts that the log tells, each of which comes before an arrival, no window held more.
  async assertRate(ids, { rate, periodMs, since }) {
    const mine = (request) => ids.includes(request.headers["upstash-message-id"]);
    const arrivals = this.destination.requests.filter(mine).sort((one, other) => one.arrivedAt - other.arrivedAt);
    for (const [index, { arrivedAt }] of arrivals.entries()) {
      const windows = Math.floor(index / rate);
      assert(arrivedAt >= since + windows * periodMs, `request ${index} came after ${arrivedAt - since} ms`);
    }
    const starts = [];
    for (const id of ids) {
      await this.logged(id, "DELIVERED");
      const times = (await this.log(id)).filter(({ state }) => state === "ACTIVE").map(({ time }) => time);
      const came = arrivals.filter((request) => request.headers["upstash-message-id"] === id);
      assert(times.length >= came.length, `${id} came ${came.length} times and started ${times.length} times`);
      for (const [index, { wallMs }] of came.entries()) {
        assert(times[index] <= wallMs + CLOCKS_APART_MS, `${id} came before it started`);
      }
      starts.push(...times);
    }
    assertWindows(starts, { rate, periodMs });
  }

  // Waits until a message is dead; its entry in the DLQ.
  async dead(messageId) {
    const find = async () => (await this.client.dlq.listMessages({ filter: { messageId } })).messages[0];
    return await eventually(find, `${messageId} in the DLQ`);
  }
}

// How far the time of a start in the log may be off the one that its limit went by, on a machine that is busy.
const CLOCKS_APART_MS = 100;

// Checks that no window held more than `rate` of these times. A window opens with the first when none is open.
function assertWindows(times, { rate, periodMs }) {
  let [opened, held] = [-Infinity, 0];
  for (const time of [...times].sort((one, other) => one - other)) {
    if (time >= opened + periodMs - CLOCKS_APART_MS) [opened, held] = [time, 0];
    held += 1;
    assert(held <= rate, `${held} in a window for ${rate}, ${time - opened} ms after it opened`);
  }
}

// The SDK verifies texts alone, so bytes that are none are verified here.
function verifyBytes(signature, bytes, key) {
  const [header, payload, mac] = signature.split(".");
  assert.equal(mac, createHmac("sha256", key).update(`${header}.${payload}`).digest("base64url"));
  const claims = JSON.parse(Buffer.from(payload, "base64url"));
  assert.equal(claims.body.replace(/=+$/, ""), createHash("sha256").update(bytes).digest("base64url"));
}

// Looks again and again until there is something to see; what it is. For states of which the API tells no event.
export async function eventually(look, what, patienceMs = PATIENCE_MS) {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

// Checks that a promise of the SDK is refused with `status`, and by the body that the server sent.
export async function refused(promise, status, pattern = /./) {
  await assert.rejects(promise, (error) => {
    assert(error instanceof sdk.QstashError, `${error.stack}`);
    assert.equal(error.status, status, error.message);
    assert.equal(typeof JSON.parse(error.message).error, "string", error.message);
    assert.match(JSON.parse(error.message).error, pattern);
    return true;
  });
}

// A list of numbers, to publish as many of something.
export function count(length) {
  return Array.from({ length }, (_, index) => index);
}

export function base64(text) {
  return Buffer.from(text).toString("base64");
}

export function sha256(text) {
  return createHash("sha256").update(text).digest("hex");
}
