// A rate of ten and a parallelism of twenty, with calls that never end: ten, ten, then one for each that ends. What the
// key and the whole tell of it at each stage.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { count, World } from "./harness.mjs";

const PERIOD_S = 4;

describe("stages", () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // What is told of the key, less when its period began, and of the whole.
  async function told() {
    const { ratePeriodStart, ...key } = await world.client.flowControl.get("stages");
    const whole = await world.client.flowControl.getGlobalParallelism();
    return { key, whole, ratePeriodStart };
  }

  function expected({ waitListSize, parallelismCount, rateCount }) {
    return {
      flowControlKey: "stages",
      waitListSize,
      parallelismMax: 20,
      parallelismCount,
      rateMax: 10,
      rateCount,
      ratePeriod: PERIOD_S,
      isPaused: false,
      isPinnedParallelism: false,
      isPinnedRate: false,
    };
  }

  function assertBetween(seconds, from, to) {
    assert(seconds >= Math.floor(from / 1000) && seconds <= to / 1000, `${seconds} is not from ${from} to ${to}`);
  }

  it("go as the rate and the parallelism say", async () => {
    const { client, destination } = world;
    const flowControl = { key: "stages", rate: 10, parallelism: 20, period: PERIOD_S };
    const asked = Date.now();
    await client.batch(count(25).map(() => ({ url: world.url("/hang/stages"), flowControl })));

    await destination.opened("/hang/stages", 10);
    const first = await told();
    assert.deepEqual(first.key, expected({ waitListSize: 15, parallelismCount: 10, rateCount: 10 }));
    assert.deepEqual(first.whole, { parallelismMax: 2000, parallelismCount: 10 });
    assertBetween(first.ratePeriodStart, asked, Date.now());

    await destination.opened("/hang/stages", 20);
    const second = await told();
    assert.deepEqual(second.key, expected({ waitListSize: 5, parallelismCount: 20, rateCount: 10 }));
    assert.deepEqual(second.whole, { parallelismMax: 2000, parallelismCount: 20 });
    assertBetween(second.ratePeriodStart, asked + PERIOD_S * 1000, Date.now());
    const eleventh = destination.at("/hang/stages")[10];
    assert(eleventh.wallMs >= asked + PERIOD_S * 1000, "ten in a period");

    await world.pass(PERIOD_S + 1);
    assert.equal(destination.at("/hang/stages").length, 20, "all slots are held, so nobody starts in the third period");
    const third = await told();
    assert.deepEqual(third.key, expected({ waitListSize: 5, parallelismCount: 20, rateCount: 0 }));
    assert.deepEqual(third.whole, { parallelismMax: 2000, parallelismCount: 20 });

    for (const ended of [1, 2, 3]) {
      const began = Date.now();
      destination.release("/hang/stages", 1);
      await destination.until(() => destination.at("/hang/stages").length === 20 + ended, "one for the one that ended");
      assert.equal(destination.open("/hang/stages").length, 20);
      const stage = await told();
      assert.deepEqual(stage.key, expected({ waitListSize: 5 - ended, parallelismCount: 20, rateCount: ended }));
      assert.equal(stage.whole.parallelismCount, 20);
      if (ended === 1) assertBetween(stage.ratePeriodStart, began, Date.now());
    }
    assert.equal(destination.peak("/hang/stages"), 20);
    destination.letGo("/hang/stages");
    await destination.until(() => destination.at("/hang/stages").length === 25, "the rest");
  });
});

describe("the parallelism of all", () => {
  let world;
  const config = '[limits."tollgate:pushes"]\nrule = "concurrency"\nlimit = 3\n';
  before(async () => (world = await World.start({ config })));
  after(() => world.stop());

  it("holds over messages with and without keys", async () => {
    const { client, destination } = world;
    await client.batch(count(4).map(() => ({ url: world.url("/hang/whole/plain") })));
    const flowControl = { key: "in-the-whole", parallelism: 2 };
    await client.batch(count(4).map(() => ({ url: world.url("/hang/whole/keyed"), flowControl })));
    await destination.opened("/hang/whole/", 3);
    assert.deepEqual(await client.flowControl.getGlobalParallelism(), { parallelismMax: 3, parallelismCount: 3 });
    const { json } = await world.server.ask("GET", "/v2/flowControl");
    const waiting = json.map(({ waitListSize }) => waitListSize).reduce((one, other) => one + other, 0);
    assert.equal(waiting, 5);
    assert(json.some(({ flowControlKey }) => flowControlKey === "$"));
    for (let answered = 0; answered < 8; answered += destination.release("/hang/whole/", 1)) {
      await destination.opened("/hang/whole/", 1);
    }
    assert.equal(destination.at("/hang/whole/").length, 8);
    assert.equal(destination.peak("/hang/whole/"), 3);
    assert(destination.peak("/hang/whole/keyed") <= 2);
  });
});
