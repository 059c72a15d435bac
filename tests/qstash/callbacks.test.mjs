// Who is told of answers, and of messages that died.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { base64, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("callbacks", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("tells of the answer and of the message", async () => {
    const { client, destination } = world;
    const url = world.url("/ok/told?a=1");
    const headers = { "x-own": "mine", "content-type": "text/plain" };
    const callback = world.url("/ok/callback/told?id=7");
    const { messageId } = await client.publish({ url, body: "söurce", method: "PUT", headers, callback, retries: 4 });
    const [request] = await destination.arrived("/ok/callback/told?id=7");
    assert.equal(request.method, "POST");
    assert.match(request.headers["content-type"], /^application\/json/);
    assert.notEqual(request.headers["upstash-message-id"], messageId, "a callback is a message of its own");
    const told = JSON.parse(request.body);
    assert.equal(told.status, 200);
    assert.equal(told.body, base64("fine"));
    assert.deepEqual(told.header["X-Answer"], ["yes"]);
    assert.equal(told.retried, 0);
    assert.equal(told.maxRetries, 4);
    assert.equal(told.sourceMessageId, messageId);
    assert.equal(told.url, url);
    assert.equal(told.method, "PUT");
    assert.equal(told.sourceBody, base64("söurce"));
    assert.deepEqual(told.sourceHeader["X-Own"], ["mine"]);
    assert.equal(told.callerIP, "127.0.0.1");
    assert.equal(typeof told.createdAt, "number");
    assert.equal(typeof told.notBefore, "number");
    assert(!("dlqId" in told) && !("topicName" in told) && !("scheduleId" in told));
    await world.logged(request.headers["upstash-message-id"], "DELIVERED");
  });

  it("tells of every attempt", async () => {
    const callback = world.url("/ok/callback/each");
    await world.client.publish({ url: world.url("/fail-then-ok/2/each"), retryDelay: "100", callback });
    const requests = await world.destination.arrived("/ok/callback/each", 3);
    const told = requests.map(({ body }) => JSON.parse(body)).sort((one, other) => one.retried - other.retried);
    assert.deepEqual(told.map(({ status, retried }) => [status, retried]), [[500, 0], [500, 1], [200, 2]]);
  });

  it("tells once of a message that died, and where it lies", async () => {
    const { client, destination } = world;
    const failureCallback = world.url("/ok/failed/once");
    const given = { url: world.url("/status/500/once"), body: "b", retries: 1, retryDelay: "50", failureCallback };
    const { messageId } = await client.publish(given);
    const [request] = await destination.arrived("/ok/failed/once");
    const told = JSON.parse(request.body);
    const dead = await world.dead(messageId);
    assert.equal(told.dlqId, dead.dlqId);
    assert.equal(told.sourceMessageId, messageId);
    assert.deepEqual([told.status, told.retried, told.maxRetries], [500, 1, 1]);
    assert.equal(told.sourceBody, base64("b"));
    await world.pass(1);
    assert.equal(destination.at("/ok/failed/once").length, 1);
  });

  it("does not tell of a death that did not come", async () => {
    const failureCallback = world.url("/ok/failed/never");
    const given = { url: world.url("/fail-then-ok/1/alive"), retryDelay: "50", failureCallback };
    const { messageId } = await world.client.publish(given);
    await world.logged(messageId, "DELIVERED");
    await world.pass(1);
    assert.deepEqual(world.destination.urls("/ok/failed/never"), []);
  });

  it("sends callbacks as their own headers say", async () => {
    const headers = {
      "Upstash-Callback-Method": "PUT",
      "Upstash-Callback-Forward-X-For-Callback": "one",
      "Upstash-Callback-Retries": "2",
      "Upstash-Callback-Retry-Delay": "100",
      "Upstash-Failure-Callback-Forward-X-For-Failure": "two",
    };
    const [callback, failureCallback] = ["/fail-then-ok/1/own", "/ok/failed/own"].map((path) => world.url(path));
    await world.client.publish({ url: world.url("/status/500/own"), retries: 0, callback, failureCallback, headers });
    const requests = await world.destination.arrived("/fail-then-ok/1/own", 2);
    for (const { method, headers } of requests) {
      assert.deepEqual([method, headers["x-for-callback"], headers["x-for-failure"]], ["PUT", "one", undefined]);
    }
    const [failed] = await world.destination.arrived("/ok/failed/own");
    assert.deepEqual([failed.headers["x-for-failure"], failed.headers["x-for-callback"]], ["two", undefined]);
  });

  it("shows callbacks and their headers with a message", async () => {
    const headers = { "Upstash-Callback-Forward-X-A": "1", "Upstash-Failure-Callback-Forward-X-B": "2" };
    const [callback, failureCallback] = ["/ok/c", "/ok/f"].map((path) => world.url(path));
    const given = { url: world.url("/ok/shown"), callback, failureCallback, headers, delay: "1h" };
    const { messageId } = await world.client.publish(given);
    const message = await world.client.messages.get(messageId);
    assert.equal(message.callback, callback);
    assert.equal(message.failureCallback, failureCallback);
    assert.deepEqual(message.callbackHeader["X-A"], ["1"]);
    assert.deepEqual(message.failureCallbackHeader["X-B"], ["2"]);
  });

  it("names the group and the endpoint", async () => {
    const { client, destination } = world;
    const endpoints = [{ name: "east", url: world.url("/ok/of-group") }];
    await client.urlGroups.addEndpoints({ name: "told-of", endpoints });
    await client.publish({ urlGroup: "told-of", callback: world.url("/ok/callback/group") });
    const [request] = await destination.arrived("/ok/callback/group");
    const told = JSON.parse(request.body);
    assert.deepEqual([told.topicName, told.endpointName], ["told-of", "east"]);
  });

  it("owes nothing at the key of its message", async () => {
    const flowControl = { key: "told", parallelism: 1, rate: 1, period: "1h" };
    await world.client.publish({ url: world.url("/ok/keyed"), flowControl, callback: world.url("/ok/callback/keyed") });
    await world.destination.arrived("/ok/callback/keyed");
    assert.equal((await world.client.flowControl.get("told")).rateCount, 1);
  });

  it("goes by a key of its own where its headers say so", async () => {
    const headers = {
      "Upstash-Callback-Flow-Control-Key": "of-callbacks",
      "Upstash-Callback-Flow-Control-Value": "rate=1, period=1h",
    };
    const message = { url: world.url("/ok/many-told"), headers, callback: world.url("/ok/callback/by-key") };
    await world.client.batch([message, message]);
    await world.destination.arrived("/ok/many-told", 2);
    await world.destination.arrived("/ok/callback/by-key");
    await world.pass(1);
    assert.equal(world.destination.at("/ok/callback/by-key").length, 1);
  });
});
