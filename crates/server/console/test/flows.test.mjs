// Schedules, runs and events.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { agree, onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

const execute = promisify(execFile);

let server, browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  await server.ask("PUT", "/v1/queues/mails", { order: { parallel: 100 } });
});
after(() => Promise.all([server.stop(), browser.close()]));

test("a schedule is defined, paused, resumed and removed", () =>
  onPage(browser, server, "#/schedules", async (page) => {
    await page.getByText("There is no schedule yet").waitFor();
    await page.getByRole("button", { name: "Define a schedule" }).click();
    await agree(page, "Define", {
      Name: "digest",
      Queue: "mails",
      Lane: "digest",
      "Time zone": "Europe/Berlin",
      "Body, as JSON": '{"kind":"daily"}',
    });
    const row = page.getByRole("row").filter({ hasText: "digest" });
    await row.getByText("Europe/Berlin").waitFor();
    await picture(page, "schedules");
    await row.getByRole("button", { name: "Change" }).click();
    await agree(page, "Change", { When: "once", At: "2099-12-24T18:00:00Z" });
    await row.getByText("once, in", { exact: false }).waitFor();
    const [schedule] = (await server.ask("GET", "/v1/schedules")).schedules;
    assert.deepEqual([schedule.at, schedule.cron], ["2099-12-24T18:00:00Z", undefined]);
    assert.deepEqual([schedule.call.lane, schedule.call.body], ["digest", { kind: "daily" }]);
    await row.getByRole("button", { name: "Pause" }).click();
    await agree(page, "Pause");
    await row.getByText("paused", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Resume" }).click();
    await agree(page, "Resume");
    await row.getByText("paused", { exact: true }).waitFor({ state: "detached" });
    await row.getByRole("button", { name: "Remove" }).click();
    await agree(page, "Remove");
    await page.getByText("There is no schedule yet").waitFor();
  }));

test("on a phone a schedule is removed, too", async () => {
  const call = { lane: "digest", body: 1 };
  await server.ask("PUT", "/v1/schedules/nightly", { queue: "mails", cron: "0 3 * * *", zone: "UTC", call });
  await onPage(
    browser,
    server,
    "#/schedules",
    async (page) => {
      await page.getByRole("cell", { name: "nightly" }).waitFor();
      await picture(page, "phone-schedule");
      await page.getByRole("button", { name: "Remove" }).click();
      await agree(page, "Remove");
      await page.getByText("There is no schedule yet").waitFor();
    },
    { viewport: { width: 390, height: 844 } },
  );
});

test("a run shows its graph and its timeline as it goes on, is cancelled and run again", async () => {
  const tasks = [
    { name: "fetch", type: "http.get" },
    { name: "ask", type: "llm.chat", after: ["fetch"] },
    { name: "store", type: "db.put", after: ["fetch", "ask"] },
  ];
  await server.ask("PUT", "/v1/workflows/summarise", { tasks });
  const { run } = await server.ask("POST", "/v1/workflows/summarise/runs", { id: 7 });
  await onPage(browser, server, "#/runs", async (page) => {
    await page.getByText("0 of 3 tasks done").waitFor();
    await picture(page, "runs");
    await page.getByRole("link", { name: run }).click();
    const graph = page.getByRole("img", { name: "fetch running, ask waiting, store waiting" });
    await graph.waitFor();
    const { calls } = await server.ask("POST", "/v1/queues/task%2Fhttp.get/claim", { wait: "10s" });
    await server.ask("POST", "/v1/settle", [{ lease: calls[0].lease, outcome: "done", output: { text: "…" } }]);
    await page.getByRole("img", { name: "fetch done, ask running, store waiting" }).waitFor();
    await page.getByText("1 attempt in", { exact: false }).waitFor();
    await picture(page, "run");
    await page.getByRole("button", { name: "Cancel the run" }).click();
    await agree(page, "Cancel it");
    await page.getByRole("button", { name: "Run again" }).click();
    await agree(page, "Run again", { From: "ask" });
    await page.getByRole("button", { name: "Cancel the run" }).waitFor();
    assert.equal((await server.ask("GET", `/v1/runs/${run}`)).state, "working");
  });
});

test("a run of a machine waits for a person, who approves it here", async () => {
  const goOn = (data) => execute(process.env.TOLLGATE_APPROVAL, [data]);
  const machines = await startServer({ prepare: goOn });
  await onPage(browser, machines, "#/runs", async (page) => {
    await page.getByRole("row").filter({ hasText: "refund" }).getByRole("link").click();
    await page.getByText("approved", { exact: false }).first().waitFor();
    await picture(page, "run-awaiting");
    await page.getByRole("button", { name: "Signal" }).click();
    await agree(page, "Signal", { Name: "approved", "Payload, as JSON": '"ann"' });
    await page.getByText("the run was told approved").waitFor();
  });
  await machines.end();
  const { stdout } = await goOn(join(machines.folder, "data"));
  assert.match(stdout, /approved by ann[^]*1250 cents were paid back/);
  await machines.stop();
});

test("events appear as they happen, are filtered, and hold still when paused", () =>
  onPage(browser, server, "#/events", async (page) => {
    await page.getByRole("region", { name: "Following" }).waitFor();
    const [id] = (await server.ask("POST", "/v1/queues/mails/calls", [{ lane: "ana", body: 1 }])).ids;
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: id, exact: true }) });
    await row.filter({ hasText: "enqueued" }).waitFor();
    await server.work("mails", "done");
    await row.filter({ hasText: "ended: done" }).waitFor();
    await picture(page, "events");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("What").selectOption("ended");
    await row.filter({ hasText: "enqueued" }).waitFor({ state: "detached" });
    const heard = await page.getByText(/events heard/).textContent();
    const other = await page.context().newPage();
    await other.goto(`${server.url}/#/events`);
    await other.getByRole("region", { name: "Following" }).waitFor();
    await server.ask("POST", "/v1/queues/mails/calls", [{ lane: "bob", body: 2 }]);
    await server.work("mails", "done");
    await other.getByRole("row").filter({ hasText: "bob" }).first().waitFor();
    await other.close();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    assert.equal(await page.getByText(/events heard/).textContent(), heard);
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByRole("row").filter({ hasText: "bob" }).waitFor();
  }));

test("events hold still with the page, and what the server refuses is told", () =>
  onPage(
    browser,
    server,
    "#/events",
    async (page) => {
      await page.getByRole("region", { name: "Following" }).waitFor();
      await page.keyboard.press(".");
      await page.getByRole("region", { name: "Paused" }).waitFor();
      await page.keyboard.press(".");
      await page.getByRole("region", { name: "Following" }).waitFor();
      await page.getByLabel("Call", { exact: true }).fill("nobody");
      await page.getByLabel("Call", { exact: true }).press("Enter");
      await page.getByRole("region", { name: "Not followed" }).getByRole("alert").waitFor();
    },
    { expected: /status of 400/ },
  ));

test("thousands of events at once leave the page smooth and its memory bounded", () =>
  onPage(browser, server, "#/events", async (page) => {
    await page.getByRole("region", { name: "Following" }).waitFor();
    await page.evaluate(() => {
      const heard = [...document.querySelectorAll("small")].find((one) => one.textContent.includes("heard"));
      window.paints = 0;
      new MutationObserver(() => window.paints++).observe(heard, { characterData: true, subtree: true });
      window.began = performance.now();
    });
    for (let batch = 0; batch < 6; batch++) {
      await server.ask(
        "POST",
        "/v1/queues/mails/calls",
        Array.from({ length: 1_000 }, (_, index) => ({ lane: `l${index % 50}`, body: index })),
      );
    }
    await page.getByText(/6,00\d events heard/).waitFor();
    assert.ok((await page.getByRole("row").count()) < 100, "only rows in sight are drawn");
    // Ten a second and one at either end: the first may have been on its way when it began to be counted.
    const { paints, most } = await page.evaluate(() => ({
      paints: window.paints,
      most: (performance.now() - window.began) / 100 + 2,
    }));
    assert.ok(paints > 0 && paints <= most, `it was painted ${paints} times, and ${most} were enough`);
  }));
