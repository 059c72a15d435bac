// An application in development finds Tollgate by itself.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { Destination } from "./receiver.mjs";
import { Server } from "./harness.mjs";

// As the SDK has them in its package.
const DEV = {
  token: "eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=",
  current: "sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r",
  next: "sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs",
};

// An application that knows nothing but that it is in development.
const APPLICATION = `
  const sdk = require("@upstash/qstash");
  (async () => {
    const { messageId } = await new sdk.Client().publishJSON({ url: process.argv[1], body: { from: "an application" } });
    console.log(JSON.stringify({ messageId }));
  })();
`;

// Verifies a delivery with what the SDK knows of development, and nothing else.
const RECEIVER = `
  const sdk = require("@upstash/qstash");
  const [signature, body, url] = process.argv.slice(1);
  new sdk.Receiver().verify({ signature, body, url }).then((good) => console.log(good));
`;

describe("development", () => {
  let [server, destination] = [];
  before(async () => {
    destination = await Destination.start();
    // No token and no allowed address: what is needed for development is there without.
    const env = { TOLLGATE_TOKEN: undefined, TOLLGATE_PUSH_ALLOW_ADDRESSES: undefined };
    server = await Server.start({ command: ["dev", "--port", "0"], env });
    // Otherwise the SDK would look for another server on the network.
    const { json } = await server.ask("GET", "/v2/keys", { token: DEV.token });
    assert.deepEqual(json, { current: DEV.current, next: DEV.next });
  });
  after(async () => {
    await destination.stop();
    await server.stop();
    await server.remove();
  });

  async function run(program, ...given) {
    const env = {
      PATH: process.env.PATH,
      HOME: server.folder,
      QSTASH_DEV: "true",
      QSTASH_DEV_PORT: new URL(server.url).port,
    };
    const options = { env, cwd: process.env.QSTASH_PACKAGES };
    const { stdout } = await promisify(execFile)(process.execPath, ["-e", program, ...given], options);
    return JSON.parse(stdout.trim().split("\n").at(-1));
  }

  it("needs neither url nor token, and delivers to this machine", async () => {
    const { messageId } = await run(APPLICATION, destination.url("/ok/dev"));
    const [request] = await destination.arrived("/ok/dev");
    assert.equal(request.headers["upstash-message-id"], messageId);
    assert.deepEqual(JSON.parse(request.body), { from: "an application" });
    const signature = request.headers["upstash-signature"];
    assert.equal(await run(RECEIVER, signature, request.body, destination.url("/ok/dev")), true);
  });

  it("listens on this machine alone", () => {
    assert.match(new URL(server.url).hostname, /^(127\.0\.0\.1|localhost|\[::1\])$/);
  });
});
