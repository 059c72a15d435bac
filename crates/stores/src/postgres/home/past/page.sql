-- Looks at so many rows that are older than a place, the newest first.
-- Arguments: $1 the place, $2 a queue, $3 a lane, $4 an end, each null for any, $5 from when on, $6 until
-- when, $7 and $8 the days of these, from the beginning to the end, $9 most rows, $10 most bytes.
-- Answer: each row that was looked at: its place, and its record if something of it may be wanted. There
-- are fewer than so many if there are no more, or if these have as many bytes.

SELECT place, event
FROM (
  SELECT place, event,
    sum(bytes) OVER (ORDER BY place DESC ROWS UNBOUNDED PRECEDING) - bytes AS before
  FROM (
    SELECT place, event, coalesce(octet_length(event), 0) AS bytes
    FROM (
      SELECT place, CASE
        WHEN ($3::text IS NULL OR lane = $3)
          AND ($4::text IS NULL OR "end" = $4)
          AND at >= $5::timestamptz AND at <= $6::timestamptz
        THEN event
      END AS event
      FROM :"schema".history
      -- Only what is found by an index or is a matter of whole partitions: the rest is looked at.
      WHERE place < $1 AND ($2::text IS NULL OR queue = $2)
        AND at >= $7::timestamptz AND at < $8::timestamptz
      ORDER BY place DESC
      LIMIT $9
    ) AS looked
  ) AS measured
) AS told
WHERE before < $10
ORDER BY place DESC
