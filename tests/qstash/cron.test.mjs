// Schedules that tick. The shortest period that cron knows is a minute, so this waits for the next.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eventually, World } from "./harness.mjs";

const EACH_MINUTE = "* * * * *";
// Ticks nearer than this may come while the schedules are made.
const TOO_NEAR_MS = 5000;

describe("cron", () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // Waits for something at the destination, longer than usual.
  async function ticked(path, count) {
    await eventually(() => world.destination.at(path).length >= count, `a tick at ${path}`, 80_000);
    return world.destination.at(path);
  }

  it("ticks at the minute, but not what is paused, gone or overwritten", async () => {
    const { client } = world;
    if (60_000 - (Date.now() % 60_000) < TOO_NEAR_MS) await world.pass(TOO_NEAR_MS / 1000);
    const due = Math.ceil(Date.now() / 60_000) * 60_000;
    const create = (path, given = {}) =>
      client.schedules.create({ destination: world.url(path), cron: EACH_MINUTE, ...given });
    const zoned = `CRON_TZ=Asia/Kathmandu ${EACH_MINUTE}`;
    const plain = await create("/ok/plain?a=%2F", { body: "tick", headers: { "x-own": "mine" }, label: "ticks" });
    await create("/ok/zoned", { cron: zoned, queueName: "of-ticks", flowControl: { key: "of-ticks", rate: 1 } });
    await create("/ok/delayed", { delay: 2 });
    await create("/ok/told", { callback: world.url("/ok/callback") });
    const failing = await create("/status/500/failing", { retries: 0 });
    const paused = await create("/ok/paused");
    await client.schedules.pause({ schedule: paused.scheduleId });
    const gone = await create("/ok/gone");
    await client.schedules.delete(gone.scheduleId);
    await create("/ok/overwritten/before", { scheduleId: "overwritten" });
    await create("/ok/overwritten/after", { scheduleId: "overwritten" });
    const endpoints = ["one", "two"].map((name) => ({ url: world.url(`/ok/group/${name}`) }));
    await client.urlGroups.addEndpoints({ name: "ticking", endpoints });
    await client.schedules.create({ destination: "ticking", cron: EACH_MINUTE });

    const [tick] = await ticked("/ok/plain", 1);
    assert(tick.wallMs >= due - 1, "not before the minute");
    assert.equal(tick.url, "/ok/plain?a=%2F");
    assert.equal(tick.body, "tick");
    assert.equal(tick.headers["x-own"], "mine");
    assert.equal(tick.headers["upstash-schedule-id"], plain.scheduleId);
    await ticked("/ok/zoned", 1);
    await ticked("/ok/overwritten/after", 1);
    await ticked("/ok/group/", 2);
    const [callback] = await ticked("/ok/callback", 1);
    const [told] = world.destination.at("/ok/told");
    assert.equal(JSON.parse(callback.body).scheduleId, told.headers["upstash-schedule-id"]);
    const [delayed] = await ticked("/ok/delayed", 1);
    assert(delayed.wallMs >= due + 2000 - 1, "a delay counts from the tick");
    for (const path of ["/ok/paused", "/ok/gone", "/ok/overwritten/before"]) {
      assert.deepEqual(world.destination.urls(path), [], path);
    }

    const schedule = await eventually(async () => {
      const state = await client.schedules.get(plain.scheduleId);
      return Object.values(state.lastScheduleStates ?? {})[0] === "SUCCESS" && state;
    }, "a tick that succeeded");
    assert.equal(schedule.lastScheduleTime, due);
    assert.equal(schedule.nextScheduleTime, due + 60_000);
    assert.deepEqual(Object.keys(schedule.lastScheduleStates), [tick.headers["upstash-message-id"]]);
    await eventually(async () => {
      const { lastScheduleStates } = await client.schedules.get(failing.scheduleId);
      return Object.values(lastScheduleStates ?? {})[0] === "FAIL";
    }, "a tick that failed");
    const { logs } = await client.logs({ filter: { scheduleId: plain.scheduleId, state: "DELIVERED" } });
    assert.deepEqual(logs.map(({ messageId }) => messageId), [tick.headers["upstash-message-id"]]);
    const { messages } = await client.dlq.listMessages({ filter: { scheduleId: failing.scheduleId } });
    assert.equal(messages.length, 1);
  });
});
