// Who may do what.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { refused, sha256, SIDE_BY_SIDE, World } from "./harness.mjs";

// The lines that make a token of its own name.
function token(name, role, namespace) {
  const lines = ["[[tokens]]", `name = "${name}"`, `hash = "sha256:${sha256(name)}"`, `roles = ["${role}"]`];
  if (namespace) lines.push(`namespace = "${namespace}"`);
  return lines.join("\n");
}

const CONFIG = [
  token("the-reader", "read"),
  token("the-publisher", "enqueue"),
  token("of-acme", "admin", "acme"),
  token("of-umbrella", "admin", "umbrella"),
].join("\n");

describe("tokens", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start({ config: CONFIG })));
  after(() => world.stop());

  it("are wanted", async () => {
    await refused(world.server.client("nobody").publish({ url: world.url("/ok/nobody") }), 401);
    await refused(world.server.client("nobody").logs(), 401);
    const { status, json } = await world.server.ask("GET", "/v2/queues", { token: null });
    assert.deepEqual([status, typeof json.error], [401, "string"]);
  });

  it("may stand in the query", async () => {
    const { status } = await world.server.ask("GET", "/v2/queues?qstash_token=the-reader", { token: null });
    assert.equal(status, 200);
  });

  it("that only read see everything and change nothing", async () => {
    const reader = world.server.client("the-reader");
    const { messageId } = await world.client.publish({ url: world.url("/ok/read"), delay: "1h" });
    assert.equal((await reader.messages.get(messageId)).messageId, messageId);
    assert((await reader.logs()).logs.length > 0);
    await reader.queue().list();
    await reader.schedules.list();
    await reader.urlGroups.list();
    await reader.dlq.listMessages();
    await reader.flowControl.getGlobalParallelism();
    const url = world.url("/ok/forbidden");
    await refused(reader.publish({ url }), 403);
    await refused(reader.batch([{ url }]), 403);
    await refused(reader.queue({ queueName: "q" }).enqueue({ url }), 403);
    await refused(reader.queue({ queueName: "q" }).upsert({}), 403);
    await refused(reader.schedules.create({ destination: url, cron: "* * * * *" }), 403);
    await refused(reader.urlGroups.addEndpoints({ name: "g", endpoints: [{ url }] }), 403);
    await refused(reader.messages.cancel(messageId), 403);
    await refused(reader.messages.cancel({ all: true }), 403);
    await refused(reader.dlq.delete({ all: true }), 403);
    await refused(reader.dlq.retry({ all: true }), 403);
    await refused(reader.flowControl.pin("k", { rate: 1 }), 403);
    await refused(reader.flowControl.pause("k"), 403);
    assert.equal((await world.server.ask("POST", "/v2/keys/rotate", { token: "the-reader" })).status, 403);
    assert.deepEqual(world.destination.urls("/ok/forbidden"), []);
  });

  it("that only publish do only that", async () => {
    const publisher = world.server.client("the-publisher");
    await publisher.publish({ url: world.url("/ok/published") });
    await world.destination.arrived("/ok/published");
    await refused(publisher.logs(), 403);
    await refused(publisher.messages.cancel({ all: true }), 403);
    await refused(publisher.queue({ queueName: "q" }).upsert({}), 403);
  });

  it("that only publish do not change what an operator defined", async () => {
    const definition = { rule: "concurrency", limit: 2 };
    await world.server.ask("PUT", "/v1/limits/operated", { headers: { "Content-Type": "application/json" }, body: JSON.stringify(definition) });
    const flowControl = { key: "operated", rate: 100_000 };
    await world.server.client("the-publisher").publish({ url: world.url("/ok/operated"), flowControl });
    const limit = async () => (await world.server.ask("GET", "/v1/limits/operated")).json.definition;
    assert.deepEqual(await limit(), definition);
    await world.client.publish({ url: world.url("/ok/operated"), flowControl });
    assert.equal((await limit()).rule, "fixed_window");
  });

  it("of a namespace are alone with their own things", async () => {
    const [acme, umbrella] = ["of-acme", "of-umbrella"].map((name) => world.server.client(name));
    const flowControl = { key: "shared-name", rate: 1, period: "1h" };
    const publish = (client, path) => client.publish({ url: world.url(path), flowControl, label: "own" });
    for (const name of ["acme", "umbrella"]) await world.trustKeysOf(`of-${name}`, `/ok/namespace/${name}`);
    const mine = await publish(acme, "/ok/namespace/acme");
    await publish(umbrella, "/ok/namespace/umbrella");
    // Each has a key of that name, so neither waits for the other.
    await world.destination.arrived("/ok/namespace/", 2);
    assert.equal((await acme.flowControl.get("shared-name")).rateCount, 1);
    await acme.queue({ queueName: "own" }).upsert({ parallelism: 1 });
    await acme.schedules.create({ destination: world.url("/ok/x"), cron: "0 9 * * *", scheduleId: "own" });
    await acme.urlGroups.addEndpoints({ name: "own", endpoints: [{ url: world.url("/ok/x") }] });
    assert.deepEqual((await acme.queue().list()).map(({ name }) => name), ["own"]);
    assert.deepEqual((await acme.schedules.list()).map(({ scheduleId }) => scheduleId), ["own"]);
    assert.deepEqual((await acme.urlGroups.list()).map(({ name }) => name), ["own"]);
    assert.deepEqual(await umbrella.queue().list(), []);
    assert.deepEqual(await umbrella.schedules.list(), []);
    assert.deepEqual(await umbrella.urlGroups.list(), []);
    await refused(umbrella.messages.get(mine.messageId), 404);
    await refused(umbrella.queue({ queueName: "own" }).get(), 404);
    const { logs } = await umbrella.logs();
    assert(logs.length > 0 && logs.every(({ messageId }) => messageId !== mine.messageId));
  });
});
