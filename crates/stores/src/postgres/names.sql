-- The names of cells of a kind, each once, in order: from one name it jumps to the next, however
-- many cells have it.
-- Arguments: $1 kind, $2 the least name, $3 most names, $4 the time, or null for the server's.
-- Answer: one row for each name.

WITH RECURSIVE found (name) AS (
  (
    SELECT cells.name
    FROM :"schema".cells AS cells
    WHERE cells.kind = $1::"char" AND cells.name >= $2::bytea
      AND (cells.expires IS NULL OR cells.expires > coalesce($4::timestamptz, now()))
    ORDER BY cells.kind, cells.name, cells.part
    LIMIT 1
  )
  UNION ALL
  SELECT (
    SELECT cells.name
    FROM :"schema".cells AS cells
    WHERE cells.kind = $1::"char" AND cells.name > found.name
      AND (cells.expires IS NULL OR cells.expires > coalesce($4::timestamptz, now()))
    ORDER BY cells.kind, cells.name, cells.part
    LIMIT 1
  )
  FROM found
  WHERE found.name IS NOT NULL
)
SELECT name FROM found WHERE name IS NOT NULL LIMIT $3::bigint
