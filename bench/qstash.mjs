// How many messages a second @upstash/qstash publishes here: one at a time, 64 at a time, and in batches of 100.
// Messages are for later, so that deliveries take no part; a server of its own, in a new folder, is best.
//
//   QSTASH_URL=… QSTASH_TOKEN=… QSTASH_PACKAGES=target/qstash/node node bench/qstash.mjs
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const packages = resolve(process.env.QSTASH_PACKAGES ?? "target/qstash/node");
const { Client } = createRequire(join(packages, "package.json"))("@upstash/qstash");
const client = new Client({ baseUrl: process.env.QSTASH_URL, token: process.env.QSTASH_TOKEN, enableTelemetry: false });
// Anew each time: the SDK changes what it is given.
const message = () => ({ url: "http://127.0.0.1:9/a", body: { text: "x".repeat(89) }, delay: 3600 });
const MESSAGES = 4_000;

async function measure(name, side_by_side, batch) {
  const publish = () =>
    batch === 1 ? client.publishJSON(message()) : client.batchJSON(Array.from({ length: batch }, message));
  let left = MESSAGES / batch;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: side_by_side }, async () => {
      while (left-- > 0) await publish();
    }),
  );
  const rate = Math.round(MESSAGES / ((performance.now() - began) / 1e3));
  console.log(`| ${name} | ${rate.toLocaleString("en-US")} |`);
}

await measure("to warm up", 8, 1);
await measure("one at a time", 1, 1);
await measure("64 at a time", 64, 1);
await measure("in batches of 100", 4, 100);
