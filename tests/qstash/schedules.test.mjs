// Schedules as they are kept; that they tick is in cron.test.mjs.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BEHIND_MS, refused, SIDE_BY_SIDE, World } from "./harness.mjs";

const DAILY = "0 9 * * *";

describe("schedules", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("show all that was said", async () => {
    const { schedules } = world.client;
    const said = {
      destination: world.url("/ok/all?a=1"),
      cron: DAILY,
      body: "the body",
      method: "PUT",
      headers: { "content-type": "text/plain", "x-own": "mine" },
      delay: 30,
      retries: 5,
      retryDelay: "1000",
      timeout: 20,
      callback: world.url("/ok/callback"),
      failureCallback: world.url("/ok/failure"),
      queueName: "of-schedules",
      flowControl: { key: "of-schedules", rate: 2, parallelism: 1, period: 60 },
      label: "nightly",
    };
    const asked = Date.now();
    const { scheduleId } = await schedules.create(said);
    assert.match(scheduleId, /^scd_/);
    const schedule = await schedules.get(scheduleId);
    const expected = {
      scheduleId,
      destination: said.destination,
      cron: DAILY,
      body: "the body",
      method: "PUT",
      delay: 30,
      retries: 5,
      retryDelayExpression: "1000",
      callback: said.callback,
      failureCallback: said.failureCallback,
      queueName: "of-schedules",
      flowControlKey: "of-schedules",
      rate: 2,
      ratePerSecond: 2,
      parallelism: 1,
      period: 60,
      label: "nightly",
      isPaused: false,
      callerIP: "127.0.0.1",
    };
    for (const [name, value] of Object.entries(expected)) assert.deepEqual(schedule[name], value, name);
    assert.deepEqual(schedule.header, { "Content-Type": ["text/plain"], "X-Own": ["mine"] });
    assert(schedule.createdAt >= asked - BEHIND_MS && schedule.createdAt <= Date.now() + 1);
    assert((await schedules.list()).some((other) => other.scheduleId === scheduleId));
  });

  it("show nothing that was not said", async () => {
    const { schedules } = world.client;
    const { scheduleId } = await schedules.create({ destination: world.url("/ok/bare"), cron: DAILY });
    const schedule = await schedules.get(scheduleId);
    assert.deepEqual([schedule.method, schedule.retries, schedule.isPaused], ["POST", 3, false]);
    assert.deepEqual(schedule.header, { "Content-Type": ["application/json"] });
    for (const absent of ["body", "bodyBase64", "callback", "queueName", "flowControlKey", "label", "delay"]) {
      assert.equal(schedule[absent], undefined, absent);
    }
    for (const [name, value] of Object.entries(schedule)) assert(value !== null && value !== "", name);
  });

  it("go by the hour of their zone", async () => {
    const { schedules } = world.client;
    for (const zone of ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]) {
      const cron = `CRON_TZ=${zone} 30 9 * * *`;
      const { scheduleId } = await schedules.create({ destination: world.url("/ok/zone"), cron });
      const schedule = await schedules.get(scheduleId);
      assert.equal(schedule.cron, cron);
      const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" });
      assert.equal(format.format(new Date(schedule.nextScheduleTime)), "09:30");
      const ahead = schedule.nextScheduleTime - Date.now();
      assert(ahead > 0 && ahead <= 25 * 3_600_000, `${ahead}`);
    }
  });

  it("go by UTC otherwise, and do not mind spaces around", async () => {
    const { schedules } = world.client;
    const { scheduleId } = await schedules.create({ destination: world.url("/ok/utc"), cron: ` ${DAILY} ` });
    const next = new Date((await schedules.get(scheduleId)).nextScheduleTime);
    assert.deepEqual([next.getUTCHours(), next.getUTCMinutes(), next.getUTCSeconds()], [9, 0, 0]);
  });

  it("are overwritten by their id", async () => {
    const { schedules } = world.client;
    const scheduleId = "own-id_1.a";
    const made = await schedules.create({ destination: world.url("/ok/first"), cron: DAILY, body: "1", scheduleId });
    assert.equal(made.scheduleId, scheduleId);
    await schedules.create({ destination: world.url("/ok/second"), cron: "5 * * * *", scheduleId });
    const schedule = await schedules.get(scheduleId);
    assert.deepEqual([schedule.destination, schedule.cron], [world.url("/ok/second"), "5 * * * *"]);
    assert.equal(schedule.body, undefined);
    assert.equal((await schedules.list()).filter((other) => other.scheduleId === scheduleId).length, 1);
  });

  it("are paused and resumed, by PATCH and by POST", async () => {
    const { client, server } = world;
    const { scheduleId: schedule } = await client.schedules.create({ destination: world.url("/ok/p"), cron: DAILY });
    const isPaused = async () => (await client.schedules.get(schedule)).isPaused;
    await client.schedules.pause({ schedule });
    assert.equal(await isPaused(), true);
    await client.schedules.resume({ schedule });
    assert.equal(await isPaused(), false);
    const answer = await server.ask("POST", `/v2/schedules/${schedule}/pause`);
    assert(answer.status < 300, answer.text);
    assert.equal(await isPaused(), true);
  });

  it("are removed", async () => {
    const { schedules } = world.client;
    const { scheduleId } = await schedules.create({ destination: world.url("/ok/gone"), cron: DAILY });
    await schedules.delete(scheduleId);
    await refused(schedules.get(scheduleId), 404);
    await refused(schedules.delete(scheduleId), 404);
  });

  it("may go to a group", async () => {
    const { client } = world;
    await client.urlGroups.addEndpoints({ name: "scheduled", endpoints: [{ url: world.url("/ok/in-group") }] });
    const { scheduleId } = await client.schedules.create({ destination: "scheduled", cron: DAILY });
    assert.equal((await client.schedules.get(scheduleId)).destination, "scheduled");
  });

  const wrong = {
    "a cron": { cron: "now and then" },
    "a minute": { cron: "61 * * * *" },
    "a zone": { cron: "CRON_TZ=Middle/Earth 0 9 * * *" },
    "an id": { scheduleId: "with spaces" },
    "a destination": { destination: "ftp://example.com/" },
  };
  for (const [what, given] of Object.entries(wrong)) {
    it(`refuse ${what} that is none`, async () => {
      const said = { destination: world.url("/ok/wrong"), cron: DAILY, ...given };
      await refused(world.client.schedules.create(said), 400);
    });
  }
});
