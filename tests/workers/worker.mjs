// A worker of a queue over plain HTTP: claims calls, makes them at the upstream side by side, and settles, until the
// queue is empty.
//
// usage: worker.mjs TOLLGATE UPSTREAM QUEUE NAME    the first two as host:port
//
// Needs Node 18 and no packages. Prints what came of its settlements, as one line of JSON.

// As many calls at a time as it makes side by side.
const HANDS = 5;
// Longest wait for any answer: longer than a claim may wait.
const PATIENCE_MS = 30_000;

async function ask(method, url, body) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const answer = await fetch(url, { method, headers, body: JSON.stringify(body), signal });
  const text = await answer.text();
  return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
}

async function succeed(method, url, body) {
  const answer = await ask(method, url, body);
  if (answer.status !== 200) {
    throw new Error(`${method} ${url} was answered with ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
  return answer.body;
}

// Makes one call at the upstream; the settlement of it.
async function make(upstream, worker, call) {
  const { id, lane, attempt, lease, body } = call;
  const { status } = await ask("POST", `http://${upstream}/`, { worker, id, lane, sequence: body.sequence, attempt, lease });
  return { lease, outcome: status === 200 ? "done" : "retry" };
}

async function main(tollgate, upstream, queue, worker) {
  const url = `http://${tollgate}/v1/queues/${encodeURIComponent(queue)}`;
  let settle = [];
  let settled = 0;
  let refused = 0;
  for (;;) {
    const answer = await succeed("POST", `${url}/claim`, { max: HANDS, wait: "1s", worker, settle });
    for (const line of answer.settled ?? []) {
      if (line.settled) settled += 1;
      else refused += 1;
    }
    // All begin at once, and so within `start_within_ms`.
    settle = await Promise.all(answer.calls.map((call) => make(upstream, worker, call)));
    if (answer.calls.length === 0) {
      const state = await succeed("GET", url);
      if (state.waiting === 0 && state.in_flight === 0) break;
    }
  }
  console.log(JSON.stringify({ settled, refused }));
}

await main(...process.argv.slice(2));
