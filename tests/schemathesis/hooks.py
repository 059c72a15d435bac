"""What schemathesis has to know of Tollgate: lines of JSON, names that exist, and waits that are short."""

import json
import os
import re
import urllib.request

import schemathesis

URL = os.environ["TOLLGATE_URL"]

# What the paths of half of all requests name, so that they get past `404`.
KNOWN = {
    "name": "known",
    "partition": "acme",
    "queue": "known",
    "lane": "acme",
    "id": "0",
}

RULE = {"rule": "token_bucket", "limit": 1000, "per": "1s"}

# Made before the run, in this order.
MADE = [
    ("PUT", "/v1/limits/known", RULE),
    ("PUT", "/v1/limits/known/partitions/acme", RULE),
    ("PUT", "/v1/queues/known", {"failures_max": 1}),
    ("POST", "/v1/queues/known/calls", [{"lane": "acme", "body": number} for number in range(5)]),
    ("PUT", "/v1/workflows/known", {"tasks": [{"name": "a", "type": "t"}, {"name": "b", "type": "t", "after": ["a"]}]}),
    ("PUT", "/v1/schedules/known", {"queue": "known", "cron": "0 0 1 1 *", "call": {"lane": "acme"}}),
]


def tell(method, path, body):
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def make_all():
    for method, path, body in MADE:
        tell(method, path, body)
    claimed = tell("POST", "/v1/queues/known/claim", {"max": 1})["calls"][0]
    tell("POST", "/v1/settle", {"lease": claimed["lease"], "outcome": "dead"})
    paid = {"tolls": [{"limit": "known"}], "receipt": "1h"}
    KNOWN["receipt"] = tell("POST", "/v1/consume", paid)["receipt"]
    KNOWN["run"] = tell("POST", "/v1/workflows/known/runs", {"n": 1})["run"]


make_all()


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    calls = value if isinstance(value, list) else [value]
    return "".join(json.dumps(call) + "\n" for call in calls).encode()


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    # A known thing that is removed would be known no more.
    if not path_parameters or context.operation.method.lower() == "delete":
        return path_parameters
    # By the text itself and not by chance, so that a run can be repeated.
    is_replaced = len(str(sorted(path_parameters.items()))) % 2 == 0
    if not is_replaced:
        return path_parameters
    return {name: KNOWN.get(name, value) for name, value in path_parameters.items()}


@schemathesis.hook
def before_call(context, case, kwargs):
    """Waits are good up to ten minutes: those that would be valid are made short."""
    query = case.query or {}
    if "wait" in query and is_duration(query["wait"]):
        query["wait"] = "10ms"
    body = case.body
    if not isinstance(body, dict):
        return
    for field in ("wait", "max_wait"):
        if field in body and is_duration(body[field]):
            body[field] = "10ms"
    if body.get("on_exceeded") == "wait":
        body.setdefault("max_wait", "10ms")


def is_duration(value):
    if isinstance(value, str):
        return re.fullmatch(r"([0-9]+(ns|us|ms|s|m|h|d|w)?)+", value) is not None
    return isinstance(value, int)
