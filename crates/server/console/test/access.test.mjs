// Who may look and who may act: the token, a reader who changes nothing, and a page that loads nothing from elsewhere.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { goTo, onPage, picture, startBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

/** What the browser itself writes when the server says 401. */
const REFUSED = { expected: /status of 401/ };
const ADMIN = "an-admin-of-this-test";

let server, browser, folder, reader;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tollgate-access-"));
  const made = JSON.parse(
    execFileSync(process.env.TOLLGATE_BIN, ["token", "new", "--name", "eve", "--role", "read", "--json"], {
      encoding: "utf8",
    }),
  );
  reader = made.token;
  await writeFile(join(folder, "tollgate.toml"), `[[tokens]]\nname = "eve"\nhash = "${made.hash}"\nroles = ["read"]\n`);
  [server, browser] = await Promise.all([
    startServer({ token: ADMIN, arguments: ["--config", join(folder, "tollgate.toml")] }),
    startBrowser(),
  ]);
  await server.fill({
    limit: "stripe",
    rule: { rule: "token_bucket", limit: 1, per: "1h" },
    queue: "charges",
    lanes: ["acme"],
    calls: 2,
  });
  await server.work("charges", "dead");
});
after(async () => {
  await Promise.all([server.stop(), browser.close()]);
  await rm(folder, { recursive: true });
});

async function lookIn(page, token, isRemembered = false) {
  await page.getByLabel("Token", { exact: true }).fill(token);
  if (isRemembered) await page.getByLabel("Remember it in this browser").check();
  await page.getByRole("button", { name: "Look in" }).click();
}

test("a token is asked for, and asked for again if it is wrong; it is in no address", () =>
  onPage(
    browser,
    server,
    "#/limits",
    async (page) => {
      const asked = [];
      page.on("request", (request) => asked.push(request.url()));
      await page.getByRole("heading", { name: "This server wants a token" }).waitFor();
      await picture(page, "token");
      // The browser lets a second one through.
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await lookIn(page, "wrong-token");
      await page.getByText("It does not know the one it was shown.", { exact: false }).waitFor();
      await lookIn(page, ADMIN);
      await page.getByRole("link", { name: "stripe", exact: true }).waitFor();
      assert.ok(asked.length > 3 && asked.every((url) => !url.includes(ADMIN)));
      assert.deepEqual(
        await page.evaluate(() => [
          sessionStorage.getItem("tollgate.token") !== null,
          localStorage.getItem("tollgate.token"),
        ]),
        [true, null],
      );
      await page.reload();
      await page.getByRole("link", { name: "stripe", exact: true }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "This server wants a token" }).waitFor();
      await lookIn(page, ADMIN, true);
      await page.getByRole("link", { name: "stripe", exact: true }).waitFor();
      assert.equal(await page.evaluate(() => localStorage.getItem("tollgate.token")), ADMIN);
      // One that is not to be remembered takes the place of one that was.
      await page.evaluate(() => sessionStorage.setItem("tollgate.token", "no-longer-known"));
      await page.reload();
      await lookIn(page, reader);
      await page.getByText("eve · read-only").waitFor();
      assert.equal(await page.evaluate(() => localStorage.getItem("tollgate.token")), null);
      await page.setViewportSize({ width: 390, height: 844 });
      await page.getByRole("button", { name: "Menu" }).click();
      await picture(page, "phone-menu");
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "This server wants a token" }).waitFor();
    },
    REFUSED,
  ));

test("what one token showed is gone with it", () =>
  onPage(
    browser,
    server,
    "#/events",
    async (page) => {
      await lookIn(page, ADMIN);
      await page.getByRole("region", { name: "Following" }).waitFor();
      await server.ask("POST", "/v1/queues/charges/calls", { lane: "acme", body: 1 });
      await page.getByRole("cell", { name: "enqueued" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("cell", { name: "enqueued" }).waitFor({ state: "detached" });
      await lookIn(page, reader);
      await page.getByRole("region", { name: "Following" }).waitFor();
      assert.equal(await page.getByRole("cell", { name: "enqueued" }).count(), 0);
    },
    REFUSED,
  ));

test("who may only read sees everything and is offered nothing to change", () =>
  onPage(
    browser,
    server,
    "#/overview",
    async (page) => {
      await lookIn(page, reader);
      await page.getByText("eve · read-only").waitFor();
      const [dead] = (await server.ask("GET", "/v1/dead?queue=charges")).calls;
      for (const name of [
        "limits",
        "limits/stripe",
        "queues",
        "queues/charges",
        "dead?queue=charges",
        "schedules",
        "runs",
        `calls/${dead.id}`,
      ]) {
        await goTo(page, server, name);
        const words = await page.getByRole("main").getByRole("button").allTextContents();
        const harmless = ["10 min", "1 day", "Busiest", "By name", "Export", "Living", "Ended", "Copy"];
        assert.deepEqual(
          words.filter((word) => !harmless.includes(word)),
          [],
          name,
        );
      }
      await picture(page, "read-only");
    },
    REFUSED,
  ));

test("the page comes with its policy, and its own parts break none of it", async () => {
  const response = await fetch(server.url);
  assert.match(response.headers.get("content-security-policy"), /default-src 'none'.*frame-ancestors 'none'/);
  await onPage(
    browser,
    server,
    "#/overview",
    async (page) => {
      await lookIn(page, ADMIN);
      await page.getByRole("img", { name: /Through the gate/ }).waitFor();
      // Whatever is not the page's own is refused by the browser.
      const ran = await page.evaluate(async () => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        return window.ran === true;
      });
      assert.equal(ran, false);
    },
    { expected: /status of 401|Content Security Policy|policy: script-src/ },
  );
});
