// A real browser, which reports whatever the page complains of, and keeps pictures of what it saw.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PICTURES = process.env.TOLLGATE_PICTURES ?? "target/console";
/** Longest wait for what the page should show: it looks once a second. */
const PATIENCE_MS = 15_000;

/** What is removed may be looked at once more before the page goes on: the browser itself writes that it was not found. */
export const GONE = { expected: /status of 404/ };

export async function startBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // As root Chromium has no sandbox of its own.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

/** Opens a page of the console in a context of its own. Whatever goes wrong on it fails the test that closes it. */
export async function openPage(browser, server, hash, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.addInitScript(() =>
    addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`)),
  );
  await page.goto(`${server.url}/${hash}`);
  return { page, context, complaints };
}

/** Runs a test on a page, and fails it if the page complained. */
export async function onPage(browser, server, hash, test, options = {}) {
  const { page, context, complaints } = await openPage(browser, server, hash, options);
  try {
    await test(page);
    assert.deepEqual(
      complaints.filter((text) => !options.expected?.test(text)),
      [],
    );
  } finally {
    await context.close();
  }
}

/** Waits until the page has looked at all it shows. */
export async function settled(page) {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForFunction(
    () => ![...document.querySelectorAll(".loading")].some((element) => element.textContent.startsWith("Looking at")),
  );
}

/** Goes to a page of the console, and waits until it is the one that is shown and has looked at all it shows. */
export async function goTo(page, server, name) {
  await page.goto(`${server.url}/#/${name}`);
  // The title is the last that changes.
  await page.waitForFunction((wanted) => {
    const [of, ...names] = wanted.split("?")[0].split("/");
    const isCurrent = document.querySelector("nav [aria-current]")?.getAttribute("href") === `#/${of}`;
    const title = document.title.split(" · ");
    return isCurrent && title.length === names.length + 2 && names.every((name, index) => title[index] === name);
  }, name);
  await settled(page);
}

export async function picture(page, name) {
  await mkdir(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`), animations: "disabled" });
}

/** Agrees to what the dialog says. */
export async function agree(page, verb, fields = {}) {
  const dialog = page.getByRole("dialog");
  for (const [label, value] of Object.entries(fields)) {
    const input = dialog.getByLabel(label, { exact: true });
    if ((await input.evaluate((element) => element.tagName)) === "SELECT") await input.selectOption(value);
    else await input.fill(value);
  }
  await dialog.getByRole("button", { name: verb, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}
