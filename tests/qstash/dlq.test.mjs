// Messages that died: found, tried again, removed.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BEHIND_MS, count, refused, World } from "./harness.mjs";

describe("dead letters", () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // Publishes messages that die at once; their entries, in the same order.
  async function died(path, given = [{}]) {
    const messages = given.map((more) => ({ url: world.url(path), retries: 0, ...more }));
    const answers = await world.client.batch(messages);
    return await Promise.all(answers.map(({ messageId }) => world.dead(messageId)));
  }

  async function listed(filter) {
    const { messages } = await world.client.dlq.listMessages({ filter });
    return messages.map(({ dlqId }) => dlqId);
  }

  it("show the message and the last answer", async () => {
    const asked = Date.now();
    const given = { body: "b", method: "PUT", headers: { "x-own": "1" }, label: "shown" };
    const [dead] = await died("/status/418/shown", [given]);
    assert.equal(dead.url, world.url("/status/418/shown"));
    assert.deepEqual([dead.body, dead.method, dead.label, dead.maxRetries], ["b", "PUT", "shown", 0]);
    assert.deepEqual([dead.responseStatus, dead.responseBody], [418, "status 418"]);
    assert.equal(typeof dead.responseHeader, "object");
    assert(Object.values(dead.responseHeader).every(Array.isArray));
    assert.deepEqual(dead.header["X-Own"], ["1"]);
    assert.match(dead.dlqId, /^\d+-\d+$/);
    assert(Number(dead.dlqId.split("-")[0]) >= asked - BEHIND_MS);
    const { status, json } = await world.server.ask("GET", `/v2/dlq/${dead.dlqId}`);
    assert.deepEqual([status, json.messageId], [200, dead.messageId]);
    assert.equal((await world.server.ask("GET", "/v2/dlq/1-1")).status, 404);
  });

  it("are filtered", async () => {
    const { client } = world;
    const flowControl = { key: "dead", rate: 100 };
    const [one, two] = await died("/status/501/filtered", [{ label: "x", flowControl }, { label: "y" }]);
    const [three] = await died("/status/502/filtered", [{ queueName: "dead" }]);
    await client.urlGroups.addEndpoints({ name: "dead", endpoints: [{ url: world.url("/status/503/filtered") }] });
    const [{ messageId }] = await client.publish({ urlGroup: "dead", retries: 0 });
    const four = await world.dead(messageId);
    assert.deepEqual(await listed({ label: "x" }), [one.dlqId]);
    assert.deepEqual((await listed({ label: ["x", "y"] })).sort(), [one.dlqId, two.dlqId].sort());
    assert.deepEqual(await listed({ url: world.url("/status/502/filtered") }), [three.dlqId]);
    assert.deepEqual(await listed({ queueName: "dead" }), [three.dlqId]);
    assert.deepEqual(await listed({ urlGroup: "dead" }), [four.dlqId]);
    assert.deepEqual(await listed({ responseStatus: 502 }), [three.dlqId]);
    assert.deepEqual((await listed({ responseStatus: [502, 503] })).sort(), [three.dlqId, four.dlqId].sort());
    assert.deepEqual(await listed({ flowControlKey: "dead" }), [one.dlqId]);
    assert.deepEqual(await listed({ messageId: two.messageId }), [two.dlqId]);
    assert.deepEqual(await listed({ label: "x", responseStatus: 502 }), []);
    assert.deepEqual(await listed({ callerIp: "192.0.2.1" }), []);
    assert.deepEqual(await listed({ fromDate: Date.now() + 60_000 }), []);
    const { messages } = await client.dlq.listMessages({ dlqIds: [one.dlqId, three.dlqId] });
    assert.deepEqual(messages.map(({ dlqId }) => dlqId).sort(), [one.dlqId, three.dlqId].sort());
  });

  it("come in pages, the earliest first", async () => {
    await died("/status/500/paged", count(5).map(() => ({ label: "paged" })));
    const all = await listed({ label: "paged" });
    assert.equal(all.length, 5);
    const paged = [];
    let cursor;
    do {
      const page = await world.client.dlq.listMessages({ filter: { label: "paged" }, count: 2, cursor });
      assert(page.messages.length <= 2);
      paged.push(...page.messages.map(({ dlqId }) => dlqId));
      cursor = page.cursor;
    } while (cursor);
    assert.deepEqual(paged, all);
    const times = paged.map((id) => Number(id.split("-")[0]));
    assert.deepEqual(times, [...times].sort((one, other) => one - other));
  });

  it("are tried again as new messages, and leave", async () => {
    const { client, destination } = world;
    const path = "/fail-then-ok/1/again";
    const [dead] = await died(path, [{ body: "once more", headers: { "x-own": "1" }, label: "again" }]);
    const { responses, cursor } = await client.dlq.retry(dead.dlqId);
    assert.equal(cursor, undefined);
    assert.equal(responses.length, 1);
    assert.notEqual(responses[0].messageId, dead.messageId);
    const [, again] = await destination.arrived(path, 2);
    assert.deepEqual([again.body, again.headers["x-own"], again.headers["upstash-retried"]], ["once more", "1", "0"]);
    assert.equal(again.headers["upstash-message-id"], responses[0].messageId);
    assert.equal((await world.logged(responses[0].messageId, "DELIVERED")).label, "again");
    assert.deepEqual(await listed({ messageId: dead.messageId }), []);
  });

  it("are tried again by several ids, by a filter, and all", async () => {
    const { dlq } = world.client;
    const path = "/fail-then-ok/7/several";
    const entries = await died(path, count(7).map((number) => ({ label: number < 4 ? "by-ids" : "by-filter" })));
    const ids = entries.map(({ dlqId }) => dlqId);
    assert.equal((await dlq.retry(ids.slice(0, 2))).responses.length, 2);
    assert.equal((await dlq.retry({ dlqIds: ids.slice(2, 4) })).responses.length, 2);
    const { responses, cursor } = await dlq.retry({ filter: { label: "by-filter" }, count: 2 });
    assert.equal(responses.length, 2);
    assert(cursor, "one is left");
    const rest = await dlq.retry({ filter: { label: "by-filter" }, cursor });
    assert.equal(rest.responses.length, 1);
    assert.equal(rest.cursor, undefined);
    await world.destination.arrived(path, 14);
    assert.deepEqual(await listed({ url: world.url(path) }), []);
  });

  it("are tried again with other settings", async () => {
    const [dead] = await died("/status/500/overridden");
    const headers = { "Upstash-Retries": "4", "Upstash-Delay": "1h" };
    const { status, json } = await world.server.ask("POST", `/v2/dlq/retry/${dead.dlqId}`, { headers });
    assert.equal(status, 201);
    assert.equal((await world.client.messages.get(json.messageId)).maxRetries, 4);
  });

  it("are removed by an id, once", async () => {
    const { dlq } = world.client;
    const [dead] = await died("/status/500/removed");
    assert.deepEqual(await dlq.delete(dead.dlqId), { deleted: 1 });
    await refused(dlq.delete(dead.dlqId), 404);
    assert.deepEqual(await listed({ messageId: dead.messageId }), []);
  });

  it("are removed by several ids and by filters", async () => {
    const { dlq } = world.client;
    const labels = count(9).map((number) => ({ label: number < 5 ? "ids" : "filter" }));
    const entries = await died("/status/500/several", labels);
    const ids = entries.map(({ dlqId }) => dlqId);
    assert.equal((await dlq.delete(ids.slice(0, 2))).deleted, 2);
    assert.equal((await dlq.deleteMany({ dlqIds: ids.slice(2, 4) })).deleted, 2);
    assert.equal((await dlq.delete({ dlqIds: [ids[4], "1-1"] })).deleted, 1);
    const first = await dlq.delete({ filter: { label: "filter" }, count: 3 });
    assert.equal(first.deleted, 3);
    const rest = await dlq.delete({ filter: { label: "filter" }, cursor: first.cursor });
    assert.equal(rest.deleted, 1);
    assert(!rest.cursor);
    assert.deepEqual(await listed({ url: world.url("/status/500/several") }), []);
  });

  it("are not removed by a filter that is misspelt", async () => {
    const { dlq } = world.client;
    const [dead] = await died("/status/500/misspelt");
    await refused(dlq.delete({ filter: { labeel: "x" } }), 400);
    await refused(dlq.retry({ filter: { labeel: "x" } }), 400);
    assert.deepEqual(await listed({ messageId: dead.messageId }), [dead.dlqId]);
  });

  it("are all removed when that is asked for", async () => {
    const { dlq } = world.client;
    await died("/status/500/all", count(3).map(() => ({})));
    const before = (await listed({})).length;
    const { deleted } = await dlq.delete({ all: true });
    assert.equal(deleted, before);
    assert.deepEqual(await listed({}), []);
    assert.deepEqual((await dlq.retry({ all: true })).responses, []);
  });
});
