// Servers that end, politely or not, amidst their work.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { count, World } from "./harness.mjs";

// How long what was in flight may be held for a server that is gone, and some more.
const AFTER_CRASH_MS = 60_000;

// Runs a scenario in a world of its own.
function alone(name, scenario) {
  it(name, async () => {
    const world = await World.start();
    try {
      await scenario(world);
    } catch (error) {
      await world.abandon();
      throw error;
    }
    await world.stop();
  });
}

// The ids of messages that were answered with 200.
function delivered(destination, path) {
  const answered = destination.at(path).filter((request) => request.answered === 200);
  return new Set(answered.map(({ headers }) => headers["upstash-message-id"]));
}

describe("restarts", { concurrency: 5 }, () => {
  alone("keep the rate of a window that is open", async (world) => {
    const { destination } = world;
    const flowControl = { key: "kept", rate: 5, period: 3 };
    const since = performance.now();
    const answers = await world.client.batch(count(15).map(() => ({ url: world.url("/ok/kept"), flowControl })));
    await destination.arrived("/ok/kept", 5);
    await world.server.stop();
    await world.startAgain();
    await destination.arrived("/ok/kept", 10);
    await world.server.kill();
    await world.startAgain();
    await destination.until(() => delivered(destination, "/ok/kept").size === 15, "all", AFTER_CRASH_MS);
    const ids = answers.map(({ messageId }) => messageId);
    await world.assertRate(ids, { rate: 5, periodMs: 3000, since });
  });

  alone("free the slots of what was in flight, and exceed no parallelism", async (world) => {
    const { destination } = world;
    const flowControl = { key: "freed", parallelism: 3 };
    const answers = await world.client.batch(count(8).map(() => ({ url: world.url("/hang/freed"), flowControl })));
    await destination.opened("/hang/freed", 3);
    await world.server.kill();
    await destination.until(() => destination.open("/hang/freed").length === 0, "the connections to break");
    await world.startAgain();
    await destination.opened("/hang/freed", 3, AFTER_CRASH_MS);
    await world.pass(1);
    assert.equal(destination.open("/hang/freed").length, 3);
    const key = await world.client.flowControl.get("freed");
    assert.deepEqual([key.parallelismCount, key.parallelismMax, key.waitListSize], [3, 3, 5]);
    while (delivered(destination, "/hang/freed").size < 8) {
      await destination.opened("/hang/freed", 1);
      destination.release("/hang/freed", 1);
    }
    assert.deepEqual([...delivered(destination, "/hang/freed")].sort(), answers.map(({ messageId }) => messageId).sort());
    assert.equal(destination.peak("/hang/freed"), 3);
  });

  alone("lose nothing that was accepted", async (world) => {
    const { destination } = world;
    const accepted = [];
    let isKilled = false;
    const client = world.server.client(undefined, { retry: false });
    const publisher = async (number) => {
      for (let nth = 0; !isKilled; nth += 1) {
        const flowControl = { key: `${number}`, rate: 50 };
        const given = { url: world.url("/ok/lost"), body: `${number} ${nth}`, flowControl };
        try {
          accepted.push((await client.publish(given)).messageId);
        } catch (error) {
          if (!isKilled) throw error;
        }
      }
    };
    const publishers = count(4).map(publisher);
    await destination.arrived("/ok/lost", 40);
    isKilled = true;
    await world.server.kill();
    await Promise.all(publishers);
    await world.startAgain();
    await destination.until(() => {
      const there = delivered(destination, "/ok/lost");
      return accepted.every((id) => there.has(id));
    }, "all that was accepted", AFTER_CRASH_MS);
  });

  alone("keep all that was set", async (world) => {
    const { destination } = world;
    const { client } = world;
    await client.queue({ queueName: "kept" }).upsert({ parallelism: 4, paused: true });
    await client.queue({ queueName: "kept" }).enqueue({ url: world.url("/ok/queued") });
    await client.urlGroups.addEndpoints({ name: "kept", endpoints: [{ name: "e", url: world.url("/ok/group") }] });
    const daily = { destination: world.url("/ok/x"), cron: "0 9 * * *", scheduleId: "kept", body: "b", label: "l" };
    await client.schedules.create(daily);
    await client.schedules.pause({ schedule: "kept" });
    await client.flowControl.pin("kept", { parallelism: 2, rate: 9, period: 60 });
    await client.flowControl.pause("kept");
    const delayed = await client.publish({ url: world.url("/ok/delayed"), delay: "1h", deduplicationId: "kept" });
    await client.publish({ url: world.url("/ok/soon"), delay: "2s" });
    const failed = await client.publish({ url: world.url("/status/500/dead"), retries: 0 });
    const dead = await world.dead(failed.messageId);
    await world.logged(failed.messageId, "FAILED");
    const look = async (client) => ({
      queues: await client.queue().list(),
      groups: await client.urlGroups.list(),
      schedules: await client.schedules.list(),
      key: await client.flowControl.get("kept"),
      dead: await client.dlq.listMessages(),
      message: await client.messages.get(delayed.messageId),
      logs: await client.logs({ messageIds: [failed.messageId] }),
    });
    const before = await look(client);
    await world.server.kill();
    await world.startAgain();
    assert.deepEqual(await look(world.client), before);
    const again = await world.client.publish({ url: world.url("/ok/delayed"), deduplicationId: "kept" });
    assert.deepEqual([again.messageId, again.deduplicated], [delayed.messageId, true]);
    await destination.arrived("/ok/soon");
    await world.client.queue({ queueName: "kept" }).resume();
    await destination.arrived("/ok/queued");
    assert.equal((await world.client.dlq.retry(dead.dlqId)).responses.length, 1);
  });

  alone("keep the order of a queue", async (world) => {
    const { destination } = world;
    const numbers = count(12);
    const queue = world.client.queue({ queueName: "ordered" });
    for (const number of numbers) await queue.enqueue({ url: world.url("/ordered"), body: `${number}` });
    await destination.arrived("/ordered", 4);
    await world.server.kill();
    await world.startAgain();
    const isLastThere = () => destination.at("/ordered").some(({ body }) => body === "11");
    await destination.until(isLastThere, "the last", AFTER_CRASH_MS);
    const bodies = destination.at("/ordered").map(({ body }) => Number(body));
    // What was in flight may come twice, but nothing overtakes.
    assert.deepEqual([...new Set(bodies)], numbers);
    assert.deepEqual(bodies, [...bodies].sort((one, other) => one - other));
    assert.equal(destination.peak("/ordered"), 1);
  });
});
