// Limits: all that an operator can do to them, each after the page said what it will do, and what the server makes of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { agree, GONE, onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

let server, browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  await server.fill({
    limit: "stripe",
    rule: { rule: "token_bucket", limit: 2, per: "1h" },
    queue: "charges",
    lanes: ["acme", "globex", "zenith"],
    calls: 5,
  });
  await server.work("charges", "done", 2);
});
after(() => Promise.all([server.stop(), browser.close()]));

const limit = (name) => server.ask("GET", `/v1/limits/${name}`);

test("a limit is defined in the words of the form", () =>
  onPage(browser, server, "#/limits", async (page) => {
    await page.getByRole("button", { name: "Define a limit" }).click();
    await picture(page, "define-limit");
    const fields = {
      Name: "openai",
      Rule: "sliding_window",
      "Limit, in units": "500",
      Per: "1m",
      "And so many at a time": "20",
    };
    await agree(page, "Define", fields);
    await page.getByRole("link", { name: "openai", exact: true }).waitFor();
    const { definition } = await limit("openai");
    assert.deepEqual(definition, {
      rules: [
        { rule: "sliding_window", limit: 500, per: "1m" },
        { rule: "concurrency", limit: 20 },
      ],
    });
    await page.getByRole("table").getByText("500 in any minute and 20 at a time").waitFor();
  }));

test("what the server refuses is told, and nothing changes", () =>
  onPage(
    browser,
    server,
    "#/limits/stripe",
    async (page) => {
      await page.getByRole("button", { name: "Change", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Per", { exact: true }).fill("400d");
      await dialog.getByRole("button", { name: "Change", exact: true }).click();
      await dialog.getByRole("alert").waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      assert.equal((await limit("stripe")).definition.per, "1h");
    },
    { expected: /status of 4\d\d/ },
  ));

test("a change says what was and what will be, and the audit log has it", () =>
  onPage(browser, server, "#/limits/stripe", async (page) => {
    await page.getByRole("button", { name: "Change", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Burst, in units").fill("7");
    await dialog.getByText("stripe goes from 2 per hour to 2 per hour, burst 7", { exact: false }).waitFor();
    await dialog.getByText("The same from a terminal").click();
    await dialog.getByText(`curl -X PUT '${server.url}/v1/limits/stripe'`, { exact: false }).waitFor();
    await agree(page, "Change");
    assert.equal((await limit("stripe")).definition.burst, 7);
    await page.getByRole("status").filter({ hasText: "stripe admits 2 per hour, burst 7" }).waitFor();
    const changes = page.getByRole("region", { name: "Changes" });
    await changes.getByText("2 per hour → 2 per hour, burst 7").waitFor();
    await changes.getByText("console", { exact: true }).first().waitFor();
  }));

test("a limit is pinned and unpinned, and both rules are shown", () =>
  onPage(browser, server, "#/limits/stripe", async (page) => {
    await page.getByRole("button", { name: "Pin", exact: true }).click();
    await agree(page, "Pin", { "Limit, in units": "1" });
    await page.getByText("pinned", { exact: true }).first().waitFor();
    assert.equal((await limit("stripe")).pinned.limit, 1);
    await page.getByRole("button", { name: "Unpin" }).click();
    await agree(page, "Unpin");
    await page.getByText("as configured").waitFor();
    assert.equal((await limit("stripe")).pinned, undefined);
  }));

test("slots are pinned beside the rate, which stays in force", () =>
  onPage(browser, server, "#/limits/stripe", async (page) => {
    await page.getByRole("button", { name: "Pin", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Rule").selectOption("concurrency");
    await dialog.getByLabel("Limit, in units").fill("3");
    await dialog.getByText("In force is then: 2 per hour, burst 7 and 3 at a time.", { exact: false }).waitFor();
    await agree(page, "Pin");
    const effective = page.getByRole("region", { name: "In force" });
    await effective.getByText("2 per hour, burst 7 and 3 at a time", { exact: true }).waitFor();
    await page.goto(`${server.url}/#/limits`);
    await page.getByRole("table").getByText("2 per hour, burst 7 and 3 at a time").waitFor();
    await server.ask("DELETE", "/v1/limits/stripe/pin");
  }));

test("a paused limit holds, says so, and goes on", () =>
  onPage(browser, server, "#/limits/stripe", async (page) => {
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByRole("dialog").getByText("Nothing that pays at stripe starts", { exact: false }).waitFor();
    await agree(page, "Pause");
    await page.getByText("paused: nothing passes").waitFor();
    assert.equal((await limit("stripe")).paused, true);
    await page.getByRole("button", { name: "Resume" }).click();
    await agree(page, "Resume");
    await page.getByText("paused: nothing passes").waitFor({ state: "detached" });
    const changes = page.getByRole("region", { name: "Changes" });
    await changes.getByText("paused", { exact: true }).waitFor();
    await changes.getByText("goes on", { exact: true }).waitFor();
  }));

test("a meter is closed with its reason, reopened and reset", () =>
  onPage(browser, server, "#/limits/stripe", async (page) => {
    const panel = page.getByRole("region", { name: "Meter", exact: true });
    await panel.getByRole("button", { name: "Close" }).click();
    await agree(page, "Close", { For: "5m", Reason: "429 from upstream" });
    await panel.getByText("429 from upstream", { exact: false }).waitFor();
    await picture(page, "limit-closed");
    await panel.getByRole("button", { name: "Reopen" }).click();
    await agree(page, "Reopen");
    await panel.getByRole("button", { name: "Close" }).waitFor();
    assert.equal((await server.ask("GET", "/v1/meters/stripe")).global.closed_for_ms, undefined);
    await panel.getByRole("button", { name: "Reset" }).click();
    await agree(page, "Reset");
    await page.getByRole("status").filter({ hasText: "stripe is as new" }).waitFor();
    assert.equal((await server.ask("GET", "/v1/meters/stripe")).global.available, 7);
  }));

test("a partition has rules of its own, and loses them", () =>
  onPage(browser, server, "#/limits/stripe?partition=big", async (page) => {
    await page.getByRole("button", { name: "Override", exact: true }).first().click();
    await agree(page, "Override", { Partition: "big", "Limit, in units": "1000" });
    assert.equal((await limit("stripe")).overrides[0].definition.limit, 1000);
    await page.getByRole("button", { name: "Drop override" }).click();
    await agree(page, "Take away");
    await page.getByRole("button", { name: "Drop override" }).waitFor({ state: "detached" });
    assert.deepEqual((await limit("stripe")).overrides, []);
  }));

test("a limit is removed, and the list is without it", () =>
  onPage(
    browser,
    server,
    "#/limits/openai",
    async (page) => {
      await page.getByRole("button", { name: "Remove" }).click();
      await agree(page, "Remove");
      await page.waitForURL(/#\/limits$/);
      await page.getByRole("link", { name: "stripe", exact: true }).waitFor();
      await assert.rejects(limit("openai"), /404/);
    },
    GONE,
  ));

test("the flow of a limit is drawn against its allowance", async () => {
  // Since it was reset nobody knows which meter admitted what was before.
  await server.work("charges", "done");
  await onPage(browser, server, "#/flow/stripe", async (page) => {
    await page.getByRole("img", { name: "Admissions", exact: false }).waitFor();
    // An hour is more than is shown: what is said of it is of the time that is.
    await page.getByText(/Admitted in the .* shown: never over the line/).waitFor();
    await page.getByText("that 1 h allow", { exact: false }).waitFor();
    await page.getByText("allowance: 2 per hour, burst 7", { exact: false }).waitFor();
    await page.getByLabel("Limit").selectOption("stripe");
    await picture(page, "flow");
  });
});

test("what a wider rule let pass is not said to be within the narrower one of now", async () => {
  const rule = (limit) => ({ rule: "sliding_window", limit, per: "1m" });
  await server.ask("PUT", "/v1/limits/narrowed", rule(5));
  for (let nth = 0; nth < 5; nth += 1) await server.ask("POST", "/v1/consume", { tolls: [{ limit: "narrowed" }] });
  await server.ask("PUT", "/v1/limits/narrowed", rule(2));
  await onPage(browser, server, "#/flow/narrowed", async (page) => {
    await page.getByText("5 units, where the rule of now allows 2").waitFor();
    assert.equal(await page.getByText("never over the line").count(), 0);
  });
});

test("what partitions admitted together is not drawn against the rule of one, also when all of them are as new", async () => {
  await server.ask("PUT", "/v1/limits/fast", { rule: "sliding_window", limit: 5, per: "100ms" });
  await server.ask("PUT", "/v1/queues/quick", { order: { parallel: 10 } });
  const call = (partition) => ({ lane: partition, tolls: [{ limit: "fast", partition }] });
  await server.ask("POST", "/v1/queues/quick/calls", ["a", "b"].map(call));
  await server.work("quick", "done", 2);
  const listed = async () => (await server.ask("GET", "/v1/meters/fast")).partitions.length;
  while ((await listed()) > 0);
  await onPage(browser, server, "#/flow/fast", async (page) => {
    await page.getByText("All meters together.", { exact: false }).waitFor();
    assert.equal(await page.getByText("allowance:", { exact: false }).count(), 0);
  });
});
