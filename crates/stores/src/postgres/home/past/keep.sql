-- Adds events, in order.
-- Arguments: $1 when, $2 calls, $3 queues, $4 lanes, $5 what, $6 ends, $7 the events. Answer: none.

INSERT INTO :"schema".history (at, call, queue, lane, what, "end", event)
SELECT at, call, queue, lane, what, "end", event
FROM unnest(
  $1::timestamptz[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bytea[]
) WITH ORDINALITY AS kept (at, call, queue, lane, what, "end", event, number)
ORDER BY number
