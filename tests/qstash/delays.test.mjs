// Messages that are not to go yet.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { SIDE_BY_SIDE, World } from "./harness.mjs";

describe("delays", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // How long after it was asked for a message arrived, in milliseconds.
  async function waited(path, options) {
    const asked = performance.now();
    await world.client.publish({ url: world.url(path), ...options });
    const [request] = await world.destination.arrived(path);
    return request.arrivedAt - asked;
  }

  it("waits as many seconds as a number says", async () => {
    const ms = await waited("/ok/number", { delay: 2 });
    assert(ms >= 2000, `${ms}`);
  });

  it("waits as long as a text says", async () => {
    const ms = await waited("/ok/text", { delay: "1s" });
    assert(ms >= 1000, `${ms}`);
  });

  it("waits for parts of a second, too", async () => {
    const ms = await waited("/ok/parts", { delay: "250ms" });
    assert(ms >= 250 && ms < 5000, `${ms}`);
  });

  it("waits for a time of day", async () => {
    const notBefore = Math.ceil(Date.now() / 1000) + 2;
    await world.client.publish({ url: world.url("/ok/not-before"), notBefore });
    const [request] = await world.destination.arrived("/ok/not-before");
    assert(request.wallMs >= notBefore * 1000, `${request.wallMs} is before ${notBefore}`);
  });

  it("goes by the time of day when there is a delay, too", async () => {
    const notBefore = Math.ceil(Date.now() / 1000) + 1;
    await world.client.publish({ url: world.url("/ok/both"), notBefore, delay: "1h" });
    const [request] = await world.destination.arrived("/ok/both");
    assert(request.wallMs >= notBefore * 1000);
  });

  it("goes at once when the time of day is past", async () => {
    const notBefore = Math.floor(Date.now() / 1000) - 100;
    const ms = await waited("/ok/past", { notBefore });
    assert(ms < 5000, `${ms}`);
  });

  it("adds up days, hours, minutes and seconds", async () => {
    const { client } = world;
    const { messageId } = await client.publish({ url: world.url("/ok/sum"), delay: "1d10h30m5s" });
    const message = await client.messages.get(messageId);
    const seconds = 86_400 + 10 * 3600 + 30 * 60 + 5;
    assert(Math.abs(message.notBefore - message.createdAt - seconds * 1000) <= 1000, `${message.notBefore}`);
  });

  it("holds up nobody else meanwhile", async () => {
    const flowControl = { key: "delayed", parallelism: 1 };
    await world.client.publish({ url: world.url("/ok/held/later"), delay: "1h", flowControl });
    await world.client.publish({ url: world.url("/ok/held/now"), flowControl });
    await world.destination.arrived("/ok/held/now");
    const key = await world.client.flowControl.get("delayed");
    assert.equal(key.waitListSize, 1, "a message that is not due yet is one that waits");
  });
});
