-- What happened since an entry of the log, with that one first, whose effects are known.
-- Arguments: $1 the last entry that is known, $2 most rows, $3 how many bytes are enough.
-- Answer: one row for each entry: its number, its node, limit time, and what changed.

SELECT seq, node, limit_time, effects
FROM (
  SELECT seq, node, limit_time, effects,
    coalesce(sum(octet_length(effects)) OVER (
      ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS before
  FROM (
    SELECT seq, node, limit_time, CASE WHEN seq > $1 THEN effects END AS effects
    FROM :"schema".log
    WHERE seq >= $1
    ORDER BY seq
    LIMIT $2
  ) AS next
) AS measured
WHERE before < $3
ORDER BY seq
