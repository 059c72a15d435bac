-- Removes cells that are locked.
-- Arguments: $1 kinds, $2 names, $3 parts. Answer: none.

DELETE FROM :"schema".cells AS cells
USING unnest($1::"char"[], $2::bytea[], $3::bytea[]) AS wanted (kind, name, part)
WHERE cells.kind = wanted.kind AND cells.name = wanted.name AND cells.part = wanted.part
