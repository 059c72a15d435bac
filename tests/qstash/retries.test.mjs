// What happens to messages that are not answered with 2xx.

import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { after, before, describe, it } from "node:test";
import { SIDE_BY_SIDE, World } from "./harness.mjs";

// Before the first retry, unless someone says otherwise: e to the power of 2.5, in milliseconds.
const FIRST_BACKOFF_MS = 12_182;

describe("retries", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // Milliseconds from each answer to the next request.
  function gaps(requests) {
    return requests.slice(1).map((request, index) => request.arrivedAt - requests[index].endedAt);
  }

  it("tries as often as told, waits as the expression says, and gives up", async () => {
    const { client, destination } = world;
    const retryDelay = "300 * (1 + retried)";
    const { messageId } = await client.publish({ url: world.url("/status/500/expression"), retries: 2, retryDelay });
    const requests = await destination.arrived("/status/500/expression", 3);
    assert.deepEqual(requests.map(({ headers }) => headers["upstash-retried"]), ["0", "1", "2"]);
    assert(requests.every(({ headers }) => headers["upstash-message-id"] === messageId));
    const [first, second] = gaps(requests);
    assert(first >= 300 && second >= 600, `${first}, ${second}`);
    const dead = await world.dead(messageId);
    assert.equal(dead.responseStatus, 500);
    assert.equal(dead.responseBody, "status 500");
    assert.equal(dead.retryDelayExpression, retryDelay);
    assert.equal(destination.at("/status/500/expression").length, 3);
    const states = (await world.log(messageId)).map(({ state }) => state);
    assert.deepEqual(states.slice(0, 2), ["CREATED", "ACTIVE"]);
    assert.equal(states.at(-1), "FAILED");
    assert.equal(states.filter((state) => state === "ACTIVE").length, 3);
    assert.equal(states.filter((state) => state === "RETRY").length, 2);
    assert(states.filter((state) => state === "ERROR").length >= 2, states.join());
  });

  it("waits as the table says when nobody says anything", async () => {
    const { messageId } = await world.client.publish({ url: world.url("/status/503/table") });
    await world.destination.arrived("/status/503/table");
    const entry = await world.logged(messageId, "RETRY");
    const wait = entry.nextDeliveryTime - entry.time;
    assert(Math.abs(wait - FIRST_BACKOFF_MS) <= 100, `${wait}`);
    const error = await world.logged(messageId, "ERROR");
    assert.equal(error.responseStatus, 503);
  });

  it("is done with the first 2xx", async () => {
    const given = { url: world.url("/fail-then-ok/2/done"), retries: 5, retryDelay: "100" };
    const { messageId } = await world.client.publish(given);
    await world.logged(messageId, "DELIVERED");
    assert.equal(world.destination.at("/fail-then-ok/2/done").length, 3);
  });

  it("knows the functions of expressions", async () => {
    const retryDelay = "max(100, min(200, pow(2, retried) * 50)) + floor(sqrt(abs(0 - 4))) + ceil(exp(0)) + round(0.4)";
    const { messageId } = await world.client.publish({ url: world.url("/fail-then-ok/1/functions"), retryDelay });
    await world.logged(messageId, "DELIVERED");
    const [gap] = gaps(world.destination.at("/fail-then-ok/1/functions"));
    assert(gap >= 103, `${gap}`);
  });

  it("tries once when there are no retries", async () => {
    const { messageId } = await world.client.publish({ url: world.url("/status/500/once"), retries: 0 });
    await world.dead(messageId);
    assert.equal(world.destination.at("/status/500/once").length, 1);
  });

  for (const status of [302, 404, 429]) {
    it(`takes ${status} for a failure like others`, async () => {
      const given = { url: world.url(`/status/${status}/failure`), retries: 1, retryDelay: "50" };
      const { messageId } = await world.client.publish(given);
      const dead = await world.dead(messageId);
      assert.equal(dead.responseStatus, status);
      assert.equal(world.destination.at(`/status/${status}/failure`).length, 2);
    });
  }

  const inTwoSeconds = () => new Date(Date.now() + 2000).toUTCString();
  const asked = {
    "seconds in Retry-After": { header: "Retry-After", value: () => "1", ms: 1000 },
    // A date has whole seconds, so it may be one sooner.
    "a date in Retry-After": { header: "Retry-After", value: inTwoSeconds, ms: 1000 },
    "a duration in Retry-After": { header: "Retry-After", value: () => "1s200ms", ms: 1200 },
    "X-RateLimit-Reset": { header: "X-RateLimit-Reset", value: () => "1", ms: 1000 },
    "X-RateLimit-Reset-Requests": { header: "X-RateLimit-Reset-Requests", value: () => "1s", ms: 1000 },
    "X-RateLimit-Reset-Tokens": { header: "X-RateLimit-Reset-Tokens", value: () => "1100ms", ms: 1100 },
  };
  for (const [what, { header, value, ms }] of Object.entries(asked)) {
    it(`waits as ${what} asks, though the message says otherwise`, async () => {
      const path = `/asked/${what.replaceAll(" ", "-")}/`;
      world.destination.answer(path, ({ nth }) =>
        nth === 1 ? { status: 429, headers: { [header]: value() } } : { status: 200 },
      );
      await world.client.publish({ url: world.url(path), retryDelay: "1" });
      const [gap] = gaps(await world.destination.arrived(path, 2));
      assert(gap >= ms - 2, `${gap}`);
    });
  }

  it("does not wait for more than a day", async () => {
    world.destination.answer("/asked/too-long", ({ nth }) =>
      nth === 1 ? { status: 429, headers: { "Retry-After": "86401" } } : { status: 200 },
    );
    await world.client.publish({ url: world.url("/asked/too-long"), retryDelay: "100" });
    await world.destination.arrived("/asked/too-long", 2);
  });

  it("does not try again when told so with 489", async () => {
    const { messageId } = await world.client.publish({ url: world.url("/489/never"), retries: 3, retryDelay: "50" });
    const dead = await world.dead(messageId);
    assert.equal(dead.responseStatus, 489);
    await world.pass(1);
    assert.equal(world.destination.at("/489/never").length, 1);
  });

  it("tries again with 489 alone", async () => {
    const given = { url: world.url("/status/489/alone"), retries: 1, retryDelay: "50" };
    const { messageId } = await world.client.publish(given);
    await world.dead(messageId);
    assert.equal(world.destination.at("/status/489/alone").length, 2);
  });

  it("takes no answer in time for a failure", async () => {
    const { messageId } = await world.client.publish({ url: world.url("/hang/timeout"), timeout: 1, retries: 0 });
    const dead = await world.dead(messageId);
    assert("responseStatus" in dead, "Python wants one, though there was no response");
    const entry = await world.logged(messageId, "FAILED");
    assert.equal(typeof entry.error, "string");
    const started = await world.logged(messageId, "ACTIVE");
    assert(entry.time - started.time >= 990, "it waited for the answer");
  });

  it("takes nobody there for a failure", async () => {
    const listener = net.createServer().listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address();
    await new Promise((resolve) => listener.close(resolve));
    const { messageId } = await world.client.publish({ url: `http://127.0.0.1:${port}/`, retries: 0 });
    const dead = await world.dead(messageId);
    assert("responseStatus" in dead);
    assert.equal(typeof (await world.logged(messageId, "FAILED")).error, "string");
  });
});
