// The log, and every way to filter it.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { base64, count, World } from "./harness.mjs";

describe("logs", () => {
  let world;
  // Messages by what makes them different, all of them settled.
  const ids = {};
  before(async () => {
    world = await World.start();
    const { client } = world;
    await client.urlGroups.addEndpoints({ name: "logged", endpoints: [{ name: "e", url: world.url("/ok/grouped") }] });
    const publish = async (name, path, given) => {
      ids[name] = (await client.publish({ url: world.url(path), body: name, ...given })).messageId;
    };
    await publish("plain", "/ok/plain");
    await publish("labelled", "/ok/labelled", { label: ["red", "green"] });
    await publish("other", "/ok/other", { label: "blue" });
    await publish("keyed", "/ok/keyed", { flowControl: { key: "logged", rate: 100 } });
    await publish("failing", "/status/500/failing", { retries: 0 });
    await publish("delayed", "/ok/delayed", { delay: "1h" });
    ids.queued = (await client.queue({ queueName: "logged" }).enqueue({ url: world.url("/ok/queued") })).messageId;
    ids.grouped = (await client.publish({ urlGroup: "logged" }))[0].messageId;
    for (const [name, id] of Object.entries(ids)) {
      if (name !== "delayed") await world.logged(id, name === "failing" ? "FAILED" : "DELIVERED");
    }
  });
  after(() => world.stop());

  // The names of the messages that the log tells of with this filter.
  async function named(filter) {
    const { logs } = await world.client.logs({ filter });
    const known = Object.entries(ids);
    const names = logs.map(({ messageId }) => known.find(([, id]) => id === messageId)?.[0] ?? messageId);
    return [...new Set(names)].sort();
  }

  it("tells the life of a message", async () => {
    const entries = await world.log(ids.plain);
    assert.deepEqual(entries.map(({ state }) => state), ["CREATED", "ACTIVE", "DELIVERED"]);
    for (const entry of entries) {
      assert.equal(entry.messageId, ids.plain);
      assert.equal(entry.url, world.url("/ok/plain"));
      assert.equal(typeof entry.time, "number");
      for (const [name, value] of Object.entries(entry)) {
        if (name !== "urlGroup") assert(value !== null && value !== "", `${name} of ${entry.state}`);
      }
    }
    const [created, , delivered] = entries;
    assert.equal(created.body, base64("plain"));
    assert.equal(created.method, "POST");
    assert.equal(created.maxRetries, 3);
    assert.equal(delivered.responseStatus, 200);
    assert(created.time <= delivered.time);
  });

  it("tells what was wrong", async () => {
    const entries = await world.log(ids.failing);
    const failed = entries.at(-1);
    assert.deepEqual([failed.state, failed.responseStatus], ["FAILED", 500]);
    assert.equal(failed.responseBody, base64("status 500"));
  });

  it("filters by one thing", async () => {
    assert.deepEqual(await named({ messageId: ids.keyed }), ["keyed"]);
    assert.deepEqual(await named({ url: world.url("/ok/other") }), ["other"]);
    assert.deepEqual(await named({ path: "/ok/other" }), ["other"]);
    assert.deepEqual(await named({ queueName: "logged" }), ["queued"]);
    assert.deepEqual(await named({ urlGroup: "logged" }), ["grouped"]);
    assert.deepEqual(await named({ flowControlKey: "logged" }), ["keyed"]);
    assert.deepEqual(await named({ label: "green" }), ["labelled"]);
    assert.deepEqual(await named({ state: "FAILED" }), ["failing"]);
    assert.deepEqual(await named({ scheduleId: "scd_nobody" }), []);
    assert.deepEqual(await named({ callerIp: "127.0.0.1" }), Object.keys(ids).sort());
    assert.deepEqual(await named({ callerIp: "192.0.2.1" }), []);
    assert.deepEqual(await named({ host: new URL(world.destination.origin).host }), Object.keys(ids).sort());
  });

  it("takes any of several values, and all of several filters", async () => {
    assert.deepEqual(await named({ label: ["red", "blue"] }), ["labelled", "other"]);
    const urls = ["/ok/plain", "/ok/other"].map((path) => world.url(path));
    assert.deepEqual(await named({ url: urls }), ["other", "plain"]);
    assert.deepEqual(await named({ label: ["red", "blue"], url: world.url("/ok/other") }), ["other"]);
    assert.deepEqual(await named({ label: "red", state: "FAILED" }), []);
    const { logs } = await world.client.logs({ messageIds: [ids.plain, ids.keyed] });
    assert.deepEqual(new Set(logs.map(({ messageId }) => messageId)), new Set([ids.plain, ids.keyed]));
    const { json } = await world.server.ask("GET", "/v2/events?label=red,blue");
    assert.deepEqual(new Set(json.events.map(({ messageId }) => messageId)), new Set([ids.labelled, ids.other]));
  });

  it("takes ACTIVE, RETRY and ERROR together for in progress", async () => {
    const { logs } = await world.client.logs({ filter: { state: "IN_PROGRESS" } });
    assert(logs.length > 0);
    assert(logs.every(({ state }) => ["ACTIVE", "RETRY", "ERROR"].includes(state)));
  });

  it("filters by time, both ends included", async () => {
    const all = await world.log(ids.other);
    const [first, last] = [all[0].time, all.at(-1).time];
    const within = async (fromDate, toDate) =>
      (await world.client.logs({ filter: { messageId: ids.other, fromDate, toDate } })).logs.length;
    assert.equal(await within(first, last), all.length);
    assert.equal(await within(new Date(first), new Date(last)), all.length);
    assert.equal(await within(last + 1, last + 1000), 0);
    assert.equal(await within(first - 1000, first - 1), 0);
  });

  it("tells the latest first unless asked otherwise", async () => {
    const times = (events) => events.map(({ time }) => time);
    const { logs } = await world.client.logs();
    assert.deepEqual(times(logs), times(logs).sort((one, other) => other - one));
    const { json } = await world.server.ask("GET", "/v2/events?order=earliestFirst");
    assert.deepEqual(times(json.events), times(json.events).sort((one, other) => one - other));
  });

  it("comes in pages that leave nothing out and repeat nothing", async () => {
    const { logs: all, cursor: none } = await world.client.logs();
    assert.equal(none, undefined, "there is no cursor when there is no more");
    const paged = [];
    let cursor;
    do {
      const page = await world.client.logs({ cursor, count: 4 });
      assert(page.logs.length <= 4);
      paged.push(...page.logs);
      cursor = page.cursor;
    } while (cursor);
    const keys = (entries) => entries.map(({ messageId, state, time }) => `${time} ${messageId} ${state}`);
    assert.deepEqual(keys(paged), keys(all));
  });

  it("has another name and an older method", async () => {
    const { events } = await world.client.events({ filter: { messageId: ids.plain } });
    const { json } = await world.server.ask("GET", `/v2/logs?messageId=${ids.plain}`);
    assert.equal(events.length, 3);
    assert.deepEqual(json.logs.map(({ state }) => state), events.map(({ state }) => state));
  });

  it("refuses a filter that it does not know", async () => {
    for (const query of ["labeel=red", "state=ASLEEP", "count=none", "order=random", "fromDate=yesterday"]) {
      const { status, text } = await world.server.ask("GET", `/v2/events?${query}`);
      assert.equal(status, 400, `${query}: ${text}`);
    }
  });

  it("keeps the order of things that happen at once", async () => {
    const messages = count(50).map(() => ({ url: world.url("/ok/at-once") }));
    const answers = await world.client.batch(messages);
    for (const { messageId } of answers) await world.logged(messageId, "DELIVERED");
    for (const { messageId } of answers) {
      const states = (await world.log(messageId)).map(({ state }) => state);
      assert.deepEqual(states, ["CREATED", "ACTIVE", "DELIVERED"]);
    }
  });
});
