"""What every scenario in Python stands on: the SDK as PyPI has it, a server of its own, and a destination that records.

The destination answers as the path says: /status/N with N, /fail-then-ok/N with 500 for the first N requests with that
url, /hang when it is let go, and everything else with 200. Every delivery is verified by the SDK as it arrives.
"""

import asyncio
import hashlib
import http.server
import inspect
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import qstash

TOKEN = "token-of-the-scenarios"
# Longest wait for something that is to happen.
PATIENCE_SECONDS = 30
# Time between two looks at something of which the API tells no event.
LOOK_SECONDS = 0.05


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def eventually(look, what):
    """Looks again and again until there is something to see; what it is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(LOOK_SECONDS)


class Request:
    """What arrived."""

    def __init__(self, handler, body):
        self.method, self.url, self.headers = handler.command, handler.path, handler.headers
        self.bytes, self.body = body, body.decode(errors="replace")
        self.arrived_at, self.wall = time.monotonic(), time.time()
        self.nth = 0

    @property
    def message_id(self):
        return self.headers["Upstash-Message-Id"]


class Destination:
    """A server on loopback that records every request."""

    def __init__(self):
        self.requests, self.faults, self.verify = [], [], lambda request: None
        self.changed, self.let_go = threading.Condition(), threading.Event()
        destination = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                destination.take(self)

            do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, path):
        return self.origin + path

    def at(self, path):
        with self.changed:
            return [request for request in self.requests if request.url.startswith(path)]

    def arrived(self, path, count=1):
        """Waits until so many requests have come to the path; those requests."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.at(path)) >= count, PATIENCE_SECONDS):
                raise AssertionError(f"waited in vain for {count} requests at {path}, there were {len(self.at(path))}")
        return self.at(path)[:count]

    def take(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        request = Request(handler, body)
        try:
            self.verify(request)
        except Exception as error:
            self.faults.append(f"{request.method} {request.url}: {error}")
        with self.changed:
            request.nth = 1 + sum(other.url == request.url for other in self.requests)
            self.requests.append(request)
            self.changed.notify_all()
        answer = f"answer {request.nth}".encode()
        handler.send_response(self.decide(request))
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def decide(self, request):
        kind, _, rest = request.url.lstrip("/").partition("/")
        number = rest.split("/")[0]
        if kind == "status":
            return int(number)
        if kind == "fail-then-ok":
            return 500 if request.nth <= int(number) else 200
        if kind == "hang":
            self.let_go.wait(PATIENCE_SECONDS)
        return 200


class Server:
    """One process of the binary, with data of its own."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tollgate-qstash-")
        self.log = open(os.path.join(self.folder, "log"), "w+")
        # In a database each has a schema of its own.
        store, schema = os.environ.get("STORE_OF_SCENARIOS"), os.path.basename(self.folder).lower().replace("-", "_")
        kept = ["--store", store, "--prefix", schema] if store else ["--data", os.path.join(self.folder, "data")]
        given = ["serve", "--listen", "127.0.0.1:0", *kept]
        settings = {"TOLLGATE_TOKEN": TOKEN, "TOLLGATE_PUSH_ALLOW_ADDRESSES": "127.0.0.1"}
        self.process = subprocess.Popen(
            [os.environ["TOLLGATE_BIN"], *given],
            env={"PATH": os.environ["PATH"], **settings},
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the server did not start: {self.said()}")
        self.url = line.split()[-1]

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code, said = self.process.wait(PATIENCE_SECONDS), self.said()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if code != 0 or "panicked" in said:
            raise AssertionError(f"the server ended with {code}: {said[-4000:]}")


class Waiting:
    """A part of the asynchronous client, whose methods are waited for here."""

    def __init__(self, part, loop):
        self.part, self.loop = part, loop

    def __getattr__(self, name):
        found = getattr(self.part, name)
        if not inspect.iscoroutinefunction(found):
            return Waiting(found, self.loop)
        return lambda *given, **named: self.loop.run_until_complete(found(*given, **named))


class Scenario(unittest.TestCase):
    """Scenarios that share a server, a client and a destination."""

    @classmethod
    def setUpClass(cls):
        cls.destination, cls.server = Destination(), Server()
        cls.loop = asyncio.new_event_loop()
        cls.client = cls.make_client()
        cls.keys = cls.client.signing_key.get()
        cls.destination.verify = cls.verify

    @classmethod
    def make_client(cls):
        return qstash.QStash(TOKEN, base_url=cls.server.url)

    @classmethod
    def tearDownClass(cls):
        cls.destination.let_go.set()
        cls.server.stop()
        cls.destination.stop()
        cls.loop.close()
        if cls.destination.faults:
            raise AssertionError(f"each delivery is signed: {cls.destination.faults}")

    @classmethod
    def verify(cls, request):
        receiver = qstash.Receiver(cls.keys.current, cls.keys.next)
        url = cls.destination.url(request.url)
        receiver.verify(signature=request.headers["Upstash-Signature"], body=request.body, url=url)

    def url(self, path):
        return self.destination.url(path)

    def log(self, message_id):
        """The entries of the log about a message, oldest first."""
        logs = self.client.log.list(filter={"message_id": message_id}).logs
        return logs[::-1]

    def logged(self, message_id, state):
        """Waits until the log says that a message is in a state; that entry."""

        def look():
            return next((entry for entry in self.log(message_id) if entry.state.value == state), None)

        return eventually(look, f"{message_id} {state}")

    def dead(self, message_id):
        """Waits until a message is dead; its entry in the DLQ."""

        def look():
            return next(iter(self.client.dlq.list(filter={"message_id": message_id}).messages), None)

        return eventually(look, f"{message_id} in the DLQ")

    def refused(self, status, ask, *given, **named):
        with self.assertRaises(qstash.errors.QStashError) as raised:
            ask(*given, **named)
        self.assertIn(f"status: {status}, body: ", str(raised.exception))


class Asynchronous:
    """The same scenarios with the asynchronous client."""

    @classmethod
    def make_client(cls):
        return Waiting(qstash.AsyncQStash(TOKEN, base_url=cls.server.url), cls.loop)
