"""A worker of a queue over plain HTTP: claims calls, makes each at the upstream, and settles, until the queue is empty.

usage: worker.py TOLLGATE UPSTREAM QUEUE NAME    the first two as host:port

Needs Python 3.9 and nothing else. Prints what came of its settlements, as one line of JSON.
"""

import http.client
import json
import sys
import time
import urllib.parse

# As many calls at a time as it makes within `start_within_ms` of the claim.
HANDS = 5
# Longest wait for any answer: longer than a claim may wait.
PATIENCE_SECONDS = 30


class Peer:
    """One connection to a server, which is kept for the next request."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=PATIENCE_SECONDS)

    def ask(self, method, path, body=None):
        headers = {"content-type": "application/json"} if body is not None else {}
        text = json.dumps(body) if body is not None else None
        self.connection.request(method, path, text, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def succeed(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        if status != 200:
            raise RuntimeError(f"{method} {path} was answered with {status}: {answer}")
        return answer


def make(upstream, name, call):
    """Makes one call at the upstream; what came of it."""
    told = {
        "worker": name,
        "id": call["id"],
        "lane": call["lane"],
        "sequence": call["body"]["sequence"],
        "attempt": call["attempt"],
        "lease": call["lease"],
    }
    status, _ = upstream.ask("POST", "/", told)
    return "done" if status == 200 else "retry"


def main(tollgate, upstream, queue, name):
    tollgate, upstream = Peer(tollgate), Peer(upstream)
    path = f"/v1/queues/{urllib.parse.quote(queue, safe='')}"
    settle, settled, refused = [], 0, 0
    while True:
        claim = {"max": HANDS, "wait": "1s", "worker": name, "settle": settle}
        answer = tollgate.succeed("POST", f"{path}/claim", claim)
        claimed = time.monotonic()
        for line in answer.get("settled", []):
            settled, refused = settled + line["settled"], refused + (not line["settled"])
        settle = []
        for call in answer["calls"]:
            late = (time.monotonic() - claimed) * 1000 > answer["start_within_ms"]
            outcome = "release" if late else make(upstream, name, call)
            settle.append({"lease": call["lease"], "outcome": outcome})
        if not answer["calls"]:
            state = tollgate.succeed("GET", path)
            if state["waiting"] == 0 and state["in_flight"] == 0:
                break
    print(json.dumps({"settled": settled, "refused": refused}))


if __name__ == "__main__":
    main(*sys.argv[1:])
