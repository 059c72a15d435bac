-- Reads cells, and the clock: after the locks, if there are any, for each statement sees what was
-- there when it began.
-- Arguments: $1 kinds, $2 names, $3 parts.
-- Answer: one row for each, in order: the time, and its value and when it expires, if it is there.
-- If none is wanted: one row with the time alone.

SELECT clock_timestamp(), cell.value, cell.expires
FROM (SELECT) AS once
LEFT JOIN unnest($1::"char"[], $2::bytea[], $3::bytea[])
  WITH ORDINALITY AS wanted (kind, name, part, place) ON true
LEFT JOIN LATERAL (
  SELECT cells.value, cells.expires
  FROM :"schema".cells AS cells
  WHERE cells.kind = wanted.kind AND cells.name = wanted.name AND cells.part = wanted.part
  -- Keeps this from becoming a join: one that is planned while the table is small reads all of it,
  -- and goes on so when it has grown.
  OFFSET 0
) AS cell ON true
ORDER BY wanted.place
