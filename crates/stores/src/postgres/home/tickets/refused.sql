-- Tickets that were refused, after one.
-- Arguments: $1 most tickets, $2 how many bytes of bodies are enough, $3 the one before.
-- Answer: as of new.sql.

WITH first AS (
  SELECT ticket, sum(octet_length(body)) OVER (ORDER BY ticket) - octet_length(body) AS before
  FROM (
    SELECT ticket, body FROM :"schema".inbox
    WHERE refused IS NOT NULL AND NOT is_held AND ticket > $3
    ORDER BY ticket LIMIT $1
  ) AS next
)
SELECT
  ticket, queue, lane, body, tolls::text, priority, not_before, dedupe, supersedes, refused, is_held,
  EXISTS (SELECT FROM :"schema".inbox AS held WHERE held.is_held AND held.queue = inbox.queue)
FROM first JOIN :"schema".inbox USING (ticket)
WHERE before < $2
ORDER BY ticket
FOR UPDATE OF inbox SKIP LOCKED
