"""Messages: published, enqueued, in batches, read and cancelled."""

import json
import time

from qstash.chat import custom

from world import Asynchronous, Scenario, sha256


class Messages(Scenario):
    def test_a_message_is_delivered_as_it_was_published(self):
        answer = self.client.message.publish(
            url=self.url("/ok/published?a=%2F&b=1"),
            body="söme text",
            content_type="text/x-own",
            method="PUT",
            headers={"X-Own": "mine"},
        )
        self.assertRegex(answer.message_id, "^msg_")
        self.assertFalse(answer.deduplicated)
        request = self.destination.arrived("/ok/published")[0]
        self.assertEqual((request.method, request.url, request.body), ("PUT", "/ok/published?a=%2F&b=1", "söme text"))
        self.assertEqual(request.headers["Content-Type"], "text/x-own")
        self.assertEqual(request.headers["X-Own"], "mine")
        self.assertEqual(request.message_id, answer.message_id)
        self.assertEqual(request.headers["Upstash-Retried"], "0")
        self.assertRegex(request.headers["User-Agent"], "^Upstash-QStash")
        self.assertIsNone(request.headers["Authorization"])

    def test_json_is_delivered_as_such(self):
        self.client.message.publish_json(url=self.url("/ok/json"), body={"a": [1, None]})
        request = self.destination.arrived("/ok/json")[0]
        self.assertEqual(json.loads(request.body), {"a": [1, None]})
        self.assertEqual(request.headers["Content-Type"], "application/json")

    def test_a_message_that_waits_is_shown_with_all_that_was_said(self):
        said = {
            "url": self.url("/ok/shown"),
            "method": "PATCH",
            "headers": {"X-Own": "mine"},
            "callback_headers": {"Forward-X-A": "1"},
            "failure_callback_headers": {"Upstash-Failure-Callback-Forward-X-B": "2"},
            "retries": 7,
            "retry_delay": "1000 * (1 + retried)",
            "callback": self.url("/ok/callback"),
            "failure_callback": self.url("/ok/failure"),
            "delay": "1h",
            "timeout": 30,
            "flow_control": {"key": "shown", "parallelism": 3, "rate": 5, "period": "2m"},
            "label": "shown",
        }
        answer = self.client.message.publish_json(body={"b": 1}, **said)
        message = self.client.message.get(answer.message_id)
        self.assertEqual(message.message_id, answer.message_id)
        self.assertEqual((message.url, message.method), (said["url"], "PATCH"))
        self.assertEqual(json.loads(message.body), {"b": 1})
        self.assertIsNone(message.body_base64)
        self.assertEqual(message.headers, {"Content-Type": ["application/json"], "X-Own": ["mine"]})
        self.assertEqual(message.callback_headers["X-A"], ["1"])
        self.assertEqual(message.failure_callback_headers["X-B"], ["2"])
        self.assertEqual((message.max_retries, message.retry_delay_expression), (7, said["retry_delay"]))
        self.assertEqual((message.callback, message.failure_callback), (said["callback"], said["failure_callback"]))
        self.assertLessEqual(abs(message.not_before - message.created_at - 3_600_000), 1000)
        flow = message.flow_control
        self.assertEqual((flow.key, flow.parallelism, flow.rate, flow.period), ("shown", 3, 5, 120))
        self.assertEqual((message.label, message.caller_ip), ("shown", "127.0.0.1"))
        self.assertEqual((message.queue, message.url_group, message.schedule_id), (None, None, None))

    def test_a_plain_message_has_no_flow_control(self):
        answer = self.client.message.publish(url=self.url("/ok/plain"), delay=3600)
        message = self.client.message.get(answer.message_id)
        self.assertEqual((message.method, message.max_retries), ("POST", 3))
        self.assertEqual((message.flow_control, message.body, message.label), (None, None, None))

    def test_a_period_of_a_second_is_reported_with_a_parallelism_alone(self):
        flow_control = {"key": "alone", "parallelism": 2}
        answer = self.client.message.publish(url=self.url("/ok/alone"), delay=3600, flow_control=flow_control)
        flow = self.client.message.get(answer.message_id).flow_control
        self.assertEqual((flow.parallelism, flow.rate, flow.period), (2, None, 1))

    def test_a_message_waits_until_it_is_due(self):
        not_before = int(time.time()) + 2
        self.client.message.publish(url=self.url("/ok/due"), not_before=not_before)
        self.assertGreaterEqual(self.destination.arrived("/ok/due")[0].wall, not_before)

    def test_a_message_is_enqueued(self):
        first = self.client.message.enqueue(queue="enqueued", url=self.url("/ok/queue/first"), body=b"bytes", retries=1)
        second = self.client.message.enqueue_json(queue="enqueued", url=self.url("/ok/queue/second"), body={"n": 2})
        requests = self.destination.arrived("/ok/queue/", 2)
        self.assertEqual([request.message_id for request in requests], [first.message_id, second.message_id])
        self.assertEqual([request.body for request in requests], ["bytes", '{"n": 2}'])
        self.assertEqual(self.client.queue.get("enqueued").parallelism, 1)

    def test_a_batch_goes_to_urls_queues_and_groups(self):
        endpoints = [{"url": self.url("/ok/batch/group/one")}, {"url": self.url("/ok/batch/group/two")}]
        self.client.url_group.upsert_endpoints("of-a-batch", endpoints)
        answers = self.client.message.batch(
            [
                {"url": self.url("/ok/batch/url"), "body": "a", "headers": {"X-Own": "1"}, "retries": 0},
                {"url": self.url("/ok/batch/queue"), "queue": "of-a-batch"},
                {"url_group": "of-a-batch", "body": "b"},
            ]
        )
        self.assertEqual({answer.url for answer in answers[2]}, {endpoint["url"] for endpoint in endpoints})
        self.destination.arrived("/ok/batch/", 4)
        request = self.destination.at("/ok/batch/url")[0]
        self.assertEqual((request.message_id, request.headers["X-Own"]), (answers[0].message_id, "1"))
        self.assertEqual(self.destination.at("/ok/batch/queue")[0].message_id, answers[1].message_id)

    def test_a_batch_of_json_is_delivered_as_such(self):
        self.client.message.batch_json([{"url": self.url("/ok/batch-json"), "body": {"n": n}} for n in range(3)])
        requests = self.destination.arrived("/ok/batch-json", 3)
        self.assertEqual(sorted(json.loads(request.body)["n"] for request in requests), [0, 1, 2])

    def test_a_group_gets_a_message_at_each_endpoint(self):
        endpoints = [{"name": "a", "url": self.url("/ok/group/a")}, {"name": "b", "url": self.url("/ok/group/b")}]
        self.client.url_group.upsert_endpoints("of-messages", endpoints)
        published = self.client.message.publish_json(url_group="of-messages", body=1)
        self.assertEqual([answer.url for answer in published], [endpoint["url"] for endpoint in endpoints])
        enqueued = self.client.message.enqueue_json(queue="for-groups", url_group="of-messages", body=2)
        self.assertEqual([answer.url for answer in enqueued], [endpoint["url"] for endpoint in endpoints])
        requests = self.destination.arrived("/ok/group/", 4)
        self.assertEqual({request.headers["Upstash-Topic-Name"] for request in requests}, {"of-messages"})

    def test_an_api_gets_the_token_of_its_provider(self):
        provider = custom(self.url("/ok/model"), "of-the-provider")
        self.client.message.publish_json(api={"name": "llm", "provider": provider}, body={})
        request = self.destination.arrived("/ok/model/v1/chat/completions")[0]
        self.assertEqual(request.headers["Authorization"], "Bearer of-the-provider")

    def test_a_message_that_was_there_is_known(self):
        publish = self.client.message.publish
        first, second = [publish(url=self.url("/ok/twice"), deduplication_id="twice") for _ in range(2)]
        self.assertEqual((second.message_id, second.deduplicated), (first.message_id, True))
        given = {"url": self.url("/ok/content"), "body": "same", "content_based_deduplication": True}
        first, second = [publish(**given) for _ in range(2)]
        self.assertEqual((second.message_id, second.deduplicated), (first.message_id, True))
        third = publish(**{**given, "content_based_deduplication": False})
        self.assertFalse(third.deduplicated)

    def test_what_is_redacted_is_delivered_but_not_shown(self):
        given = {"url": self.url("/ok/redacted"), "body": "secret", "headers": {"X-Key": "k"}}
        redact = {"body": True, "header": ["X-Key"]}
        answer = self.client.message.publish(delay="1h", redact=redact, **given)
        message = self.client.message.get(answer.message_id)
        self.assertEqual(message.body, f"REDACTED:{sha256('secret')}")
        self.assertEqual(message.headers["X-Key"], [f"REDACTED:{sha256('k')}"])
        self.client.message.publish(redact={"header": True}, **given)
        request = self.destination.arrived("/ok/redacted")[0]
        self.assertEqual((request.body, request.headers["X-Key"]), ("secret", "k"))

    def test_callbacks_are_called(self):
        answer = self.client.message.publish(
            url=self.url("/status/500/told"),
            retries=0,
            callback=self.url("/ok/told/callback"),
            failure_callback=self.url("/ok/told/failure"),
            callback_headers={"Forward-X-For": "callback"},
        )
        callback = self.destination.arrived("/ok/told/callback")[0]
        self.assertEqual(callback.headers["X-For"], "callback")
        told = json.loads(callback.body)
        self.assertEqual((told["status"], told["sourceMessageId"]), (500, answer.message_id))
        failed = json.loads(self.destination.arrived("/ok/told/failure")[0].body)
        self.assertEqual(failed["dlqId"], self.dead(answer.message_id).dlq_id)

    def test_a_message_is_tried_again_as_the_expression_says(self):
        answer = self.client.message.publish(url=self.url("/fail-then-ok/1/again"), retry_delay="200", timeout="5s")
        first, second = self.destination.arrived("/fail-then-ok/1/again", 2)
        self.assertGreaterEqual(second.arrived_at - first.arrived_at, 0.2)
        self.assertEqual(second.headers["Upstash-Retried"], "1")
        self.assertEqual(self.logged(answer.message_id, "ERROR").response_status, 500)

    def test_a_message_is_cancelled(self):
        answer = self.client.message.publish(url=self.url("/ok/cancelled"), delay="1h")
        self.client.message.cancel(answer.message_id)
        self.logged(answer.message_id, "CANCELED")
        self.refused(404, self.client.message.cancel, answer.message_id)
        self.refused(404, self.client.message.cancel, "msg_nobody")

    def test_messages_are_cancelled_by_their_ids(self):
        answers = self.client.message.batch([{"url": self.url("/ok/many"), "delay": "1h"}] * 3)
        ids = [answer.message_id for answer in answers]
        self.assertEqual(self.client.message.cancel_many(ids[:2]), 2)
        self.assertEqual(self.client.message.cancel_many([ids[0], ids[2], "msg_nobody"]), 1)

    def test_an_unknown_message_is_not_found(self):
        self.refused(404, self.client.message.get, "msg_nobody")

    def test_nonsense_is_refused(self):
        for wrong in ({"delay": "soon"}, {"retries": -1}, {"retry_delay": "("}, {"url": "ftp://example.com"}):
            self.refused(400, self.client.message.publish, **{"url": self.url("/ok/wrong"), **wrong})


class AsynchronousMessages(Asynchronous, Messages):
    pass


class All(Scenario):
    def test_all_messages_are_cancelled(self):
        for _ in range(2):
            self.client.message.batch([{"url": self.url("/ok/all"), "delay": "1h"}] * 120)
            self.assertEqual(self.client.message.cancel_all(), 120)
        self.assertEqual(self.client.message.cancel_all(), 0)


class AsynchronousAll(Asynchronous, All):
    pass
