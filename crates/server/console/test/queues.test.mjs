// Queues and lanes: how they stand, what blocks them, and what an operator can do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { agree, GONE, onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

let server, browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  await server.fill({
    limit: "stripe",
    rule: { rule: "token_bucket", limit: 1, per: "1h" },
    queue: "charges",
    lanes: ["acme", "globex"],
    calls: 3,
  });
});
after(() => Promise.all([server.stop(), browser.close()]));

const lane = async (name) =>
  (await server.ask("GET", "/v1/queues/charges/lanes")).lanes.find((lane) => lane.name === name);

test("numbers change as calls come, without a reload", () =>
  onPage(browser, server, "#/queues", async (page) => {
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "charges", exact: true }) });
    await row.getByText("6 calls", { exact: true }).waitFor();
    await row.getByText("no worker asks").waitFor();
    const [oldest] = (await server.ask("GET", "/v1/overview")).queues.filter((queue) => queue.queue === "charges");
    const link = row.getByRole("link", { name: /^\d+ (ms|s)|^\d+\.\d s/ });
    assert.equal(await link.getAttribute("href"), `#/calls/${oldest.oldest}`);
    await server.ask("POST", "/v1/queues/charges/calls", { lane: "zenith", body: 1 });
    await row.getByText("7 calls", { exact: true }).waitFor();
    await picture(page, "queues");
  }));

test("a held page does not change until it is let go", () =>
  onPage(browser, server, "#/queues/charges", async (page) => {
    const now = page.getByRole("region", { name: "Now" });
    await page.clock.install();
    await page.reload();
    await now.getByText("7 calls", { exact: true }).waitFor();
    await page.keyboard.press(".");
    await page.getByRole("button", { name: "Held" }).waitFor();
    let looks = 0;
    page.on("request", (request) => request.url().includes("/v1/queues/charges") && looks++);
    await server.ask("POST", "/v1/queues/charges/calls", { lane: "zenith", body: 2 });
    await page.clock.runFor(10_000);
    assert.equal(looks, 0);
    await now.getByText("7 calls", { exact: true }).waitFor();
    await page.keyboard.press(".");
    await now.getByText("8 calls", { exact: true }).waitFor();
  }));

test("a lane says what blocks its first call", () =>
  onPage(browser, server, "#/queues/charges", async (page) => {
    await server.work("charges", "done");
    const row = page.getByRole("row").filter({ hasText: "globex" });
    await row.getByText(/stripe: (spent|others first)/).waitFor();
    await picture(page, "queue");
  }));

test("a queue is paused and resumed", () =>
  onPage(browser, server, "#/queues/charges", async (page) => {
    await page.getByRole("button", { name: "Pause", exact: true }).first().click();
    await agree(page, "Pause");
    await page.getByText("paused: nothing starts").waitFor();
    assert.equal((await server.ask("GET", "/v1/queues/charges")).paused, true);
    await page.getByRole("button", { name: "Resume", exact: true }).first().click();
    await agree(page, "Resume");
    await page.getByText("paused: nothing starts").waitFor({ state: "detached" });
  }));

test("what is dangerous is not agreed to by a key that is held, and a request under way is not left", () =>
  onPage(
    browser,
    server,
    "#/queues/charges",
    async (page) => {
      let answer;
      const sent = new Promise((resolve) =>
        page.route(/charges\/pause$/, (route) => {
          answer = () => route.fulfill({ status: 503, json: { detail: "the store is away" } });
          resolve();
        }),
      );
      await page.getByRole("button", { name: "Pause", exact: true }).first().focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog");
      await dialog.waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Cancel");
      await dialog.getByRole("button", { name: "Pause" }).click();
      await sent;
      assert.equal(await dialog.getByRole("button", { name: "Cancel" }).isDisabled(), true);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await answer();
      await dialog.getByRole("alert").getByText("the store is away").waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
    },
    { expected: /status of 503/ },
  ));

test("a lane is paused, resumed and weighed", () =>
  onPage(browser, server, "#/queues/charges", async (page) => {
    const row = page.getByRole("row").filter({ hasText: "globex" });
    await row.getByRole("button", { name: "Pause" }).click();
    await agree(page, "Pause");
    await row.getByText("paused", { exact: true }).waitFor();
    assert.equal((await lane("globex")).paused, true);
    await row.getByRole("button", { name: "Resume" }).click();
    await agree(page, "Resume");
    await row.getByRole("button", { name: "Weigh" }).click();
    await agree(page, "Weigh", { Weight: "3" });
    await row.getByText("× 3", { exact: false }).waitFor();
    assert.deepEqual([(await lane("globex")).weight, (await lane("globex")).paused], [3, false]);
  }));

test("a lane that is gone to can be acted on, also on a phone", () =>
  onPage(
    browser,
    server,
    "#/queues/charges?lane=globex",
    async (page) => {
      const panel = page.getByRole("region", { name: "Lane globex" });
      await panel.getByText("× 3", { exact: true }).waitFor();
      await panel.getByRole("button", { name: "Pause" }).click();
      await agree(page, "Pause");
      await panel.getByRole("button", { name: "Resume" }).click();
      await agree(page, "Resume");
      await panel.getByRole("button", { name: "Pause" }).waitFor();
      assert.equal((await lane("globex")).paused, false);
      await picture(page, "lane-phone");
    },
    { viewport: { width: 390, height: 844 } },
  ));

test("a lane whose name means a folder is left alone, and so is its queue", async () => {
  await server.ask("POST", "/v1/queues/charges/calls", { lane: "..", body: 1 });
  await onPage(browser, server, "#/queues/charges", async (page) => {
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "..", exact: true }) });
    await row.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByRole("alert").getByText("--path-as-is", { exact: false }).waitFor();
    assert.equal((await server.ask("GET", "/v1/queues/charges")).paused, false);
    await page.goto(`${server.url}/#/queues/..`);
    await page.getByText("The server is not asked").waitFor();
  });
});

test("a queue is defined, changed and removed", () =>
  onPage(
    browser,
    server,
    "#/queues",
    async (page) => {
      await page.getByRole("button", { name: "Define a queue" }).click();
      await agree(page, "Define", { Name: "mails", "Calls of a lane at a time": "8" });
      await page.getByRole("link", { name: "mails", exact: true }).click();
      await page.getByText("Up to 8 calls of a lane at a time", { exact: false }).waitFor();
      await page.getByRole("button", { name: "Change", exact: true }).click();
      await agree(page, "Change", { Definition: '{"order":"strict","lease":"2m"}' });
      await page.getByText("2m", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Remove" }).click();
      await agree(page, "Remove");
      await page.waitForURL(/#\/queues$/);
      await assert.rejects(server.ask("GET", "/v1/queues/mails"), /404/);
    },
    GONE,
  ));

test("the flow of a lane shows its starts as they happen", async () => {
  await server.ask("PUT", "/v1/queues/open", {});
  await server.ask("POST", "/v1/queues/open/calls", { lane: "acme", body: 1 });
  await onPage(browser, server, "#/flow?queue=open&lane=acme", async (page) => {
    await page.getByRole("img", { name: /Starts/ }).waitFor();
    await server.work("open", "done");
    await page.getByRole("img", { name: /at most 1 calls\/s/ }).waitFor();
    await page.reload();
    await page.getByRole("img", { name: /at most 1 calls\/s/ }).waitFor();
  });
});

test("of a hundred thousand lanes those in sight are drawn, and any is gone to by its name", async () => {
  await server.ask("PUT", "/v1/queues/many", { depth_max: 1_000_000 });
  const named = (number) => `tenant-${String(number).padStart(6, "0")}`;
  for (let first = 0; first < 100_000; first += 10_000) {
    await server.ask(
      "POST",
      "/v1/queues/many/calls",
      Array.from({ length: 10_000 }, (_, index) => ({ lane: named(first + index) })),
    );
  }
  await onPage(browser, server, "#/overview", async (page) => {
    const asked = new Set();
    page.on("request", (request) => /v1\/calls\/\d+$/.test(request.url()) && asked.add(request.url()));
    await page.goto(`${server.url}/#/queues/many`);
    await page.getByRole("region", { name: "100,000 lanes, the busiest 1,000" }).waitFor();
    await page.getByText("no worker asks", { exact: true }).first().waitFor();
    const drawn = await page.getByRole("region", { name: "Lanes", exact: true }).getByRole("row").count();
    assert.ok(asked.size < drawn - 12, `${asked.size} calls were asked for, and ${drawn} rows drawn`);
    await page.getByRole("button", { name: "By name" }).click();
    const box = page.getByRole("region", { name: "Lanes", exact: true });
    await box.getByText(named(0), { exact: true }).waitFor();
    await box.evaluate((element) => element.scrollTo(0, 990 * 40));
    await box.getByText(named(1_000), { exact: true }).waitFor();
    assert.ok((await box.getByRole("row").count()) < 100);
    await page.getByLabel("Go to a lane by its name").fill(named(77_777));
    await box.getByText(named(77_777), { exact: true }).waitFor();
    await picture(page, "lanes");
  });
});
