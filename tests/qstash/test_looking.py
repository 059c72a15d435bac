"""Looking at what happened and acting on it: logs, dead letters, flow control and signing keys."""

import base64

import qstash
from qstash.errors import SignatureError
from qstash.log import LogState

from world import Asynchronous, Scenario


class Looking(Scenario):
    def publish(self, path, **given):
        return self.client.message.publish(url=self.url(path), **given).message_id

    def test_the_log_tells_the_life_of_a_message(self):
        id = self.publish("/ok/life", body="b", label="life", retry_delay="10", flow_control={"key": "life", "rate": 9})
        self.logged(id, "DELIVERED")
        entries = self.log(id)
        self.assertEqual([entry.state for entry in entries], [LogState.CREATED, LogState.ACTIVE, LogState.DELIVERED])
        created, _, delivered = entries
        self.assertEqual((created.url, created.method, created.label), (self.url("/ok/life"), "POST", "life"))
        self.assertEqual((created.max_retries, created.retry_delay_expression), (3, "10"))
        self.assertEqual(base64.b64decode(created.body_base64), b"b")
        self.assertEqual((created.flow_control.key, created.flow_control.rate), ("life", 9))
        self.assertEqual(delivered.response_status, 200)

    def test_the_log_is_filtered_and_comes_in_pages(self):
        ids = [self.publish("/ok/filtered", label="filtered") for _ in range(3)]
        for id in ids:
            self.logged(id, "DELIVERED")
        log = self.client.log
        all = log.list(filter={"label": "filtered"}).logs
        self.assertEqual({entry.message_id for entry in all}, set(ids))
        delivered = log.list(filter={"url": self.url("/ok/filtered"), "state": LogState.DELIVERED}).logs
        self.assertEqual(len(delivered), 3)
        some = log.list(filter={"message_ids": ids[:2]}).logs
        self.assertEqual({entry.message_id for entry in some}, set(ids[:2]))
        since = {"from_time": all[-1].time, "to_time": all[0].time, "label": "filtered"}
        self.assertEqual(len(log.list(filter=since).logs), len(all))
        for nobody in ({"queue": "nobody"}, {"url_group": "nobody"}, {"schedule_id": "nobody"}):
            self.assertEqual(log.list(filter=nobody).logs, [])
        paged, cursor = [], None
        while True:
            page = log.list(cursor=cursor, count=2, filter={"label": "filtered"})
            self.assertLessEqual(len(page.logs), 2)
            paged, cursor = paged + page.logs, page.cursor
            if not cursor:
                break
        self.assertEqual(paged, all)

    def test_dead_letters_are_found_and_removed(self):
        dlq = self.client.dlq
        ids = [self.publish("/status/503/dead", body="b", retries=0, label="dead") for _ in range(4)]
        entries = [self.dead(id) for id in ids]
        one = dlq.get(entries[0].dlq_id)
        self.assertEqual((one.message_id, one.dlq_id), (ids[0], entries[0].dlq_id))
        self.assertEqual((one.response_status, one.body), (503, "b"))
        self.assertRegex(one.response_body, "^answer [1-4]$")
        self.assertIsInstance(one.response_headers, dict)
        found = dlq.list(filter={"label": "dead", "response_status": 503, "url": self.url("/status/503/dead")})
        self.assertEqual({entry.dlq_id for entry in found.messages}, {entry.dlq_id for entry in entries})
        self.assertIsNone(found.cursor)
        page = dlq.list(count=3, filter={"label": "dead"})
        rest = dlq.list(cursor=page.cursor, filter={"label": "dead"})
        self.assertEqual((len(page.messages), len(rest.messages)), (3, 1))
        for nobody in ({"queue": "x"}, {"url_group": "x"}, {"schedule_id": "x"}, {"caller_ip": "192.0.2.1"}):
            self.assertEqual(dlq.list(filter=nobody).messages, [])
        self.assertEqual(dlq.list(filter={"from_time": 0, "to_time": 1}).messages, [])
        dlq.delete(entries[0].dlq_id)
        self.refused(404, dlq.delete, entries[0].dlq_id)
        self.refused(404, dlq.get, entries[0].dlq_id)
        self.assertEqual(dlq.delete_many([entry.dlq_id for entry in entries]), 3)
        self.assertEqual(dlq.list(filter={"label": "dead"}).messages, [])

    def test_a_dead_letter_without_an_answer_can_be_read(self):
        id = self.publish("/hang/dead", timeout=1, retries=0)
        self.assertIsInstance(self.dead(id).response_status, int)

    def test_a_key_tells_how_it_stands_and_obeys(self):
        flow = self.client.flow_control
        given = {"key": "stands", "rate": 2, "period": "1h", "parallelism": 5}
        for _ in range(4):
            self.publish("/ok/stands", flow_control=given)
        self.destination.arrived("/ok/stands", 2)
        state = flow.get("stands")
        self.assertEqual((state.key, state.wait_list_size, state.parallelism_max), ("stands", 2, 5))
        self.assertEqual((state.rate_max, state.rate_count, state.rate_period), (2, 2, 3600))
        self.assertGreater(state.rate_period_start, 0)
        self.assertEqual((state.is_paused, state.is_pinned_parallelism, state.is_pinned_rate), (False, False, False))
        flow.pause("stands")
        self.assertTrue(flow.get("stands").is_paused)
        flow.reset_rate("stands")
        flow.pin("stands", {"parallelism": 7, "rate": 1, "period": 60})
        pinned = flow.get("stands")
        self.assertEqual((pinned.is_pinned_parallelism, pinned.is_pinned_rate), (True, True))
        self.assertEqual((pinned.parallelism_max, pinned.rate_max, pinned.rate_period), (7, 1, 60))
        self.assertEqual((pinned.wait_list_size, pinned.rate_count), (2, 0))
        flow.resume("stands")
        self.destination.arrived("/ok/stands", 3)
        flow.unpin("stands", {"parallelism": True, "rate": False})
        unpinned = flow.get("stands")
        self.assertEqual((unpinned.is_pinned_parallelism, unpinned.is_pinned_rate), (False, True))
        flow.unpin("stands", {"rate": True})
        self.publish("/ok/stands", flow_control={**given, "rate": 100})
        self.destination.arrived("/ok/stands", 5)
        self.refused(404, flow.get, "nobody")

    def test_the_parallelism_of_all_is_told(self):
        whole = self.client.flow_control.get_global_parallelism()
        self.assertEqual(whole.parallelism_max, 2000)
        self.assertGreaterEqual(whole.parallelism_count, 0)


class AsynchronousLooking(Asynchronous, Looking):
    pass


class Keys(Scenario):
    def signed(self, path):
        self.client.message.publish(url=self.url(path), body="bödy")
        return self.destination.arrived(path)[0]

    def is_good(self, request, keys):
        receiver = qstash.Receiver(keys.current, keys.next)
        signature = request.headers["Upstash-Signature"]
        try:
            receiver.verify(signature=signature, body=request.body, url=self.url(request.url), clock_tolerance=1)
        except SignatureError:
            return False
        return True

    def test_keys_change_so_that_receivers_keep_up(self):
        old = self.client.signing_key.get()
        self.assertTrue(self.is_good(self.signed("/ok/before"), old))
        new = self.client.signing_key.rotate()
        type(self).keys = new
        self.assertEqual(new.current, old.next)
        self.assertEqual(self.client.signing_key.get(), new)
        once = self.signed("/ok/once")
        self.assertTrue(self.is_good(once, new))
        self.assertTrue(self.is_good(once, old))
        type(self).keys = self.client.signing_key.rotate()
        twice = self.signed("/ok/twice")
        self.assertTrue(self.is_good(twice, type(self).keys))
        self.assertFalse(self.is_good(twice, old))


class AsynchronousKeys(Asynchronous, Keys):
    pass
