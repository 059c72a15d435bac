-- Adds calls that were accepted.
-- Arguments: $1 ids, $2 queues, $3 lanes, $4 priorities, $5 when they join, $6 payloads. Answer: none.

INSERT INTO :"schema".calls (id, queue, lane, priority, accepted, not_before, payload)
SELECT id, queue, lane, priority, clock_timestamp(), not_before, payload
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::smallint[], $5::timestamptz[], $6::bytea[])
  AS accepted (id, queue, lane, priority, not_before, payload)
