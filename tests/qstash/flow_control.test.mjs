// Flow control: how many start in a window, how many are in flight, and who may change that.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { count, eventually, refused, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("flow control", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  async function publish(path, length, flowControl, given = {}) {
    const url = world.url(path);
    const messages = count(length).map((number) => ({ url, body: `${number}`, flowControl, ...given }));
    return (await world.client.batch(messages)).map(({ messageId }) => messageId);
  }

  it("starts no more than the rate in any window", async () => {
    const since = performance.now();
    const ids = await publish("/ok/rate", 12, { key: "rate", rate: 4, period: "2s" });
    await world.destination.arrived("/ok/rate", 12);
    await world.assertRate(ids, { rate: 4, periodMs: 2000, since });
    const order = world.destination.at("/ok/rate").map(({ body }) => Number(body));
    const windows = [0, 4, 8].map((first) => order.slice(first, first + 4).sort((one, other) => one - other));
    assert.deepEqual(windows.flat(), count(12), "who came first goes in the first window");
  });

  it("counts over urls, and over publish and batch alike", async () => {
    const flowControl = { key: "shared", rate: 2, period: "1h" };
    await world.client.publish({ url: world.url("/ok/shared/a"), flowControl });
    await world.client.publishJSON({ url: world.url("/ok/shared/b"), flowControl });
    await world.client.batchJSON([{ url: world.url("/ok/shared/c"), flowControl }]);
    await world.destination.arrived("/ok/shared/", 2);
    await world.pass(1);
    assert.equal(world.destination.at("/ok/shared/").length, 2);
    const key = await world.client.flowControl.get("shared");
    assert.deepEqual([key.rateCount, key.rateMax, key.ratePeriod, key.waitListSize], [2, 2, 3600, 1]);
  });

  it("has no more in flight than the parallelism", async () => {
    const { destination } = world;
    await publish("/hang/parallelism", 12, { key: "parallelism", parallelism: 3 });
    await destination.opened("/hang/parallelism", 3);
    const key = await world.client.flowControl.get("parallelism");
    assert.deepEqual([key.parallelismMax, key.parallelismCount, key.waitListSize], [3, 3, 9]);
    for (let answered = 0; answered < 12; answered += destination.release("/hang/parallelism", 1)) {
      await destination.opened("/hang/parallelism", Math.min(3, 12 - answered));
    }
    assert.equal(destination.peak("/hang/parallelism"), 3);
  });

  it("gives back the slot of a message that fails", async () => {
    const { client, destination } = world;
    const flowControl = { key: "failing", parallelism: 1 };
    await client.publish({ url: world.url("/status/500/failing"), retries: 1, retryDelay: "3000", flowControl });
    await client.publish({ url: world.url("/ok/failing"), flowControl });
    const [other] = await destination.arrived("/ok/failing");
    assert.equal(destination.at("/status/500/failing").length, 1);
    const [first, second] = await destination.arrived("/status/500/failing", 2);
    assert(first.endedAt <= other.arrivedAt && other.arrivedAt < second.arrivedAt);
  });

  it("counts a retry as another start", async () => {
    const since = performance.now();
    const given = { retryDelay: "1" };
    const ids = await publish("/fail-then-ok/1/retried", 1, { key: "retried", rate: 1, period: 2 }, given);
    await world.destination.arrived("/fail-then-ok/1/retried", 2);
    await world.assertRate(ids, { rate: 1, periodMs: 2000, since });
  });

  it("goes by the newest configuration, for those that wait already, too", async () => {
    const { client, destination } = world;
    await publish("/hang/newest", 8, { key: "newest", parallelism: 1 });
    await destination.opened("/hang/newest", 1);
    await publish("/hang/newest", 1, { key: "newest", parallelism: 4 });
    await destination.opened("/hang/newest", 4);
    assert.equal((await client.flowControl.get("newest")).parallelismMax, 4);
    await publish("/hang/newest", 1, { key: "newest", parallelism: 2 });
    assert.equal((await client.flowControl.get("newest")).parallelismCount, 4, "what is in flight stays so");
    destination.release("/hang/newest", 2);
    await world.pass(1);
    assert.equal(destination.open("/hang/newest").length, 2, "none begins while there are two");
    destination.release("/hang/newest", 1);
    await destination.opened("/hang/newest", 2);
    assert.equal(destination.peak("/hang/newest"), 4);
    await publish("/hang/newest", 1, { key: "newest", rate: 100 });
    const cleared = await client.flowControl.get("newest");
    assert.equal(cleared.rateMax, 100);
    assert(!cleared.parallelismMax, "what the newest does not say does not hold any more");
    await destination.until(() => destination.at("/hang/newest").length === 11, "all of them");
    destination.letGo("/hang/newest");
  });

  it("holds messages while it is paused", async () => {
    const { client, destination } = world;
    const flowControl = { key: "paused", rate: 100, period: "1h" };
    await publish("/ok/paused/before", 1, flowControl);
    await destination.arrived("/ok/paused/before");
    await client.flowControl.pause("paused");
    await publish("/ok/paused/meanwhile", 3, flowControl);
    await world.pass(1);
    assert.deepEqual(destination.urls("/ok/paused/meanwhile"), []);
    const key = await client.flowControl.get("paused");
    assert.deepEqual([key.isPaused, key.waitListSize, key.rateCount], [true, 3, 1]);
    await client.flowControl.resume("paused");
    await destination.arrived("/ok/paused/meanwhile", 3);
    const resumed = await client.flowControl.get("paused");
    assert.deepEqual([resumed.isPaused, resumed.rateCount, resumed.ratePeriodStart], [false, 4, key.ratePeriodStart]);
  });

  it("keeps what is pinned, whatever messages say, until it is unpinned", async () => {
    const { client, destination } = world;
    await publish("/hang/pinned", 6, { key: "pinned", parallelism: 1, rate: 50, period: "1h" });
    await destination.opened("/hang/pinned", 1);
    await client.flowControl.pin("pinned", { parallelism: 3 });
    await destination.opened("/hang/pinned", 3);
    await publish("/hang/pinned", 1, { key: "pinned", parallelism: 5, rate: 60, period: "2h" });
    const pinned = await client.flowControl.get("pinned");
    assert.deepEqual([pinned.isPinnedParallelism, pinned.isPinnedRate], [true, false]);
    assert.deepEqual([pinned.parallelismMax, pinned.rateMax, pinned.ratePeriod], [3, 60, 7200]);
    await client.flowControl.unpin("pinned", { parallelism: true });
    const unpinned = await client.flowControl.get("pinned");
    // The value stays until someone says otherwise.
    assert.deepEqual([unpinned.isPinnedParallelism, unpinned.parallelismMax], [false, 3]);
    await publish("/hang/pinned", 1, { key: "pinned", parallelism: 5, rate: 60, period: "2h" });
    await destination.opened("/hang/pinned", 5);
    assert.equal((await client.flowControl.get("pinned")).parallelismMax, 5);
    assert.equal(destination.peak("/hang/pinned"), 5);
    destination.letGo("/hang/pinned");
  });

  it("starts a new period when a rate is pinned", async () => {
    const { client, destination } = world;
    const flowControl = { key: "pinned-rate", rate: 2, period: "1h" };
    await publish("/ok/pinned-rate", 5, flowControl);
    await destination.arrived("/ok/pinned-rate", 2);
    await client.flowControl.pin("pinned-rate", { rate: 1, period: 7200 });
    await destination.arrived("/ok/pinned-rate", 3);
    await world.pass(1);
    assert.equal(destination.at("/ok/pinned-rate").length, 3);
    await publish("/ok/pinned-rate", 1, { ...flowControl, rate: 90 });
    const key = await client.flowControl.get("pinned-rate");
    assert.deepEqual([key.isPinnedRate, key.isPinnedParallelism], [true, false]);
    assert.deepEqual([key.rateMax, key.ratePeriod, key.rateCount, key.waitListSize], [1, 7200, 1, 3]);
    await client.flowControl.unpin("pinned-rate", { rate: true, parallelism: true });
    assert.equal((await client.flowControl.get("pinned-rate")).isPinnedRate, false);
    await publish("/ok/pinned-rate", 1, { ...flowControl, rate: 90 });
    await destination.arrived("/ok/pinned-rate", 7);
  });

  it("lets those that wait go at once when the rate is reset", async () => {
    const { client, destination } = world;
    await publish("/ok/reset", 5, { key: "reset", rate: 2, period: "1h" });
    await destination.arrived("/ok/reset", 2);
    const before = await client.flowControl.get("reset");
    assert.deepEqual([before.rateCount, before.waitListSize], [2, 3]);
    await client.flowControl.resetRate("reset");
    await destination.arrived("/ok/reset", 4);
    await world.pass(1);
    assert.equal(destination.at("/ok/reset").length, 4);
    const reset = await client.flowControl.get("reset");
    assert.deepEqual([reset.rateCount, reset.waitListSize], [2, 1]);
    assert(reset.ratePeriodStart >= before.ratePeriodStart);
  });

  it("takes keys with slashes, spaces and colons", async () => {
    const { client, destination } = world;
    const key = "team/42 plan:pro/pause";
    await publish("/ok/odd", 2, { key, rate: 1, period: "1h" });
    await destination.arrived("/ok/odd");
    assert.equal((await client.flowControl.get(key)).flowControlKey, key);
    await client.flowControl.pause(key);
    await client.flowControl.resetRate(key);
    assert.equal((await client.flowControl.get(key)).isPaused, true);
    await client.flowControl.resume(key);
    await destination.arrived("/ok/odd", 2);
  });

  it("reads periods as texts and as seconds, and takes a second otherwise", async () => {
    const { client } = world;
    const periods = {
      "by-text": ["2m", 120],
      "by-number": [90, 90],
      "by-default": [undefined, 1],
      "a-week": ["7d", 604_800],
    };
    for (const [key, [period, seconds]] of Object.entries(periods)) {
      await publish("/ok/periods", 1, { key, rate: 5, period }, { delay: "1h" });
      const state = await client.flowControl.get(key);
      assert.deepEqual([state.rateMax, state.ratePeriod], [5, seconds], key);
    }
  });

  const neither = /Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values/;
  const wrong = {
    "a rate of nothing": ["rate=0", /./],
    "a parallelism of nothing": ["parallelism=0", /./],
    "a period of more than a week": ["rate=1, period=8d", /./],
    "a period alone": ["period=1s", neither],
    "words that it does not know": ["fast", neither],
  };
  for (const [what, [value, pattern]] of Object.entries(wrong)) {
    it(`refuses ${what}`, async () => {
      const headers = { "Upstash-Flow-Control-Key": "wrong", "Upstash-Flow-Control-Value": value };
      await refused(world.client.publish({ url: world.url("/ok/wrong"), headers }), 400, pattern);
    });
  }

  it("does not know a key that never was; pinning makes it", async () => {
    const { flowControl } = world.client;
    await refused(flowControl.get("nobody"), 404);
    await refused(flowControl.pause("nobody"), 404);
    await refused(flowControl.resetRate("nobody"), 404);
    await flowControl.pin("made-by-pin", { parallelism: 2, rate: 3, period: 60 });
    const key = await flowControl.get("made-by-pin");
    assert.deepEqual([key.parallelismMax, key.rateMax, key.ratePeriod], [2, 3, 60]);
    assert.deepEqual([key.isPinnedParallelism, key.isPinnedRate, key.waitListSize], [true, true, 0]);
    await refused(flowControl.pin("made-by-pin", { rate: 0 }), 400);
    await refused(flowControl.pin("made-by-pin", {}), 400);
  });

  it("forgets a key that nobody uses", async () => {
    const { client, destination } = world;
    await publish("/ok/forgotten", 1, { key: "forgotten", rate: 1, period: 1, parallelism: 1 });
    await destination.arrived("/ok/forgotten");
    await eventually(async () => {
      const answer = await world.server.ask("GET", "/v2/flowControl/forgotten");
      return answer.status === 404;
    }, "the key to be gone");
  });

  it("lists keys, those without one, too, and finds them by a part of their names", async () => {
    await publish("/ok/listed", 1, { key: "listed:one", rate: 1, period: "1h" }, { delay: "1h" });
    await publish("/ok/listed", 2, { key: "listed:two", rate: 1, period: "1h" }, { delay: "1h" });
    await publish("/ok/listed", 1, undefined, { delay: "1h" });
    const list = async (query) => (await world.server.ask("GET", `/v2/flowControl${query}`)).json;
    const all = await list("");
    const named = Object.fromEntries(all.map((key) => [key.flowControlKey, key]));
    assert.equal(named["listed:two"].waitListSize, 2);
    assert(named.$, "messages without a key are at $");
    const found = (await list("?search=listed:")).map(({ flowControlKey }) => flowControlKey);
    assert.deepEqual(found.sort(), ["listed:one", "listed:two"]);
  });

  it("has one state with the other API", async () => {
    const { client, server } = world;
    await publish("/ok/both", 2, { key: "both", rate: 1, period: "1h" });
    await world.destination.arrived("/ok/both");
    const paused = await server.ask("POST", "/v1/limits/both/pause");
    assert(paused.status < 300, paused.text);
    assert.equal((await client.flowControl.get("both")).isPaused, true);
    await client.flowControl.resume("both");
    await client.flowControl.pin("both", { rate: 7, period: 60 });
    const { json, status } = await server.ask("GET", "/v1/limits/both");
    assert.equal(status, 200);
    assert.match(JSON.stringify(json), /"limit":7\b/);
  });
});

describe("flow control beyond QStash", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  async function publish(path, headers) {
    const answer = await world.server.ask("POST", `/v2/publish/${world.url(path)}`, { headers, body: "" });
    assert(answer.status < 300, answer.text);
    return answer.json.messageId;
  }

  const keyed = (key, value) => ["Upstash-Flow-Control-Key", key, "Upstash-Flow-Control-Value", value];

  it("lets a message owe at several keys", async () => {
    const { client, destination } = world;
    const narrow = keyed("narrow", "rate=1, period=1h");
    await publish("/ok/several/first", [...narrow, ...keyed("wide", "rate=5, period=1h")]);
    await publish("/ok/several/second", [...narrow, ...keyed("wide", "rate=5, period=1h")]);
    await publish("/ok/several/third", keyed("wide", "rate=5, period=1h"));
    await destination.arrived("/ok/several/", 2);
    await world.pass(1);
    assert.deepEqual(destination.urls("/ok/several/second"), []);
    assert.equal((await client.flowControl.get("narrow")).rateCount, 1);
    assert.equal((await client.flowControl.get("wide")).rateCount, 2);
  });

  it("lets a message weigh more than one", async () => {
    const { client, destination } = world;
    const key = keyed("weight", "rate=5, period=1h, weight=3");
    for (const name of ["one", "two"]) await publish(`/ok/weight/${name}`, key);
    await destination.arrived("/ok/weight/");
    await world.pass(1);
    assert.equal(destination.at("/ok/weight/").length, 1);
    assert.equal((await client.flowControl.get("weight")).rateCount, 3);
  });

  it("lets what is urgent go first", async () => {
    const { client, destination } = world;
    const key = keyed("urgent", "parallelism=1");
    await publish("/hang/urgent", key);
    await destination.opened("/hang/urgent", 1);
    await publish("/ok/urgent/later", [...key, "Upstash-Priority", "0"]);
    await publish("/ok/urgent/sooner", [...key, "Upstash-Priority", "8"]);
    assert.equal((await client.flowControl.get("urgent")).waitListSize, 2);
    destination.release("/hang/urgent");
    const requests = await destination.arrived("/ok/urgent/", 2);
    assert.deepEqual(requests.map(({ url }) => url), ["/ok/urgent/sooner", "/ok/urgent/later"]);
  });

  it("closes a key with 429 when that is wanted", async () => {
    const { destination } = world;
    destination.answer("/closing/first", ({ nth }) =>
      nth === 1 ? { status: 429, headers: { "Retry-After": "2" } } : { status: 200 },
    );
    const key = keyed("closing", "parallelism=1, feedback=true");
    await publish("/closing/first", [...key, "Upstash-Retries", "0"]);
    const [first] = await destination.arrived("/closing/first");
    await publish("/closing/second", key);
    const [second] = await destination.arrived("/closing/second");
    assert(second.arrivedAt - first.endedAt >= 2000 - 2, "nobody goes before the upstream said so");
    await destination.arrived("/closing/first", 2);
  });

  it("takes a key without a value as it is", async () => {
    const { client, destination, server } = world;
    await client.flowControl.pin("as-it-is", { rate: 1, period: 3600 });
    const headers = ["Upstash-Flow-Control-Key", "as-it-is"];
    for (const name of ["one", "two"]) await publish(`/ok/as-it-is/${name}`, headers);
    await destination.arrived("/ok/as-it-is/");
    await world.pass(1);
    assert.equal(destination.at("/ok/as-it-is/").length, 1);
    const unknown = ["Upstash-Flow-Control-Key", "never-was"];
    const answer = await server.ask("POST", `/v2/publish/${world.url("/ok/x")}`, { headers: unknown, body: "" });
    assert.equal(answer.status, 400, answer.text);
  });
});
