-- Locks cells in the order they are named, until the transaction ends: nobody else locks, changes or
-- adds them. One that is missing is added as a row that expired long ago, which is to say as nothing:
-- so two that pay first do not both find nothing.
-- Arguments: $1 kinds, $2 names, $3 parts. Answer: one row for each row that was added.

INSERT INTO :"schema".cells AS cells (kind, name, part, value, expires)
SELECT wanted.kind, wanted.name, wanted.part, '', 'epoch'
FROM unnest($1::"char"[], $2::bytea[], $3::bytea[])
  WITH ORDINALITY AS wanted (kind, name, part, place)
ORDER BY wanted.place
-- A row that is there is locked by this even though it is not updated.
ON CONFLICT (kind, name, part) DO UPDATE SET value = cells.value WHERE false
RETURNING 1
