// Messages that were there already.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { SIDE_BY_SIDE, World } from "./harness.mjs";

describe("deduplication", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // Publishes these one after the other; their answers, and how many were delivered.
  async function published(path, messages) {
    const answers = [];
    for (const message of messages) answers.push(await world.client.publish({ url: world.url(path), ...message }));
    const expected = answers.filter(({ deduplicated }) => !deduplicated).length;
    await world.destination.arrived(path, expected);
    await world.pass(1);
    assert.equal(world.destination.at(path).length, expected);
    return answers;
  }

  it("takes an id once, whatever is in the message", async () => {
    const [first, second] = await published("/ok/by-id", [
      { deduplicationId: "same", body: "one" },
      { deduplicationId: "same", body: "two" },
      { deduplicationId: "other", body: "one" },
    ]);
    assert.equal(second.messageId, first.messageId);
    assert.equal(second.deduplicated, true);
    assert(!("deduplicated" in first));
  });

  it("answers with 202", async () => {
    const path = `/v2/publish/${world.url("/ok/status")}`;
    const headers = { "Upstash-Deduplication-Id": "status" };
    const first = await world.server.ask("POST", path, { headers, body: "" });
    const second = await world.server.ask("POST", path, { headers, body: "" });
    assert([200, 201].includes(first.status), `${first.status}`);
    assert.equal(second.status, 202);
    assert.equal(second.json.messageId, first.json.messageId);
  });

  it("goes by content when told to", async () => {
    const same = { contentBasedDeduplication: true, body: "same" };
    const answers = await published("/ok/by-content", [
      same,
      same,
      { ...same, body: "other" },
      { ...same, headers: { "content-type": "text/x-other" } },
      { ...same, headers: { "x-forwarded-along": "1" } },
      { body: "same" },
    ]);
    const known = answers.map(({ deduplicated }) => deduplicated ?? false);
    assert.deepEqual(known, [false, true, false, false, false, false]);
    const elsewhere = await world.client.publish({ url: world.url("/ok/elsewhere"), ...same });
    assert(!elsewhere.deduplicated, "another destination is another content");
  });

  it("takes the word of Python for true and false", async () => {
    const path = `/v2/publish/${world.url("/ok/python")}`;
    const said = async (value) => {
      const headers = { "Upstash-Content-Based-Deduplication": value };
      return (await world.server.ask("POST", path, { headers, body: "same" })).status;
    };
    await said("True");
    assert.equal(await said("True"), 202);
    assert.notEqual(await said("False"), 202);
  });

  it("knows a message that was cancelled", async () => {
    const { client } = world;
    const message = { url: world.url("/ok/cancelled"), deduplicationId: "cancelled", delay: "1h" };
    const first = await client.publish(message);
    await client.messages.cancel(first.messageId);
    const second = await client.publish(message);
    assert.deepEqual([second.messageId, second.deduplicated], [first.messageId, true]);
  });

  it("holds in queues and for each endpoint of a group", async () => {
    const { client, destination } = world;
    const queue = client.queue({ queueName: "deduplicated" });
    const message = { url: world.url("/ok/queued"), deduplicationId: "queued" };
    const [first, second] = [await queue.enqueue(message), await queue.enqueue(message)];
    assert.deepEqual([second.messageId, second.deduplicated], [first.messageId, true]);
    const endpoints = ["one", "two"].map((name) => ({ name, url: world.url(`/ok/group/${name}`) }));
    await client.urlGroups.addEndpoints({ name: "deduplicated", endpoints });
    const toGroup = { urlGroup: "deduplicated", deduplicationId: "to-group" };
    const [once, twice] = [await client.publish(toGroup), await client.publish(toGroup)];
    assert.equal(once.length, 2);
    assert(once.every(({ deduplicated }) => !deduplicated));
    assert(twice.every(({ deduplicated }) => deduplicated));
    assert.deepEqual(twice.map(({ messageId }) => messageId), once.map(({ messageId }) => messageId));
    await destination.arrived("/ok/group/", 2);
  });
});
