// Groups of urls: a message for each.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BEHIND_MS, refused, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("groups", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  function endpoint(name, path = name) {
    return { name, url: world.url(`/ok/${path}`) };
  }

  it("are made, shown and removed", async () => {
    const { urlGroups } = world.client;
    await refused(urlGroups.get("managed"), 404);
    const asked = Date.now();
    await urlGroups.addEndpoints({ name: "managed", endpoints: [endpoint("a"), { url: world.url("/ok/nameless") }] });
    const group = await urlGroups.get("managed");
    assert.equal(group.name, "managed");
    assert(group.createdAt >= asked - BEHIND_MS && group.updatedAt >= group.createdAt);
    assert.deepEqual(group.endpoints, [endpoint("a"), { url: world.url("/ok/nameless") }]);
    assert((await urlGroups.list()).some(({ name }) => name === "managed"));
    await urlGroups.delete("managed");
    await refused(urlGroups.get("managed"), 404);
    await urlGroups.delete("managed");
  });

  it("change an endpoint that has the name or the url already", async () => {
    const { topics } = world.client;
    await topics.addEndpoints({ name: "changed", endpoints: [endpoint("a"), endpoint("b")] });
    await topics.addEndpoints({ name: "changed", endpoints: [endpoint("a", "elsewhere"), endpoint("c", "b")] });
    const { endpoints } = await topics.get("changed");
    assert.deepEqual(endpoints, [endpoint("a", "elsewhere"), endpoint("c", "b")]);
  });

  it("lose endpoints by name or by url, and are gone with the last", async () => {
    const { urlGroups } = world.client;
    const name = "shrinking";
    await urlGroups.addEndpoints({ name, endpoints: [endpoint("a"), endpoint("b"), endpoint("c")] });
    await urlGroups.removeEndpoints({ name, endpoints: [{ name: "a" }] });
    await urlGroups.removeEndpoints({ name, endpoints: [{ url: world.url("/ok/b") }] });
    assert.deepEqual((await urlGroups.get(name)).endpoints, [endpoint("c")]);
    await urlGroups.removeEndpoints({ name, endpoints: [{ name: "c" }] });
    await refused(urlGroups.get(name), 404);
  });

  it("get a message at each endpoint", async () => {
    const { client, destination } = world;
    const endpoints = [endpoint("north", "spread/north"), endpoint("south", "spread/south")];
    await client.urlGroups.addEndpoints({ name: "spread", endpoints });
    const answers = await client.publishJSON({ urlGroup: "spread", body: { to: "all" } });
    assert.deepEqual(answers.map(({ url }) => url), endpoints.map(({ url }) => url));
    for (const [index, { name }] of endpoints.entries()) {
      const [request] = await destination.arrived(`/ok/spread/${name}`);
      assert.equal(request.headers["upstash-message-id"], answers[index].messageId);
      assert.equal(request.headers["upstash-topic-name"], "spread");
      assert.deepEqual(JSON.parse(request.body), { to: "all" });
    }
    const byTopic = await client.publish({ topic: "spread" });
    assert.equal(byTopic.length, 2);
  });

  it("fail at one endpoint without the others", async () => {
    const { client } = world;
    const endpoints = [{ url: world.url("/status/500/apart") }, endpoint("good", "apart")];
    await client.urlGroups.addEndpoints({ name: "apart", endpoints });
    const [bad, good] = await client.publish({ urlGroup: "apart", retries: 0 });
    await world.logged(good.messageId, "DELIVERED");
    const dead = await world.dead(bad.messageId);
    assert.equal(dead.topicName, "apart");
    assert.equal(dead.urlGroup, "apart");
  });

  it("are named by their messages", async () => {
    const { client } = world;
    await client.urlGroups.addEndpoints({ name: "named", endpoints: [endpoint("the-one")] });
    const [{ messageId }] = await client.publish({ urlGroup: "named", delay: "1h" });
    const message = await client.messages.get(messageId);
    assert.deepEqual([message.topicName, message.endpointName, message.urlGroup], ["named", "the-one", "named"]);
    assert.equal(message.url, world.url("/ok/the-one"));
  });

  it("say what goes with their messages by default", async () => {
    const { client, server } = world;
    await client.urlGroups.addEndpoints({ name: "defaults", endpoints: [endpoint("d")] });
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ headers: { "Upstash-Retries": "5" } });
    const answer = await server.ask("PATCH", "/v2/topics/defaults", { headers, body });
    assert(answer.status < 300, answer.text);
    const retries = async (given) => {
      const [{ messageId }] = await client.publish({ urlGroup: "defaults", delay: "1h", ...given });
      return (await client.messages.get(messageId)).maxRetries;
    };
    assert.equal(await retries({}), 5);
    assert.equal(await retries({ retries: 1 }), 1);
  });

  it("refuse endpoints that are no urls, and messages when they are unknown", async () => {
    const endpoints = [{ url: "ftp://example.com" }];
    await refused(world.client.urlGroups.addEndpoints({ name: "wrong", endpoints }), 400);
    await assert.rejects(world.client.publish({ urlGroup: "nobody-knows-it" }), ({ status }) => {
      assert(status === 400 || status === 404, `${status}`);
      return true;
    });
  });
});
