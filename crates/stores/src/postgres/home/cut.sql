-- Removes the beginning of the log: what is in a snapshot, but for the last minute, so that a node which
-- is a little behind need not read everything again.
-- Arguments: $1 the entry that the snapshot reaches to, which stays. Answer: none.

DELETE FROM :"schema".log
WHERE seq < least(
  $1,
  (
    SELECT coalesce(min(recent.seq), $1)
    FROM :"schema".log AS recent
    WHERE recent.at >= clock_timestamp() - interval '1 minute'
  )
)
