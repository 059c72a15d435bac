// Publishing: what is answered, what the destination gets, and what can be read of a message meanwhile.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BEHIND_MS, refused, sdk, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("publish", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("delivers a body of JSON with the headers that QStash sends", async () => {
    const { client, destination } = world;
    const answer = await client.publishJSON({ url: world.url("/ok/json"), body: { hello: "wörld" } });
    assert.match(answer.messageId, /^msg_/);
    assert(!("deduplicated" in answer));
    const [request] = await destination.arrived("/ok/json");
    assert.equal(request.method, "POST");
    assert.deepEqual(JSON.parse(request.body), { hello: "wörld" });
    assert.equal(request.headers["content-type"], "application/json");
    assert.match(request.headers["user-agent"], /^Upstash-QStash/);
    assert.equal(request.headers["upstash-message-id"], answer.messageId);
    assert.equal(request.headers["upstash-retried"], "0");
    assert.equal(request.headers["upstash-caller-ip"], "127.0.0.1");
    assert(request.headers["upstash-signature"]);
  });

  it("sends on nothing that was meant for the server", async () => {
    const { client, destination } = world;
    const given = { retries: 1, retryDelay: "1000", timeout: 5, label: "l", deduplicationId: "private" };
    await client.publish({ url: world.url("/ok/private"), body: "x", ...given });
    const [request] = await destination.arrived("/ok/private");
    const known = ["message-id", "retried", "signature", "caller-ip", "region"].map((name) => `upstash-${name}`);
    const foreign = Object.keys(request.headers).filter(
      (name) => (/^upstash-|^tollgate-/.test(name) && !known.includes(name)) || name === "authorization",
    );
    assert.deepEqual(foreign, []);
  });

  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
    it(`delivers with ${method}`, async () => {
      await world.client.publish({ url: world.url(`/ok/method/${method}`), method });
      const [request] = await world.destination.arrived(`/ok/method/${method}`);
      assert.equal(request.method, method);
    });
  }

  it("forwards headers, those of the client, and the content type as it is", async () => {
    const client = world.server.client(undefined, { headers: { "X-Of-Client": "always" } });
    const headers = { "X-Plain": "one", "Upstash-Forward-X-Said": "two", "Content-Type": "text/x-own; charset=utf-8" };
    await client.publish({ url: world.url("/ok/headers"), body: "text", headers });
    const [request] = await world.destination.arrived("/ok/headers");
    assert.equal(request.headers["x-plain"], "one");
    assert.equal(request.headers["x-said"], "two");
    assert.equal(request.headers["x-of-client"], "always");
    assert.equal(request.headers["content-type"], "text/x-own; charset=utf-8");
    assert.equal(request.body, "text");
  });

  it("forwards every header that came when told to", async () => {
    const path = `/v2/publish/${world.url("/ok/all-headers")}`;
    const headers = { "Upstash-Header-Forward": "true", "X-Hook-Id": "7", "Content-Type": "application/json" };
    const answer = await world.server.ask("POST", path, { headers, body: "{}" });
    assert(answer.status === 200 || answer.status === 201, answer.text);
    const [request] = await world.destination.arrived("/ok/all-headers");
    assert.equal(request.headers["x-hook-id"], "7");
    assert.equal(request.headers.authorization, undefined, "the token stays here");
  });

  it("delivers bytes that are no text, and shows them in base64", async () => {
    const { client, destination } = world;
    const body = new Uint8Array([0, 255, 128, 10, 13, 195, 40]);
    await client.publish({ url: world.url("/ok/bytes"), body });
    const [request] = await destination.arrived("/ok/bytes");
    assert.deepEqual(new Uint8Array(request.bytes), body);
    const { messageId } = await client.publish({ url: world.url("/ok/bytes-later"), body, delay: "1h" });
    const message = await client.messages.get(messageId);
    assert.equal(message.bodyBase64, Buffer.from(body).toString("base64"));
    assert(!("body" in message));
  });

  it("delivers no body where there is none", async () => {
    await world.client.publish({ url: world.url("/ok/nothing") });
    const [request] = await world.destination.arrived("/ok/nothing");
    assert.equal(request.bytes.length, 0);
  });

  it("shows a message that waits, with all that was said", async () => {
    const { client } = world;
    const said = {
      url: world.url("/ok/shown?a=1"),
      body: "the body",
      method: "PUT",
      headers: { "x-own": "mine", "content-type": "text/plain" },
      delay: "1h",
      retries: 7,
      retryDelay: "1000 * (1 + retried)",
      timeout: "9s",
      callback: world.url("/ok/callback"),
      failureCallback: world.url("/ok/failure"),
      flowControl: { key: "shown", parallelism: 3, rate: 5, period: "2m" },
      label: ["first", "second"],
    };
    const asked = Date.now();
    const { messageId } = await client.publish(said);
    const message = await client.messages.get(messageId);
    assert.equal(message.messageId, messageId);
    assert.equal(message.url, said.url);
    assert.equal(message.method, "PUT");
    assert.equal(message.body, "the body");
    assert.deepEqual(message.header, { "Content-Type": ["text/plain"], "X-Own": ["mine"] });
    assert.equal(message.maxRetries, 7);
    assert.equal(message.retryDelayExpression, said.retryDelay);
    assert.equal(message.callback, said.callback);
    assert.equal(message.failureCallback, said.failureCallback);
    assert.equal(message.callerIP, "127.0.0.1");
    assert.equal(message.flowControlKey, "shown");
    assert.equal(message.parallelism, 3);
    assert.equal(message.rate, 5);
    assert.equal(message.ratePerSecond, 5);
    assert.equal(message.period, 120);
    assert.equal(message.label, "first");
    assert.deepEqual(message.labels, ["first", "second"]);
    assert(message.createdAt >= asked - BEHIND_MS && message.createdAt <= Date.now() + 1, "created now");
    assert(Math.abs(message.notBefore - message.createdAt - 3_600_000) <= 1000, "in an hour");
    for (const absent of ["topicName", "endpointName", "queueName", "scheduleId", "bodyBase64"]) {
      assert(!(absent in message), absent);
    }
  });

  it("shows of a plain message what there is, and nothing empty", async () => {
    const { client } = world;
    const { messageId } = await client.publish({ url: world.url("/ok/plain"), delay: "1h" });
    const message = await client.messages.get(messageId);
    assert.equal(message.method, "POST");
    assert.equal(message.maxRetries, 3);
    for (const [name, value] of Object.entries(message)) {
      // These the SDK makes itself, whatever it was told.
      if (name === "urlGroup" || name === "ratePerSecond") continue;
      assert(value !== null && value !== "", `${name} is ${JSON.stringify(value)}`);
    }
    assert(!("flowControlKey" in message));
  });

  it("reports a period of a second with a parallelism alone", async () => {
    const { client } = world;
    const flowControl = { key: "alone", parallelism: 2 };
    const { messageId } = await client.publish({ url: world.url("/ok/alone"), delay: "1h", flowControl });
    const message = await client.messages.get(messageId);
    assert.equal(message.parallelism, 2);
    assert.equal(message.period, 1);
    assert(!("rate" in message));
  });

  it("takes settings from the query, and keeps them from the destination", async () => {
    const path = `/v2/publish/${world.url("/ok/by-query")}?upstash-retries=2&a=1&upstash-delay=1h`;
    const answer = await world.server.ask("POST", path, { body: "" });
    const message = await world.client.messages.get(answer.json.messageId);
    assert.equal(message.url, world.url("/ok/by-query?a=1"));
    assert.equal(message.maxRetries, 2);
    assert(message.notBefore - message.createdAt > 3_000_000);
  });

  it("sends to an API of a model with the token of its provider", async () => {
    const provider = sdk.custom({ baseUrl: world.url("/ok/model"), token: "of-the-provider" });
    const callback = world.url("/ok/model-callback");
    await world.client.publishJSON({ api: { name: "llm", provider }, body: { model: "m" }, callback });
    const [request] = await world.destination.arrived("/ok/model/v1/chat/completions");
    assert.equal(request.headers.authorization, "Bearer of-the-provider");
    await world.destination.arrived("/ok/model-callback");
  });

  it("does not know a message that never was", async () => {
    await refused(world.client.messages.get("msg_nobody"), 404);
    await refused(world.client.messages.get("msg_999999999"), 404);
  });

  const wrong = {
    "a delay": { delay: "soon" },
    "a timeout": { timeout: "a while" },
    "a count of retries": { retries: -1 },
    "an expression": { retryDelay: "import(1)" },
    "a variable": { retryDelay: "attempts * 1000" },
    "a callback": { callback: "nowhere" },
    "a method": { method: "BREW" },
    "what to redact": { headers: { "Upstash-Redact-Fields": "everything" } },
  };
  for (const [what, given] of Object.entries(wrong)) {
    it(`refuses ${what} that is none`, async () => {
      await refused(world.client.publish({ url: world.url("/ok/wrong"), ...given }), 400);
    });
  }
});
