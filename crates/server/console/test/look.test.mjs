// The frame: every page on a phone and in both colours, the keyboard, empty states that teach, and who may do what.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { goTo, onPage, openPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

const PAGES = ["overview", "limits", "flow", "queues", "calls", "dead", "schedules", "runs", "whatif", "events"];

let server, browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
});
after(() => Promise.all([server.stop(), browser.close()]));

test("where there is nothing yet, each page says what it is for and how to begin", () =>
  onPage(browser, server, "#/overview", async (page) => {
    await page.getByText("The first minute").waitFor();
    await picture(page, "overview-empty");
    const taught = {
      limits: "curl -X PUT",
      flow: "curl -X PUT",
      queues: "curl -X PUT",
      calls: "curl -X PUT",
      schedules: "curl -X PUT",
      runs: "curl -X PUT",
      whatif: "curl -X PUT",
      dead: "failures_max",
      events: "appears here",
    };
    for (const [name, text] of Object.entries(taught)) {
      await page.goto(`${server.url}/#/${name}`);
      await page.getByRole("main").getByText(text, { exact: false }).first().waitFor();
    }
  }));

test("the command of an empty state works as it stands", async () => {
  await onPage(browser, server, "#/limits", async (page) => {
    const command = await page.locator(".command pre").textContent();
    const [, address, body] = /PUT '(\S+)' .* -d '(.*)'/.exec(command);
    const response = await fetch(address, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body,
    });
    assert.equal(response.status, 200);
    await page.getByRole("link", { name: "stripe", exact: true }).waitFor();
  });
});

let filling;
/** Gives the server something to show, once: what is before shows that there is nothing. */
function filled() {
  filling ??= (async () => {
    const rule = { rule: "token_bucket", limit: 2, per: "1h" };
    await server.fill({ limit: "openai", rule, queue: "charges", lanes: ["acme", "globex"], calls: 4 });
    await server.work("charges", "done", 2);
    await server.ask("POST", "/v1/meters/openai/close", { for: "10m", reason: "429 from upstream" });
  })();
  return filling;
}

test("the overview tells what bites, until when, and who is the noisy tenant", async () => {
  await filled();
  await onPage(
    browser,
    server,
    "#/overview",
    async (page) => {
      const bites = page.getByRole("region", { name: "Limits that bite" });
      await bites.getByText("429 from upstream", { exact: false }).waitFor();
      await bites.getByText("2 lanes", { exact: true }).waitFor();
      await page.getByRole("region", { name: "Busiest lanes" }).getByRole("link", { name: "acme" }).waitFor();
      await page.getByRole("link", { name: /^Waiting 6 calls/ }).waitFor();
      await page.getByRole("link", { name: /^Admitted \d+\.\d tolls per second/ }).waitFor();
      await picture(page, "overview-dark");
    },
    { colorScheme: "dark" },
  );
});

for (const colorScheme of ["dark", "light"]) {
  test(`every page fits a phone, ${colorScheme}, and has its landmarks`, async () => {
    await filled();
    await onPage(
      browser,
      server,
      "#/overview",
      async (page) => {
        for (const name of [...PAGES, "limits/openai", "queues/charges", "flow/openai", "calls/0"]) {
          await goTo(page, server, name);
          const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(beyond <= 0, `${name} is ${beyond} pixels too wide`);
          assert.equal(await page.getByRole("main").count(), 1);
          // A picture takes as long as all else.
          if (colorScheme === "dark" || name === "overview")
            await picture(page, `phone-${colorScheme}-${name.replace("/", "-")}`);
        }
        await page.getByRole("button", { name: "Menu" }).click();
        await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Dead" }).click();
        await page.waitForURL(/#\/dead/);
      },
      { viewport: { width: 390, height: 844 }, colorScheme },
    );
  });
}

test("letters stand out from what is behind them, in both colours", async () => {
  await filled();
  for (const colorScheme of ["dark", "light"]) {
    await onPage(
      browser,
      server,
      "#/overview",
      async (page) => {
        await page.getByRole("table").getByText("429 from upstream", { exact: false }).waitFor();
        await page.getByRole("img", { name: /Through the gate/ }).waitFor();
        const poor = await page.evaluate(poorContrasts);
        assert.deepEqual(poor, [], colorScheme);
      },
      { colorScheme },
    );
  }
});

test("the colours follow the system until they are chosen, and stay chosen", () =>
  onPage(
    browser,
    server,
    "#/overview",
    async (page) => {
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const dark = await ground();
      await page.emulateMedia({ colorScheme: "light" });
      assert.notEqual(await ground(), dark);
      await page.getByRole("button", { name: "Auto" }).click();
      assert.equal(await ground(), dark);
      await page.reload();
      assert.equal(await ground(), dark);
      await page.getByRole("button", { name: "Dark" }).click();
      await page.getByRole("button", { name: "Light" }).waitFor();
      await picture(page, "overview-light");
    },
    { colorScheme: "dark" },
  ));

test("the keyboard is enough: pages, search, help and back", async () => {
  await filled();
  await onPage(browser, server, "#/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview", level: 1, exact: true }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.getByRole("heading", { name: "Dead", exact: true }).waitFor();
    await page.waitForFunction(() => document.activeElement.id === "main");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys and words" }).waitFor();
    await picture(page, "help");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.type("opena");
    await page.getByRole("option", { name: "limit openai" }).waitFor();
    await picture(page, "search");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "openai", level: 1, exact: true }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("dlq");
    await page.getByRole("option", { name: /Dead/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Dead", exact: true }).waitFor();
    await page.keyboard.press("Tab");
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
  });
});

test("what is opened while another dialog closes stays open", async () => {
  await filled();
  await onPage(browser, server, "#/overview", async (page) => {
    await page.getByRole("heading", { name: "Overview", level: 1, exact: true }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys and words" }).waitFor();
    // The browser tells of the close only after this task, as it does when Escape and `/` come quickly.
    const told = page.evaluate(() => {
      const help = document.querySelector("dialog");
      const closed = new Promise((resolve) => help.addEventListener("close", () => resolve()));
      const focused = document.activeElement;
      help.close();
      focused.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
      return closed;
    });
    await told;
    await page.keyboard.type("opena");
    await page.getByRole("option", { name: "limit openai" }).waitFor();
  });
});

test("a server that goes away is said to be away", async () => {
  const other = await startServer();
  const { page, context } = await openPage(browser, other, "#/overview");
  await page.getByRole("button", { name: "Live" }).waitFor();
  await other.stop();
  await page.getByText("The server does not answer").waitFor();
  await page.getByRole("button", { name: "No answer" }).waitFor();
  await context.close();
});

/** What is written in a colour too close to that behind it: less than 4.5 to 1. */
function poorContrasts() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const channels = (colour, below) => {
    canvas.fillStyle = below;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) =>
    rgb
      .map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
      .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    if (!element) return "rgb(255, 255, 255)";
    const rgb = channels(getComputedStyle(element).backgroundColor, behind(element.parentElement));
    return `rgb(${rgb.join(",")})`;
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes]
      .filter((node) => node.nodeType === 3 && node.textContent.trim())
      .map((node) => node.textContent.trim())[0];
    if (!text || !element.checkVisibility() || element.closest("svg")) continue;
    const ground = behind(element);
    const [a, b] = [light(channels(getComputedStyle(element).color, ground)), light(channels(ground, ground))].sort(
      (x, y) => y - x,
    );
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${text.slice(0, 40)} ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return poor;
}
