// Long lists: what is filtered, searched and read further is told as it is, also when answers come late or not at all.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

const LIMITS = 450;

let server, browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  const rule = { rule: "token_bucket", limit: 1, per: "1h" };
  await server.fill({ limit: "l000", rule, queue: "charges", lanes: ["acme", "globex"], calls: 600 });
  for (let number = 1; number < LIMITS; number++)
    await server.ask("PUT", `/v1/limits/l${String(number).padStart(3, "0")}`, rule);
  await server.ask("PUT", "/v1/limits/needle", rule);
});
after(() => Promise.all([server.stop(), browser.close()]));

const refused = { expected: /status of 5\d\d/ };
const scrollTo = (box, row) => box.evaluate((element, top) => element.scrollTo(0, top), row * 40);

test("a search reads the whole list before it says that there is none", () =>
  onPage(browser, server, "#/limits", async (page) => {
    await page.getByRole("link", { name: "l000", exact: true }).waitFor();
    await page.getByLabel("Find a limit").fill("needle");
    await page.getByRole("link", { name: "needle", exact: true }).waitFor();
    await page.getByLabel("Find a limit").fill("nobody");
    await page.getByText("No limit has “nobody” in its name").waitFor();
  }));

test("a search that could not read on says among how many it looked", () =>
  onPage(
    browser,
    server,
    "#/limits",
    async (page) => {
      await page.route(/v1\/limits\?.*after=/, (route) => route.fulfill({ status: 503, json: { detail: "not now" } }));
      await page.getByLabel("Find a limit").fill("needle");
      await page.getByText("None of the first 200 limits has “needle” in its name").waitFor();
      await page.getByRole("alert").getByText("not now").waitFor();
    },
    refused,
  ));

test("a name beyond those that are searched is gone to as it is typed", () =>
  onPage(browser, server, "#/overview", async (page) => {
    await page.route(/v1\/limits\?limit=1000/, (route) => route.fulfill({ json: { limits: [], next: "l000" } }));
    await page.getByRole("heading", { name: "Overview", level: 1, exact: true }).waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill("needle");
    await page.getByRole("option", { name: "limit needle" }).waitFor();
    assert.equal(await page.getByRole("option", { name: /^call/ }).count(), 0);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "needle", level: 1, exact: true }).waitFor();
  }));

test("a list that was read further says as of when, and is read anew on demand", () =>
  onPage(browser, server, "#/limits", async (page) => {
    await page.getByRole("link", { name: "l000", exact: true }).waitFor();
    await scrollTo(page.getByRole("region", { name: "Limits", exact: true }), 199);
    await page.getByText(/^as of \d\d:\d\d:\d\d$/).waitFor();
    await page.getByRole("region", { name: `${LIMITS + 1} limits` }).waitFor();
    await picture(page, "list-read-further");
    await scrollTo(page.getByRole("region", { name: "Limits", exact: true }), 0);
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByText(/^as of/).waitFor({ state: "detached" });
  }));

test("a late page of one filter does not come under the next", () =>
  onPage(browser, server, "#/calls?queue=charges&lane=acme", async (page) => {
    const box = page.getByRole("region", { name: "Calls of charges" }).last();
    await box.getByText("acme", { exact: true }).first().waitFor();
    let answer;
    const asked = new Promise((resolve) =>
      page.route(/lane=acme.*after=/, (route) => {
        answer = () => route.continue();
        resolve();
      }),
    );
    await scrollTo(box, 499);
    await asked;
    await page.getByLabel("Lane").fill("globex");
    await page.getByLabel("Lane").press("Enter");
    await box.getByText("globex", { exact: true }).first().waitFor();
    // One that was left is not answered any more; one that was not is before these.
    await answer().catch(() => {});
    for (let look = 0; look < 2; look++) await page.waitForResponse(/v1\/overview/);
    assert.equal(await box.getByText("acme", { exact: true }).count(), 0);
  }));

test("a filter that finds nothing among the newest is not asked again and again, but further on demand", () =>
  onPage(browser, server, "#/calls?view=history", async (page) => {
    let asked = 0;
    await page.route(/v1\/history\?.*end=expired/, (route) =>
      route.fulfill({ json: { events: [], next: String(++asked) } }),
    );
    await page.getByLabel("End").selectOption("expired");
    const further = page.getByRole("button", { name: "Look further" });
    await further.waitFor();
    assert.equal(asked, 20);
    for (let look = 0; look < 4; look++) await page.waitForResponse(/v1\/overview/);
    assert.equal(asked, 20);
    await further.click();
    await page.waitForResponse(/after=39/);
    assert.ok(asked >= 39);
  }));

for (const [name, none] of [
  ["calls", "There is no queue to have calls"],
  ["dead", "Nobody is dead here"],
]) {
  test(`without an answer ${name} does not say that there is nothing`, () =>
    onPage(
      browser,
      server,
      `#/overview`,
      async (page) => {
        await page.route(/v1\/queues\?/, (route) => route.fulfill({ status: 503, json: { detail: "not now" } }));
        await page.goto(`${server.url}/#/${name}`);
        await page.getByRole("alert").getByText("not now").waitFor();
        assert.equal(await page.getByText(none).count(), 0);
        await page.unroute(/v1\/queues\?/);
        await page.waitForURL(/queue=charges/);
      },
      refused,
    ));
}
