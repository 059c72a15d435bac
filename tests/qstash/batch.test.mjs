// Many messages in one request.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { count, refused, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("batch", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("delivers each with what was said of it", async () => {
    const { client, destination } = world;
    const answers = await client.batch([
      { url: world.url("/ok/batch/a"), body: "a", headers: { "x-own": "1", "content-type": "text/plain" } },
      { url: world.url("/ok/batch/b?q=%2F"), method: "PUT" },
      { url: world.url("/ok/batch/later"), body: "c", delay: "1h", retries: 9 },
    ]);
    assert.equal(answers.length, 3);
    const [[a], [b]] = await Promise.all(["a", "b"].map((name) => destination.arrived(`/ok/batch/${name}`)));
    assert.equal(a.headers["upstash-message-id"], answers[0].messageId);
    assert.deepEqual([a.body, a.headers["x-own"], a.headers["content-type"]], ["a", "1", "text/plain"]);
    assert.deepEqual([b.method, b.url, b.body], ["PUT", "/ok/batch/b?q=%2F", ""]);
    const later = await client.messages.get(answers[2].messageId);
    assert.deepEqual([later.body, later.maxRetries], ["c", 9]);
  });

  it("makes JSON of each body", async () => {
    const { client, destination } = world;
    const numbers = count(3);
    await client.batchJSON(numbers.map((number) => ({ url: world.url("/ok/batch-json"), body: { number } })));
    const requests = await destination.arrived("/ok/batch-json", 3);
    assert.deepEqual(requests.map(({ body }) => JSON.parse(body).number).sort(), numbers);
    assert(requests.every(({ headers }) => headers["content-type"] === "application/json"));
  });

  it("reaches queues and groups beside urls", async () => {
    const { client, destination } = world;
    const endpoints = ["one", "two"].map((name) => ({ name, url: world.url(`/ok/batch-group/${name}`) }));
    await client.urlGroups.addEndpoints({ name: "of-a-batch", endpoints });
    const answers = await client.batchJSON([
      { url: world.url("/ok/batch-queue"), queueName: "of-a-batch", body: 1 },
      { urlGroup: "of-a-batch", body: 2 },
      { url: world.url("/ok/batch-url"), body: 3 },
    ]);
    const [queued, group, plain] = answers;
    assert.match(queued.messageId, /^msg_/);
    assert.match(plain.messageId, /^msg_/);
    assert.deepEqual(group.map(({ url }) => url).sort(), endpoints.map(({ url }) => url).sort());
    const places = ["/ok/batch-queue", "/ok/batch-group/one", "/ok/batch-group/two", "/ok/batch-url"];
    await Promise.all(places.map((path) => destination.arrived(path)));
    assert.equal((await client.queue({ queueName: "of-a-batch" }).get()).parallelism, 1);
  });

  it("delivers five hundred, each once", async () => {
    const { client, destination } = world;
    const numbers = count(500);
    const answers = await client.batch(numbers.map((number) => ({ url: world.url("/ok/many"), body: `${number}` })));
    assert.equal(new Set(answers.map(({ messageId }) => messageId)).size, 500);
    await destination.arrived("/ok/many", 500);
    await world.pass(1);
    const bodies = destination.at("/ok/many").map(({ body }) => Number(body));
    assert.deepEqual(bodies.sort((one, other) => one - other), numbers);
  });

  it("takes all or nothing", async () => {
    const { client, destination } = world;
    const good = { url: world.url("/ok/all-or-nothing") };
    await refused(client.batch([good, { url: "ftp://example.com" }]), 400);
    await refused(client.batch([good, { ...good, delay: "soon" }]), 400);
    await world.pass(1);
    assert.deepEqual(destination.urls("/ok/all-or-nothing"), []);
  });

  it("knows a message that it has taken before", async () => {
    const message = { url: world.url("/ok/batch-twice"), deduplicationId: "of-a-batch" };
    const [first, second] = await world.client.batch([message, message]);
    assert.equal(second.messageId, first.messageId);
    assert.equal(second.deduplicated, true);
    assert(!first.deduplicated);
  });
});
