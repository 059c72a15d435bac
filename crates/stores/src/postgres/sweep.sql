-- Looks at so many cells after one, in order, and removes those that have expired. What others have
-- locked it leaves alone: it waits for nobody.
-- Arguments: $1 kind, $2 name, $3 part, $4 how many, $5 the time.
-- Answer: the last one that was looked at: kind, name, part. No row: there is none after that.

WITH seen AS MATERIALIZED (
  SELECT cells.kind, cells.name, cells.part, cells.expires
  FROM :"schema".cells AS cells
  WHERE (cells.kind, cells.name, cells.part) > ($1::"char", $2::bytea, $3::bytea)
  ORDER BY cells.kind, cells.name, cells.part
  LIMIT $4::bigint
),
expired AS MATERIALIZED (
  SELECT cells.ctid AS place
  FROM seen
  JOIN :"schema".cells AS cells
    ON cells.kind = seen.kind AND cells.name = seen.name AND cells.part = seen.part
  WHERE seen.expires <= $5::timestamptz AND cells.expires <= $5::timestamptz
  FOR UPDATE OF cells SKIP LOCKED
),
removed AS (
  DELETE FROM :"schema".cells AS cells USING expired WHERE cells.ctid = expired.place
)
SELECT seen.kind, seen.name, seen.part
FROM seen
ORDER BY seen.kind DESC, seen.name DESC, seen.part DESC
LIMIT 1
