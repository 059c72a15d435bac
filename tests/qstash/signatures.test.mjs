// What deliveries are signed with, before and after the keys change. That every delivery of every other scenario is
// signed, too, is checked as it arrives: see `World`.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { sdk, World } from "./harness.mjs";

describe("signatures", () => {
  let world;
  before(async () => (world = await World.start()));
  after(() => world.stop());

  async function delivered(path, body) {
    await world.client.publish({ url: world.url(path), body });
    const [{ headers }] = await world.destination.arrived(path);
    return { signature: headers["upstash-signature"], body, url: world.url(path) };
  }

  function receiver({ current, next }) {
    return new sdk.Receiver({ currentSigningKey: current, nextSigningKey: next });
  }

  it("has the claims of QStash", async () => {
    const { signature, url } = await delivered("/ok/claims?a=%2F", "body");
    const claims = JSON.parse(Buffer.from(signature.split(".")[1], "base64url"));
    assert.equal(claims.iss, "Upstash");
    assert.equal(claims.sub, url);
    assert.equal(claims.exp - claims.iat, 300);
    assert.equal(claims.nbf, 0);
    assert.equal(typeof claims.jti, "string");
    assert(!claims.aud);
  });

  it("is good for one body, one url and one pair of keys", async () => {
    const request = await delivered("/ok/good", "body");
    assert(await receiver(world.keys).verify(request));
    for (const other of [{ body: "other" }, { url: world.url("/ok/other") }]) {
      await assert.rejects(receiver(world.keys).verify({ ...request, ...other }), sdk.SignatureError);
    }
    const stranger = receiver({ current: "sig_stranger", next: "sig_stranger2" });
    await assert.rejects(stranger.verify(request), sdk.SignatureError);
  });

  it("changes keys so that receivers keep up", async () => {
    const old = world.keys;
    assert(/^sig_/.test(old.current) && /^sig_/.test(old.next));
    const rotated = await world.server.ask("POST", "/v2/keys/rotate");
    assert.equal(rotated.status, 200, rotated.text);
    assert.equal(rotated.json.current, old.next);
    assert.match(rotated.json.next, /^sig_/);
    assert(![old.current, old.next].includes(rotated.json.next));
    await world.trustKeys();
    assert.deepEqual(world.keys, rotated.json);
    const once = await delivered("/ok/rotated-once", "body");
    assert(await receiver(world.keys).verify(once));
    assert(await receiver(old).verify(once), "who has the old pair knows the new key as the next");
    await world.server.ask("POST", "/v2/keys/rotate");
    await world.trustKeys();
    const twice = await delivered("/ok/rotated-twice", "body");
    assert(await receiver(world.keys).verify(twice));
    await assert.rejects(receiver(old).verify(twice), sdk.SignatureError);
  });

  it("keeps its keys over a restart", async () => {
    await world.server.stop();
    await world.startAgain();
    const { json } = await world.server.ask("GET", "/v2/keys");
    assert.deepEqual(json, world.keys);
    await delivered("/ok/after-restart", "body");
  });
});
