"""What is kept for messages: queues, groups of urls and schedules."""

from datetime import datetime, timezone

from world import Asynchronous, Scenario, eventually, sha256

DAILY = "0 9 * * *"


class Kept(Scenario):
    def test_a_queue_is_made_changed_and_removed(self):
        queue = self.client.queue
        self.refused(404, queue.get, "managed")
        queue.upsert("managed", parallelism=3)
        made = queue.get("managed")
        self.assertEqual((made.name, made.parallelism, made.paused, made.lag), ("managed", 3, False, 0))
        queue.upsert("managed", parallelism=1, paused=True)
        changed = queue.get("managed")
        self.assertEqual((changed.parallelism, changed.paused, changed.created_at), (1, True, made.created_at))
        self.assertIn("managed", [other.name for other in queue.list()])
        queue.delete("managed")
        self.refused(404, queue.get, "managed")

    def test_a_queue_holds_its_messages_while_it_is_paused(self):
        queue = self.client.queue
        queue.upsert("paused")
        queue.pause("paused")
        for number in range(3):
            self.client.message.enqueue(queue="paused", url=self.url("/ok/paused"), body=str(number))
        state = queue.get("paused")
        self.assertEqual((state.paused, state.lag), (True, 3))
        queue.resume("paused")
        bodies = [request.body for request in self.destination.arrived("/ok/paused", 3)]
        self.assertEqual(bodies, ["0", "1", "2"])
        eventually(lambda: queue.get("paused").lag == 0, "an empty queue")

    def test_a_group_is_made_changed_and_removed(self):
        group = self.client.url_group
        group.delete("managed")
        group.upsert_endpoints("managed", [{"url": self.url("/a"), "name": "a"}, {"url": self.url("/b")}])
        made = group.get("managed")
        self.assertEqual([(e.name, e.url) for e in made.endpoints], [("a", self.url("/a")), (None, self.url("/b"))])
        self.assertLessEqual(made.created_at, made.updated_at)
        self.assertIn("managed", [other.name for other in group.list()])
        group.remove_endpoints("managed", [{"name": "a"}])
        self.assertEqual([e.url for e in group.get("managed").endpoints], [self.url("/b")])
        group.remove_endpoints("managed", [{"url": self.url("/b")}])
        self.refused(404, group.get, "managed")

    def test_a_schedule_shows_all_that_was_said(self):
        schedule = self.client.schedule
        said = {
            "destination": self.url("/ok/all"),
            "method": "PUT",
            "headers": {"X-Own": "mine"},
            "callback_headers": {"Forward-X-A": "1"},
            "failure_callback_headers": {"Forward-X-B": "2"},
            "retries": 5,
            "retry_delay": "1000",
            "callback": self.url("/ok/callback"),
            "failure_callback": self.url("/ok/failure"),
            "delay": 30,
            "timeout": 20,
            "queue": "of-schedules",
            "flow_control": {"key": "of-schedules", "rate": 2, "parallelism": 1, "period": 60},
            "label": "nightly",
        }
        id = schedule.create_json(cron=DAILY, body={"a": 1}, schedule_id=f"own.{type(self).__name__}", **said)
        self.assertEqual(id, f"own.{type(self).__name__}")
        made = schedule.get(id)
        self.assertEqual((made.schedule_id, made.cron, made.body), (id, DAILY, '{"a": 1}'))
        told_as_said = "destination method retries callback failure_callback delay timeout queue label"
        for name in told_as_said.split():
            self.assertEqual(getattr(made, name), said[name], name)
        self.assertEqual(made.headers, {"Content-Type": ["application/json"], "X-Own": ["mine"]})
        self.assertEqual((made.callback_headers["X-A"], made.failure_callback_headers["X-B"]), (["1"], ["2"]))
        flow = made.flow_control
        self.assertEqual((flow.key, flow.rate, flow.parallelism, flow.period), ("of-schedules", 2, 1, 60))
        self.assertEqual((made.retry_delay_expression, made.paused, made.caller_ip), ("1000", False, "127.0.0.1"))
        self.assertIn(id, [other.schedule_id for other in schedule.list()])

    def test_a_bare_schedule_shows_nothing_else(self):
        id = self.client.schedule.create(destination=self.url("/ok/bare"), cron=DAILY)
        self.assertRegex(id, "^scd_")
        made = self.client.schedule.get(id)
        self.assertEqual((made.method, made.retries, made.paused), ("POST", 3, False))
        self.assertEqual((made.body, made.flow_control, made.queue, made.label, made.error), (None,) * 5)
        self.assertIsNone(made.last_schedule_states)
        next = datetime.fromtimestamp(made.next_schedule_time / 1000, timezone.utc)
        self.assertEqual((next.hour, next.minute, next.second), (9, 0, 0))

    def test_a_schedule_is_paused_overwritten_and_removed(self):
        schedule = self.client.schedule
        id = schedule.create(destination=self.url("/ok/one"), cron=DAILY, body="secret", redact={"body": True})
        self.assertEqual(schedule.get(id).body, f"REDACTED:{sha256('secret')}")
        schedule.pause(id)
        self.assertTrue(schedule.get(id).paused)
        schedule.resume(id)
        self.assertFalse(schedule.get(id).paused)
        schedule.create(destination=self.url("/ok/two"), cron="5 * * * *", schedule_id=id)
        self.assertEqual(schedule.get(id).destination, self.url("/ok/two"))
        schedule.delete(id)
        self.refused(404, schedule.get, id)


class AsynchronousKept(Asynchronous, Kept):
    pass
