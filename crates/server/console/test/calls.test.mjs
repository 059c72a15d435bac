// Calls: found by queue, by state, in the history and by id; one call's story; and the dead.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { agree, onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

let server, browser, ids;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  ids = await server.fill({
    limit: "stripe",
    rule: { rule: "token_bucket", limit: 3, per: "1h" },
    queue: "charges",
    lanes: ["acme", "globex"],
    calls: 6,
  });
  await server.work("charges", "done");
  await server.work("charges", "retry");
});
after(() => Promise.all([server.stop(), browser.close()]));

const dead = async () => (await server.ask("GET", "/v1/dead?queue=charges")).calls.map((call) => call.id);

test("calls of a queue are filtered by lane and state", () =>
  onPage(browser, server, "#/calls", async (page) => {
    const table = page.getByRole("table", { name: "Calls of charges" });
    await table.getByText("waiting", { exact: true }).first().waitFor();
    await page.getByLabel("State").selectOption("dead");
    await table.getByText("waiting", { exact: true }).first().waitFor({ state: "detached" });
    await table.getByText("dead", { exact: true }).waitFor();
    assert.equal(await table.getByRole("row").count(), 2);
    await page.getByLabel("State").selectOption("");
    await page.getByLabel("Lane").fill("globex");
    await page.getByLabel("Lane").press("Enter");
    await table.getByText("acme", { exact: true }).first().waitFor({ state: "detached" });
    await table.getByText("globex", { exact: true }).first().waitFor();
    await picture(page, "calls");
  }));

test("who goes to another page is not brought back by a filter of the last", () =>
  onPage(browser, server, "#/calls?queue=charges", async (page) => {
    await page.getByLabel("State").waitFor();
    // The browser tells of the new address only after this task.
    await page.evaluate(() => {
      const state = [...document.querySelectorAll("label")].find((label) => label.textContent.startsWith("State"));
      location.hash = "#/schedules";
      state.querySelector("select").value = "dead";
      state.querySelector("select").dispatchEvent(new Event("change", { bubbles: true }));
    });
    await page.getByRole("heading", { name: "Schedules", level: 1, exact: true }).waitFor();
  }));

test("messages of QStash's API are found by label, address and key, and lead to their calls", async () => {
  const publish = (to, headers) => {
    const later = { "upstash-delay": "1h", "upstash-method": "POST", ...headers };
    return fetch(`${server.url}/v2/publish/${to}`, { method: "POST", headers: later, body: "1" });
  };
  const blue = await publish("https://one.example/hook", { "upstash-label": "blue" });
  const { messageId } = await blue.json();
  const flow = { "upstash-flow-control-key": "tenant", "upstash-flow-control-value": "rate=5" };
  await publish("https://two.example/hook", { "upstash-label": "green", ...flow });
  await onPage(browser, server, "#/calls?view=messages", async (page) => {
    const table = page.getByRole("table", { name: "Messages" });
    await table.getByText("https://one.example/hook").waitFor();
    await table.getByText("https://two.example/hook").waitFor();
    await picture(page, "messages");
    await find(page, "Label", "blue");
    await table.getByText("https://two.example/hook").waitFor({ state: "detached" });
    await find(page, "Label", "");
    await find(page, "Flow-control key", "tenant");
    await table.getByText("https://one.example/hook").waitFor({ state: "detached" });
    await table.getByRole("link", { name: "tenant" }).waitFor();
    await find(page, "Flow-control key", "");
    await find(page, "Address", "https://one.example/hook");
    await table.getByText("https://two.example/hook").waitFor({ state: "detached" });
    await page.getByLabel("State").selectOption("DELIVERED");
    await page.getByText("No message is like that").waitFor();
    await page.getByLabel("State").selectOption("CREATED");
    await table.getByRole("link", { name: messageId.replace("msg_", "") }).click();
    await page.waitForURL(new RegExp(`#/calls/${messageId.replace("msg_", "")}$`));
  });
});

async function find(page, label, value) {
  await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByLabel(label, { exact: true }).press("Enter");
}

test("the history is searched by how calls ended", () =>
  onPage(browser, server, "#/calls?view=history", async (page) => {
    const table = page.getByRole("table", { name: "History" });
    await table.getByText("ended: done after 1 attempt").waitFor();
    await page.getByLabel("End").selectOption("dead");
    await table.getByText("ended: done after 1 attempt").waitFor({ state: "detached" });
    await table.getByText("ended: dead after 1 attempt").waitFor();
    await picture(page, "history");
  }));

test("a call found by its id tells why it waits, what it owes and what was sent", () =>
  onPage(browser, server, "#/calls", async (page) => {
    // As QStash writes it.
    await page.getByLabel("Call", { exact: true }).fill(`msg_${ids.at(-1)}`);
    await page.getByLabel("Call", { exact: true }).press("Enter");
    await page.getByRole("heading", { name: `Call ${ids.at(-1)}` }).waitFor();
    const why = page.getByRole("region", { name: "Why it waits" });
    await why.getByText("calls of its lane come first", { exact: false }).waitFor();
    await page.getByRole("region", { name: "Request" }).getByText('"index": 5').waitFor();
    await page.getByRole("region", { name: "What it is" }).getByRole("link", { name: "stripe" }).waitFor();
    await picture(page, "call-waiting");
  }));

test("a call that is dead tells every attempt with its report, and is revived", () =>
  onPage(browser, server, "#/dead?queue=charges", async (page) => {
    const [id] = await dead();
    await page.getByRole("link", { name: id, exact: true }).click();
    const story = page.getByRole("region", { name: "Story" });
    await story.getByText("attempt 1 failed for good", { exact: false }).waitFor();
    await story.getByText('"status": 502').waitFor();
    await picture(page, "call-dead");
    await page.getByRole("button", { name: "Revive" }).click();
    await agree(page, "Revive");
    await page.getByRole("status").filter({ hasText: "1 call waits again" }).waitFor();
    assert.deepEqual(await dead(), []);
  }));

test("a waiting call is cancelled", () =>
  onPage(browser, server, "#/calls", async (page) => {
    await page.goto(`${server.url}/#/calls/${ids[4]}`);
    await page.getByRole("button", { name: "Cancel the call" }).click();
    await agree(page, "Cancel it");
    await page.getByText("ended: cancelled", { exact: false }).waitFor();
    assert.equal((await server.ask("GET", `/v1/calls/${ids[4]}`)).state, "cancelled");
  }));

test("of the dead some are chosen, and all are revived at a chosen rate, exported or deleted", async () => {
  await server.ask("PUT", "/v1/queues/mails", { failures_max: 1, order: { parallel: 10 } });
  await server.ask(
    "POST",
    "/v1/queues/mails/calls",
    Array.from({ length: 6 }, (_, index) => ({ lane: "ana", body: { index } })),
  );
  await server.work("mails", "dead", 6);
  const left = async () => (await server.ask("GET", "/v1/queues/mails")).dead;
  const body = async (page) => {
    await page.getByRole("region", { name: "6 dead calls" }).waitFor();
    await picture(page, "dead");
    assert.deepEqual(await exported(page), [0, 1, 2, 3, 4, 5]);
    // One that goes while it is exported is left out, and said to be.
    const gone = /v1\/calls\/\d+$/;
    await page.route(gone, (route) => route.fulfill({ status: 404, json: { detail: "gone" } }), { times: 1 });
    assert.equal((await exported(page)).length, 5);
    await page.getByRole("status").filter({ hasText: "5 calls exported, a line of JSON each; 1 call" }).waitFor();

    const boxes = page.getByRole("checkbox", { name: /Choose call/ });
    await boxes.nth(0).check();
    await boxes.nth(1).check();
    await page.getByRole("button", { name: "Delete 2" }).click();
    await agree(page, "Delete");
    await page.getByRole("region", { name: "4 dead calls" }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll("td input[type=checkbox]").length === 4);
    await boxes.nth(0).check();
    await page.getByRole("button", { name: "Revive 1" }).click();
    await agree(page, "Revive");
    await page.getByRole("region", { name: "3 dead calls" }).waitFor();

    await page.getByRole("button", { name: "Revive all" }).click();
    await page.getByLabel("One every").fill("1s");
    await page.getByText("one every 1s: that takes 3.0 s", { exact: false }).waitFor();
    await agree(page, "Revive all");
    assert.equal(await left(), 0);
    await server.work("mails", "dead", 1);
    await page.getByRole("button", { name: "Delete all" }).click();
    await agree(page, "Delete all");
    await page.getByText("Nobody is dead here").waitFor();
  };
  await onPage(browser, server, "#/dead?queue=mails", body, { expected: /status of 404/ });
});

/** What was in the bodies of the calls that the page exports. */
async function exported(page) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Export" }).click(),
  ]);
  const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
  return lines.map((line) => JSON.parse(line).body.index);
}

test("a dead call is deleted from its story, which then offers nothing", async () => {
  await server.ask("POST", "/v1/queues/mails/calls", { lane: "bea", body: 1 });
  const [{ id }] = await server.work("mails", "dead");
  await onPage(browser, server, `#/calls/${id}`, async (page) => {
    await page.getByRole("button", { name: "Delete" }).click();
    await agree(page, "Delete");
    await page.getByRole("button", { name: "Delete" }).waitFor({ state: "detached" });
    await page.getByRole("region", { name: "Story" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Revive" }).count(), 0);
  });
});

test("an instant in the address that is none is told, and the page stands", () =>
  onPage(
    browser,
    server,
    "#/calls?view=history&from=yesterday",
    async (page) => {
      await page.getByRole("alert").waitFor();
      assert.equal(await page.getByLabel("From").inputValue(), "");
    },
    { expected: /status of 400/ },
  ));
