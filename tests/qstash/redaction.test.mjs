// What is kept from those who look, but not from those who are meant.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { base64, sha256, SIDE_BY_SIDE, World } from "./harness.mjs";

const SECRET = "the secret body";
const REDACTED_BODY = `REDACTED:${sha256(SECRET)}`;
const HEADERS = { "x-secret": "of the header", "x-open": "for all", "content-type": "text/plain" };
const REDACTED_HEADER = `REDACTED:${sha256("of the header")}`;

describe("redaction", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  const redact = { body: true, header: ["x-secret"] };

  // Nothing in a value gives it away, however deep, nor in a body that is base64 once more.
  function assertSilent(value) {
    const texts = [JSON.stringify(value)];
    for (const { body } of [value].flat()) texts.push(Buffer.from(body ?? "", "base64").toString());
    for (const secret of [SECRET, "of the header"]) {
      const encoded = base64(secret).replace(/=+$/, "");
      for (const text of texts) assert(!text.includes(secret) && !text.includes(encoded), text);
    }
  }

  it("hides body and headers of a message, and delivers them", async () => {
    const { client, destination } = world;
    const given = { url: world.url("/ok/hidden"), body: SECRET, headers: HEADERS, redact };
    const waiting = await client.publish({ ...given, delay: "1h" });
    const message = await client.messages.get(waiting.messageId);
    assert.equal(message.body, REDACTED_BODY);
    assert.deepEqual(message.header["X-Secret"], [REDACTED_HEADER]);
    assert.deepEqual(message.header["X-Open"], ["for all"]);
    const { text } = await world.server.ask("GET", `/v1/calls/${waiting.messageId.replace("msg_", "")}`);
    assertSilent([text]);
    const { messageId } = await client.publish(given);
    const [request] = await destination.arrived("/ok/hidden");
    assert.equal(request.body, SECRET);
    assert.equal(request.headers["x-secret"], "of the header");
    await world.logged(messageId, "DELIVERED");
    const entries = await world.log(messageId);
    assertSilent(entries);
    const shown = [REDACTED_BODY, base64(REDACTED_BODY)];
    assert(entries.some(({ body }) => shown.includes(body)));
  });

  it("hides all headers when told so", async () => {
    const { client } = world;
    const given = { url: world.url("/ok/headers"), body: "open", headers: HEADERS, delay: "1h" };
    const { messageId } = await client.publish({ ...given, redact: { header: true } });
    const message = await client.messages.get(messageId);
    assert.equal(message.body, "open");
    assert.deepEqual(message.header["X-Secret"], [REDACTED_HEADER]);
    assert.deepEqual(message.header["X-Open"], [`REDACTED:${sha256("for all")}`]);
  });

  it("hides dead messages, and delivers them when they are tried again", async () => {
    const { client, destination } = world;
    const path = "/fail-then-ok/1/dead";
    const given = { url: world.url(path), body: SECRET, headers: HEADERS, redact, retries: 0 };
    const { messageId } = await client.publish(given);
    const dead = await world.dead(messageId);
    assert.equal(dead.body, REDACTED_BODY);
    assert.deepEqual(dead.header["X-Secret"], [REDACTED_HEADER]);
    assertSilent(dead);
    const { responses } = await client.dlq.retry(dead.dlqId);
    const [, again] = await destination.arrived(path, 2);
    assert.deepEqual([again.body, again.headers["x-secret"]], [SECRET, "of the header"]);
    await world.logged(responses[0].messageId, "DELIVERED");
    assertSilent(await world.log(responses[0].messageId));
  });

  it("hides schedules", async () => {
    const { schedules } = world.client;
    const given = { cron: "0 9 * * *", body: SECRET, headers: HEADERS, redact };
    const { scheduleId } = await schedules.create({ destination: world.url("/ok/scheduled"), ...given });
    const schedule = await schedules.get(scheduleId);
    assert.equal(schedule.body, REDACTED_BODY);
    assert.deepEqual(schedule.header["X-Secret"], [REDACTED_HEADER]);
    assertSilent(await schedules.list());
  });

  it("hides messages of queues, batches and groups", async () => {
    const { client } = world;
    await client.urlGroups.addEndpoints({ name: "hidden", endpoints: [{ url: world.url("/ok/group") }] });
    await client.queue({ queueName: "hidden" }).upsert({ paused: true });
    const given = { body: SECRET, headers: HEADERS, redact, delay: "1h" };
    const answers = await client.batch([
      { ...given, url: world.url("/ok/queue"), queueName: "hidden" },
      { ...given, urlGroup: "hidden" },
      { ...given, url: world.url("/ok/batch") },
    ]);
    for (const { messageId } of answers.flat()) {
      const message = await client.messages.get(messageId);
      assert.equal(message.body, REDACTED_BODY);
      assertSilent(message);
    }
  });

  it("tells callbacks the truth, and hides it in their logs", async () => {
    const { client, destination } = world;
    const callback = world.url("/ok/callback");
    await client.publish({ url: world.url("/ok/source"), body: SECRET, headers: HEADERS, redact, callback });
    const [request] = await destination.arrived("/ok/callback");
    const told = JSON.parse(request.body);
    assert.equal(Buffer.from(told.sourceBody, "base64").toString(), SECRET);
    const id = request.headers["upstash-message-id"];
    await world.logged(id, "DELIVERED");
    assertSilent(await world.log(id));
  });
});
