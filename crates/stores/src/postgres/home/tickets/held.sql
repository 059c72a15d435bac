-- Tickets that wait for room, oldest first: some of a few queues, which chance picks if there are more.
-- Arguments: $1 most tickets of a queue, $2 how many bytes of bodies are enough, $3 most queues.
-- Answer: as of new.sql.

WITH RECURSIVE queues AS (
  (SELECT queue FROM :"schema".inbox WHERE is_held ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT (
    SELECT queue FROM :"schema".inbox WHERE is_held AND queue > queues.queue ORDER BY queue LIMIT 1
  )
  FROM queues WHERE queues.queue IS NOT NULL
), first AS (
  SELECT ticket, sum(octet_length(body)) OVER (ORDER BY ticket) - octet_length(body) AS before
  FROM
    (SELECT queue FROM queues WHERE queue IS NOT NULL ORDER BY random() LIMIT $3) AS picked,
    LATERAL (
      SELECT ticket, body FROM :"schema".inbox
      WHERE is_held AND inbox.queue = picked.queue
      ORDER BY ticket LIMIT $1
    ) AS oldest
)
SELECT
  ticket, queue, lane, body, tolls::text, priority, not_before, dedupe, supersedes, refused, is_held, false
FROM first JOIN :"schema".inbox USING (ticket)
WHERE before < $2
ORDER BY ticket
FOR UPDATE OF inbox SKIP LOCKED
