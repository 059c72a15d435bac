-- What history is to be told, in order.
-- Arguments: $1 and $2 the last part that is known to have been told, $3 most rows, $4 how many bytes are enough.
-- Answer: one row for each part: its entry, its number, and its events.

SELECT seq, part, events
FROM (
  SELECT seq, part, events,
    coalesce(sum(octet_length(events)) OVER (
      ORDER BY seq, part ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS before
  FROM (
    SELECT seq, part, events
    FROM :"schema".untold
    WHERE (seq, part) > ($1, $2)
    ORDER BY seq, part
    LIMIT $3
  ) AS next
) AS measured
WHERE before < $4
ORDER BY seq, part
