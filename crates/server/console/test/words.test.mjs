// What is computed on the page: durations, rules in words, what a limit allows in any time, and pictures of runs.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { build } from "esbuild";

const MODULES = ["format", "pages/flow/allowance", "pages/flow/track", "pages/runs/graph"];

let told;
before(async () => {
  const contents = MODULES.map((name) => `export * from "./${name}";`).join("\n");
  const stdin = { contents, resolveDir: new URL("../src", import.meta.url).pathname, loader: "ts" };
  const { outputFiles } = await build({ stdin, bundle: true, format: "esm", write: false });
  told = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
});

test("durations are read as the API writes them and told in two units", () => {
  const { spanOf, span } = told;
  assert.deepEqual(
    ["250ms", "1h30m", "90", "1d", "864ms221us352ns"].map(spanOf),
    [250, 5_400_000, 90_000, 86_400_000, 864.221352],
  );
  assert.deepEqual([0, 999, 1_500, 59_000, 60_000, 3_723_000, 90_000_000].map(span), [
    "0 ms",
    "999 ms",
    "1.5 s",
    "59 s",
    "1 min",
    "1 h 2 min",
    "1 d 1 h",
  ]);
});

test("instants are told against the present", () => {
  const { relative } = told;
  const now = Date.parse("2026-11-16T12:00:00Z");
  assert.equal(relative("2026-11-16T12:00:04Z", now), "in 4.0 s");
  assert.equal(relative("2026-11-16T11:58:00Z", now), "2 min ago");
  assert.equal(relative("2026-11-16T12:00:00.400Z", now), "now");
});

test("rules are told in words", () => {
  const { definitionInWords } = told;
  const rules = [
    [{ rule: "token_bucket", limit: 100, per: "1m" }, "100 per minute"],
    [
      { rule: "token_bucket", limit: 100, per: "60s", burst: 150, guard: "50ms" },
      "100 per minute, burst 150, guard 50ms",
    ],
    [{ rule: "fixed_window", limit: 10_000, per: "1d", align: "Europe/Berlin" }, "10,000 each day in Europe/Berlin"],
    [
      {
        rules: [
          { rule: "sliding_window", limit: 5, per: "30s" },
          { rule: "concurrency", limit: 2 },
        ],
      },
      "5 in any 30 s and 2 at a time",
    ],
    [
      { rule: "token_bucket", limit: 600, per: "1m", burst: 600, ahead: "10ms", spread: true },
      "600 per minute, taken ahead for 10ms, spread",
    ],
  ];
  for (const [definition, words] of rules) assert.equal(definitionInWords(definition), words);
});

test("the bound of a rule is what it lets pass in whole periods, wherever they begin", () => {
  const { windowOf } = told;
  const second = (rule) => windowOf({ limit: 25, per: "1s", ...rule }, 1_000);
  assert.deepEqual(second({ rule: "sliding_window" }), { lengthMs: 60_000, steps: 59, bound: 1_500 });
  assert.equal(second({ rule: "token_bucket", burst: 40 }).bound, 1_540);
  assert.equal(second({ rule: "fixed_window" }).bound, 1_525);
  assert.deepEqual(windowOf({ rule: "sliding_window", limit: 7, per: "1h" }, 1_000), {
    lengthMs: 3_600_000,
    steps: 3_599,
    bound: 7,
  });
});

test("a sum over the last steps forgets those before, and does not invent what is not known", () => {
  assert.deepEqual(told.trailing([null, 1, 2, 3, null, 4], 2), [null, 1, 3, 5, null, 4]);
});

const MINUTE = { rule: "token_bucket", limit: 100, per: "1m", burst: 150 };
const SLOTS = { rule: "concurrency", limit: 20 };

test("a rate is pinned over rates and slots over slots", () => {
  const { inForce } = told;
  const [hour, one] = [
    { rule: "fixed_window", limit: 5, per: "1h" },
    { rule: "concurrency", limit: 1 },
  ];
  assert.deepEqual(inForce({ definition: MINUTE }), MINUTE);
  assert.deepEqual(inForce({ definition: MINUTE, pinned: one }), { rules: [MINUTE, one] });
  assert.deepEqual(inForce({ definition: { rules: [MINUTE, SLOTS] }, pinned: hour }), { rules: [hour, SLOTS] });
});

test("what is left is told of the rule that is tightest", () => {
  const definition = { rules: [MINUTE, SLOTS] };
  assert.deepEqual(told.capacityOf({ definition, limit: 100 }), { of: 150, unit: "unit" });
  assert.deepEqual(told.capacityOf({ definition, limit: 20 }), { of: 20, unit: "slot" });
});

test("a meter's looks are put where they were, and what passed in a long gap is not known", () => {
  const track = new told.MeterTrack();
  const looks = [
    [1_000, 50],
    [1_001, 53],
    [1_003, 57],
    [1_003, 58],
    [1_040, 90],
    [1_041, 4],
  ];
  for (const [second, total] of looks) track.look(second, total, 1);
  const { times, weights } = track.admissions(0);
  const at = (second) => weights[times.indexOf(second)];
  assert.deepEqual([1_000, 1_001, 1_002, 1_003].map(at), [null, 3, 2, 3]);
  // A meter that was forgotten counts from zero.
  assert.deepEqual([1_004, 1_039, 1_040, 1_041].map(at), [null, null, null, 4]);
});

test("a start that is heard and read counts once, and before what was read nothing is known", () => {
  const track = new told.StartTrack();
  const at = "1970-01-01T00:16:40.250Z";
  track.knows(1_000);
  track.add({ event: "started", call: "7", attempt: 1, at });
  track.add({ event: "settled", call: "7", attempt: 1, at: "1970-01-01T00:16:41Z", started: at });
  track.add({ event: "settled", call: "8", attempt: 1, at: "1970-01-01T00:16:41Z", started: at });
  track.add({ event: "enqueued", call: "9", at });
  assert.deepEqual(track.starts([998, 999, 1_000, 1_001]), [null, null, 2, 0]);
});

test("a picture is read from Mermaid's language, each task behind what it needs", () => {
  const picture =
    'flowchart TD\n    t0["fetch<br/>http.get"]:::done\n    t1["a#34;b<br/>llm.chat"]:::running\n    t2["store<br/>db.put"]:::waiting\n    t0 --> t1\n    t1 --> t2\n    t0 --> t2\n    classDef done fill:#d1e7dd\n';
  const { nodes, edges } = told.graphOf(picture);
  assert.deepEqual(
    nodes.map((node) => [node.lines[0], node.state]),
    [
      ["fetch", "done"],
      ['a"b', "running"],
      ["store", "waiting"],
    ],
  );
  assert.ok(nodes[0].x < nodes[1].x && nodes[1].x < nodes[2].x);
  assert.equal(edges.length, 3);
  const machine = told.graphOf(
    'flowchart TD\n    s0["prepare"]\n    s2["charge<br/>2 attempts"]\n    s0 -->|next| s2\n    s2 --> ended((done))\n',
  );
  assert.deepEqual([machine.nodes.length, machine.edges.map((edge) => edge.label)], [3, ["next", ""]]);
});
