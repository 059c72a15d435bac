// What if: a limit changed on paper, what becomes of the backlog, and the change for real.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { agree, onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

let server, browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  const rule = { rule: "token_bucket", limit: 60, per: "1m", burst: 1 };
  const lanes = ["acme", "globex"];
  await server.fill({ limit: "stripe", rule, queue: "charges", lanes, calls: 300, order: { parallel: 100 } });
});
after(() => Promise.all([server.stop(), browser.close()]));

/** A panel's text, without what is between the lines. */
const textOf = async (locator) => (await locator.innerText()).replaceAll(/\s+/g, " ");

test("a limit is doubled on paper, and the backlog would be gone in half the time", () =>
  onPage(browser, server, "#/limits/stripe", async (page) => {
    await page.getByRole("link", { name: "What if", exact: true }).last().click();
    await page.getByLabel("Limit, in units").fill("120");
    await page.getByRole("button", { name: "Look ahead" }).click();
    // The first of 600 passes at once, the others one a second.
    await page.getByText("9 min 59 s until the last has started").waitFor();
    await page.getByText("4 min 59 s until the last has started").waitFor();
    await page.getByRole("img", { name: /as it is in the end 0, at most 600 calls left/ }).waitFor();
    const lanes = page.getByRole("region", { name: "Lanes that wait longest" }).last();
    assert.match(await textOf(lanes), /acme charges 300 calls in 9 min 5\d s in 4 min 5\d s (4 min 59 s|5 min) sooner/);
    await picture(page, "whatif");
    assert.equal((await server.ask("GET", "/v1/limits/stripe")).definition.limit, 60);
  }));

test("who is not served in the time is told so", () =>
  onPage(browser, server, "#/whatif/stripe", async (page) => {
    await page.getByLabel("Limit, in units").fill("1");
    await page.getByLabel("Per", { exact: true }).fill("1h");
    await page.getByLabel("Look ahead").selectOption("1h");
    await page.getByRole("button", { name: "Look ahead" }).click();
    await page.getByText(/of 600 calls start within an hour/).waitFor();
    await page
      .getByText(/^(1|none) within an hour$/)
      .first()
      .waitFor();
  }));

test("what cannot be is refused with the reason, and the last answer stays", () =>
  onPage(
    browser,
    server,
    "#/whatif/stripe",
    async (page) => {
      await page.getByLabel("Limit, in units").fill("0");
      await page.getByRole("button", { name: "Look ahead" }).click();
      await page.getByRole("alert").getByText("the limit is a whole number from 1 on").waitFor();
      await page.getByLabel("Limit, in units").fill("10");
      await page.getByLabel("A call takes").fill("soon");
      await page.getByRole("button", { name: "Look ahead" }).click();
      await page.getByRole("alert").getByText("takes").waitFor();
    },
    { expected: /status of 4\d\d/ },
  ));

test("what was thought of is put in force once it is agreed to", () =>
  onPage(browser, server, "#/whatif/stripe", async (page) => {
    await page.getByLabel("Limit, in units").fill("90");
    await page.getByRole("button", { name: "Change it for real" }).click();
    await agree(page, "Change");
    await page.getByText("now 90 per minute, burst 1").waitFor();
    assert.equal((await server.ask("GET", "/v1/limits/stripe")).definition.limit, 90);
  }));
