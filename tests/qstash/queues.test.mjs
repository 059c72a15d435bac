// Queues: one message after the other, with its retries and callbacks.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BEHIND_MS, count, eventually, refused, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("queues", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("are made, changed, shown and removed", async () => {
    const queue = world.client.queue({ queueName: "managed" });
    await refused(queue.get(), 404);
    const asked = Date.now();
    await queue.upsert({ parallelism: 3 });
    const made = await queue.get();
    assert.deepEqual([made.name, made.parallelism, made.paused, made.lag], ["managed", 3, false, 0]);
    assert(made.createdAt >= asked - BEHIND_MS && made.updatedAt >= made.createdAt);
    await queue.upsert({ parallelism: 1, paused: true });
    const changed = await queue.get();
    assert.deepEqual([changed.parallelism, changed.paused], [1, true]);
    assert.equal(changed.createdAt, made.createdAt);
    assert(changed.updatedAt >= made.updatedAt);
    const names = (await queue.list()).map(({ name }) => name);
    assert(names.includes("managed"));
    await queue.delete();
    await refused(queue.get(), 404);
  });

  it("have names of letters, digits and a few signs", async () => {
    await refused(world.client.queue({ queueName: "no spaces" }).upsert({ parallelism: 1 }), 400);
    await refused(world.client.queue({ queueName: "zero" }).upsert({ parallelism: 0 }), 400);
  });

  it("deliver in order, one at a time, and are made by the first message", async () => {
    const { destination } = world;
    const queue = world.client.queue({ queueName: "ordered" });
    const numbers = count(10);
    for (const number of numbers) await queue.enqueueJSON({ url: world.url("/ok/ordered"), body: { number } });
    const requests = await destination.arrived("/ok/ordered", 10);
    assert.deepEqual(requests.map(({ body }) => JSON.parse(body).number), numbers);
    assert.equal(destination.peak("/ok/ordered"), 1);
    assert.equal((await queue.get()).parallelism, 1);
  });

  it("wait for the retries of the message ahead", async () => {
    const { destination } = world;
    const queue = world.client.queue({ queueName: "retried" });
    await queue.enqueue({ url: world.url("/fail-then-ok/2/retried"), retryDelay: "300" });
    await queue.enqueue({ url: world.url("/ok/retried/next") });
    const [next] = await destination.arrived("/ok/retried/next");
    const ahead = destination.at("/fail-then-ok/2/retried");
    assert.equal(ahead.length, 3);
    assert(next.arrivedAt > ahead[2].endedAt);
  });

  it("go on when the message ahead is dead", async () => {
    const queue = world.client.queue({ queueName: "dead" });
    await queue.enqueue({ url: world.url("/status/500/dead"), retries: 1, retryDelay: "100" });
    await queue.enqueue({ url: world.url("/ok/after-dead") });
    const [next] = await world.destination.arrived("/ok/after-dead");
    assert.equal(world.destination.at("/status/500/dead").length, 2);
    assert(next.arrivedAt > world.destination.at("/status/500/dead")[1].endedAt);
  });

  it("wait for the callbacks of the message ahead", async () => {
    const { destination } = world;
    const queue = world.client.queue({ queueName: "called-back" });
    await queue.enqueue({ url: world.url("/ok/called-back/first"), callback: world.url("/hang/called-back") });
    await queue.enqueue({ url: world.url("/ok/called-back/second") });
    await destination.opened("/hang/called-back", 1);
    await world.pass(1);
    assert.deepEqual(destination.urls("/ok/called-back/second"), []);
    destination.release("/hang/called-back");
    const [second] = await destination.arrived("/ok/called-back/second");
    assert(second.arrivedAt >= destination.at("/hang/called-back")[0].endedAt);
  });

  it("wait for the failure callback of the message ahead", async () => {
    const { destination } = world;
    const queue = world.client.queue({ queueName: "failed-back" });
    const failureCallback = world.url("/hang/failed-back");
    await queue.enqueue({ url: world.url("/status/500/failed-back"), retries: 0, failureCallback });
    await queue.enqueue({ url: world.url("/ok/failed-back/second") });
    await destination.opened("/hang/failed-back", 1);
    await world.pass(1);
    assert.deepEqual(destination.urls("/ok/failed-back/second"), []);
    destination.release("/hang/failed-back");
    await destination.arrived("/ok/failed-back/second");
  });

  it("deliver as many at a time as their parallelism says", async () => {
    const { client, destination } = world;
    const queue = client.queue({ queueName: "parallel" });
    await queue.upsert({ parallelism: 2 });
    await client.batch(count(6).map(() => ({ url: world.url("/hang/parallel"), queueName: "parallel" })));
    await destination.opened("/hang/parallel", 2);
    await world.pass(1);
    for (let answered = 0; answered < 6; answered += destination.release("/hang/parallel", 1)) {
      await destination.opened("/hang/parallel", 1);
    }
    assert.equal(destination.at("/hang/parallel").length, 6);
    assert.equal(destination.peak("/hang/parallel"), 2);
  });

  it("take messages while they are paused, and deliver them afterwards", async () => {
    const { client, destination } = world;
    const queue = client.queue({ queueName: "paused" });
    await queue.upsert({});
    await queue.pause();
    const numbers = count(3);
    for (const number of numbers) await queue.enqueue({ url: world.url("/ok/paused"), body: `${number}` });
    const paused = await queue.get();
    assert.deepEqual([paused.paused, paused.lag], [true, 3]);
    await world.pass(1);
    assert.deepEqual(destination.urls("/ok/paused"), []);
    await queue.resume();
    const requests = await destination.arrived("/ok/paused", 3);
    assert.deepEqual(requests.map(({ body }) => Number(body)), numbers);
    const idle = await eventually(async () => {
      const state = await queue.get();
      return state.lag === 0 && state;
    }, "an empty queue");
    assert.equal(idle.paused, false);
  });

  it("are named by their messages, in logs, too", async () => {
    const { client } = world;
    const queue = client.queue({ queueName: "named" });
    await queue.upsert({ paused: true });
    const { messageId } = await queue.enqueue({ url: world.url("/ok/named") });
    assert.equal((await client.messages.get(messageId)).queueName, "named");
    await queue.resume();
    assert.equal((await world.logged(messageId, "DELIVERED")).queueName, "named");
  });

  it("take a message for a group", async () => {
    const { client, destination } = world;
    const endpoints = ["one", "two"].map((name) => ({ url: world.url(`/ok/queued-group/${name}`) }));
    await client.urlGroups.addEndpoints({ name: "queued", endpoints });
    const answers = await client.queue({ queueName: "for-groups" }).enqueueJSON({ urlGroup: "queued", body: {} });
    assert.equal(answers.length, 2);
    await destination.arrived("/ok/queued-group/", 2);
  });

  it("do not hold up each other", async () => {
    const { client, destination } = world;
    await client.queue({ queueName: "stuck" }).enqueue({ url: world.url("/hang/stuck") });
    await destination.opened("/hang/stuck", 1);
    await client.queue({ queueName: "free" }).enqueue({ url: world.url("/ok/free") });
    await destination.arrived("/ok/free");
  });
});
