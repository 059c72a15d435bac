// Messages that are not wanted any more, in each state that a message may be in.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { count, eventually, refused, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("cancel", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // Checks that a message is gone, and that the log says how.
  async function cancelled(messageId) {
    await world.logged(messageId, "CANCELED");
    const states = (await world.log(messageId)).map(({ state }) => state);
    assert(states.indexOf("CANCEL_REQUESTED") < states.indexOf("CANCELED"), states.join());
    assert(!states.includes("DELIVERED"), states.join());
    const { messages } = await world.client.dlq.listMessages({ filter: { messageId } });
    assert.deepEqual(messages, [], "who is cancelled is not dead");
  }

  it("takes a message that is not due yet", async () => {
    const { client, destination } = world;
    const { messageId } = await client.publish({ url: world.url("/ok/delayed"), delay: "4s" });
    assert.equal((await client.messages.cancel(messageId)).cancelled, 1);
    await cancelled(messageId);
    await world.pass(5);
    assert.deepEqual(destination.urls("/ok/delayed"), []);
  });

  it("takes a message that waits for its key, which holds up nobody then", async () => {
    const { client, destination } = world;
    const flowControl = { key: "waiting", parallelism: 1 };
    const publish = (path) => client.publish({ url: world.url(path), flowControl });
    await publish("/hang/waiting/first");
    await destination.opened("/hang/waiting/first", 1);
    const second = await publish("/ok/waiting/second");
    await publish("/ok/waiting/third");
    assert.equal((await client.messages.cancel(second.messageId)).cancelled, 1);
    assert.equal((await client.flowControl.get("waiting")).waitListSize, 1);
    destination.release("/hang/waiting/first");
    await destination.arrived("/ok/waiting/third");
    await cancelled(second.messageId);
    assert.deepEqual(destination.urls("/ok/waiting/second"), []);
  });

  it("takes a message that waits for its retry", async () => {
    const { client, destination } = world;
    const { messageId } = await client.publish({ url: world.url("/status/500/retry"), retryDelay: "4000" });
    await world.logged(messageId, "RETRY");
    assert.equal((await client.messages.cancel(messageId)).cancelled, 1);
    await cancelled(messageId);
    await world.pass(5);
    assert.equal(destination.at("/status/500/retry").length, 1);
  });

  it("takes a message of a queue, and lets the next go", async () => {
    const { client, destination } = world;
    const queue = client.queue({ queueName: "cancelled" });
    await queue.upsert({ paused: true });
    const first = await queue.enqueue({ url: world.url("/ok/queue/first") });
    await queue.enqueue({ url: world.url("/ok/queue/second") });
    await client.messages.cancel(first.messageId);
    await queue.resume();
    await destination.arrived("/ok/queue/second");
    await cancelled(first.messageId);
    assert.deepEqual(destination.urls("/ok/queue/first"), []);
  });

  it("tries a message in flight not again", async () => {
    const { client, destination } = world;
    const { messageId } = await client.publish({ url: world.url("/hang/flight"), retries: 3, retryDelay: "100" });
    await destination.opened("/hang/flight", 1);
    assert.equal((await client.messages.cancel(messageId)).cancelled, 1);
    destination.release("/hang/flight", 1, { status: 500 });
    await world.pass(1);
    assert.equal(destination.at("/hang/flight").length, 1);
    await cancelled(messageId);
  });

  it("does not find a message that was delivered, is dead, or never was", async () => {
    const { client } = world;
    const delivered = await client.publish({ url: world.url("/ok/over") });
    await world.logged(delivered.messageId, "DELIVERED");
    const dead = await client.publish({ url: world.url("/status/500/over"), retries: 0 });
    await world.dead(dead.messageId);
    for (const id of [delivered.messageId, dead.messageId, "msg_nobody"]) {
      await refused(client.messages.cancel(id), 404);
    }
    assert.equal((await client.messages.cancel([delivered.messageId, dead.messageId, "msg_nobody"])).cancelled, 0);
    assert.equal((await world.log(delivered.messageId)).at(-1).state, "DELIVERED");
  });

  it("takes several by their ids", async () => {
    const { client } = world;
    const delayed = count(6).map(() => ({ url: world.url("/ok/several"), delay: "1h" }));
    const ids = (await client.batch(delayed)).map(({ messageId }) => messageId);
    assert.equal((await client.messages.cancel(ids.slice(0, 2))).cancelled, 2);
    assert.equal((await client.messages.cancel({ messageIds: [ids[2], "msg_nobody"] })).cancelled, 1);
    assert.equal(await client.messages.deleteMany(ids.slice(3, 5)), 2);
    await client.messages.delete(ids[5]);
    for (const id of ids) await cancelled(id);
    for (const id of ids) await refused(client.messages.delete(id), 404);
  });

  it("takes those that a filter finds, and as many as asked for", async () => {
    const { client } = world;
    const publish = async (length, given) => {
      const messages = count(length).map(() => ({ url: world.url("/ok/filter"), delay: "1h", ...given }));
      return (await client.batch(messages)).map(({ messageId }) => messageId);
    };
    const red = await publish(3, { label: "red" });
    const blue = await publish(2, { label: "blue" });
    const keyed = await publish(2, { flowControl: { key: "filtered", rate: 1 } });
    const elsewhere = await publish(2, { url: world.url("/ok/elsewhere?x=1") });
    const queued = await publish(1, { queueName: "filtered" });
    const { messages } = client;
    assert.equal((await messages.cancel({ filter: { label: "red" }, count: 1 })).cancelled, 1);
    assert.equal((await messages.cancel({ filter: { label: "red" } })).cancelled, 2);
    assert.equal((await messages.cancel({ filter: { flowControlKey: "filtered" } })).cancelled, 2);
    assert.equal((await messages.cancel({ filter: { url: world.url("/ok/elsewhere?x=1") } })).cancelled, 2);
    assert.equal((await messages.cancel({ filter: { label: "blue", queueName: "filtered" } })).cancelled, 0);
    assert.equal((await messages.cancel({ filter: { queueName: ["filtered", "other"] } })).cancelled, 1);
    for (const id of [...red, ...keyed, ...elsewhere, ...queued]) await cancelled(id);
    for (const id of blue) assert.equal((await messages.get(id)).messageId, id);
  });

  it("takes nothing for a filter that it does not know", async () => {
    const { client } = world;
    const { messageId } = await client.publish({ url: world.url("/ok/misspelt"), delay: "1h" });
    await refused(client.messages.cancel({ filter: { labeel: "x" } }), 400);
    assert.equal((await client.messages.get(messageId)).messageId, messageId);
  });
});

describe("cancel all", () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("takes every message there is, more than a hundred, too", async () => {
    const { client, destination } = world;
    const delayed = count(250).map(() => ({ url: world.url("/ok/all"), delay: "1h" }));
    await client.batch(delayed);
    assert.equal((await client.messages.cancel({ all: true })).cancelled, 250);
    await client.batch(delayed.slice(0, 3));
    assert.equal(await client.messages.deleteAll(), 3);
    await client.publish(delayed[0]);
    const { json } = await world.server.ask("DELETE", "/v2/messages");
    assert.equal(json.cancelled, 1);
    await eventually(async () => (await client.messages.cancel({ all: true })).cancelled === 0, "nothing left");
    assert.deepEqual(destination.urls("/"), []);
  });
});
