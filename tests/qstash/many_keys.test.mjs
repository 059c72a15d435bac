// Ten thousand keys, each with a limit of its own.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { count, World } from "./harness.mjs";

const KEYS = 10_000;
const BATCH = 500;
// Of so many keys, a second message is published that has to wait.
const WITH_SECOND = 500;
// It takes a while, the more so on a machine that is busy.
const PATIENCE_MS = 120_000;

describe("many keys", () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  it("go by their own limits, each", async () => {
    const { client, destination } = world;
    const message = (number) => ({
      url: world.url(`/ok/keys/${number}`),
      flowControl: { key: `customer:${number}`, rate: 1, period: "1h" },
    });
    for (let first = 0; first < KEYS; first += BATCH) {
      await client.batch(count(BATCH).map((index) => message(first + index)));
    }
    await client.batch(count(WITH_SECOND).map(message));
    await destination.until(() => destination.requests.length >= KEYS, "a message of each key", PATIENCE_MS);
    await world.pass(1);
    const urls = destination.at("/ok/keys/").map(({ url }) => url);
    assert.equal(urls.length, KEYS);
    assert.equal(new Set(urls).size, KEYS, "of each key one, and no second");
    for (const number of [0, WITH_SECOND - 1, KEYS - 1]) {
      const key = await client.flowControl.get(`customer:${number}`);
      assert.deepEqual([key.rateCount, key.rateMax, key.waitListSize], [1, 1, number < WITH_SECOND ? 1 : 0]);
    }
    const { json } = await world.server.ask("GET", "/v2/flowControl?search=customer:1234");
    assert.deepEqual(json.map(({ flowControlKey }) => flowControlKey), ["customer:1234"]);
  });
});
