// Where messages go: urls as they were given, whatever is in them, and nowhere else.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { refused, Server, SIDE_BY_SIDE, World } from "./harness.mjs";

describe("destinations", SIDE_BY_SIDE, () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  // As the SDK sends them, after what `URL` makes of them.
  const paths = {
    "a query": "/ok/query?a=1&b=two&a=3",
    "encoded slashes": "/ok/encoded/a%2Fb%2fc?next=%2Fhome%3Fx%3D1",
    "an url in the query": "/ok/nested?to=https://example.com/x?y=1",
    "an encoded question mark": "/ok/mark%3Fnot-a-query",
    "an encoded percent sign": "/ok/percent%2525",
    "a plus sign and an encoded space": "/ok/plus+and%20space?q=a+b%20c",
    "two slashes": "/ok//two//slashes/",
    "signs that urls may have": "/ok/signs;a=1,b/@me/~x/!$&'()*",
    "an empty value and a name alone": "/ok/empty?a=&b&c=",
    "a colon": "/ok/colon:8080/x:y",
  };
  for (const [what, path] of Object.entries(paths)) {
    it(`keeps ${what}`, async () => {
      await world.client.publish({ url: world.url(path) });
      const [request] = await world.destination.arrived(path);
      assert.equal(request.url, path);
    });
  }

  it("takes letters that urls have to encode", async () => {
    await world.client.publish({ url: world.url("/ok/größe?name=zoë smith") });
    const [request] = await world.destination.arrived("/ok/gr%C3%B6%C3%9Fe");
    assert.equal(request.url, "/ok/gr%C3%B6%C3%9Fe?name=zo%C3%AB%20smith");
  });

  it("sends to the root where there is no path", async () => {
    await world.client.publish({ url: world.destination.origin, body: "to the root" });
    await world.destination.until(() => world.destination.requests.some(({ url }) => url === "/"), "the root");
  });

  it("does without a fragment", async () => {
    await world.client.publish({ url: world.url("/ok/fragment?a=1#part") });
    const [request] = await world.destination.arrived("/ok/fragment");
    assert.equal(request.url, "/ok/fragment?a=1");
  });

  it("takes an url that was encoded as a whole", async () => {
    const path = `/v2/publish/${encodeURIComponent(world.url("/ok/whole"))}`;
    const answer = await world.server.ask("POST", path, { body: "" });
    assert(answer.status < 300, answer.text);
    await world.destination.arrived("/ok/whole");
  });

  it("takes an url that lost a slash on its way", async () => {
    const path = `/v2/publish/${world.url("/ok/merged").replace("//", "/")}`;
    const answer = await world.server.ask("POST", path, { body: "" });
    assert(answer.status < 300, answer.text);
    await world.destination.arrived("/ok/merged");
  });

  it("keeps the token in the query to itself", async () => {
    const path = `/v2/publish/${world.url("/ok/token")}?qstash_token=token-of-the-scenarios&a=1`;
    const answer = await world.server.ask("POST", path, { token: null, body: "" });
    assert(answer.status < 300, answer.text);
    const [request] = await world.destination.arrived("/ok/token");
    assert.equal(request.url, "/ok/token?a=1");
  });

  it("refuses other schemes, in the words of QStash", async () => {
    const invalid = /invalid destination url: endpoint has invalid scheme, add http:\/\/ or https:\/\//;
    await refused(world.client.publish({ url: "ftp://example.com/x" }), 400, invalid);
    await refused(world.client.publish({ url: "example.com/without-a-scheme" }), 400, invalid);
  });

  it("refuses this machine unless it is allowed", async () => {
    const server = await Server.start({ env: { TOLLGATE_PUSH_ALLOW_ADDRESSES: "" } });
    try {
      const publishing = server.client().publish({ url: world.url("/ok/forbidden") });
      await refused(publishing, 400, /invalid destination url: endpoint resolves to a loopback address/);
    } finally {
      await server.stop();
      await server.remove();
    }
    assert.deepEqual(world.destination.urls("/ok/forbidden"), []);
  });
});
