-- Gives cells that are locked, and so are there, their values. It is no UPDATE, since this one always
-- finds them by their key: an UPDATE that is planned while the table is small reads all of it, and
-- goes on so when it has grown.
-- Arguments: $1 kinds, $2 names, $3 parts, $4 values, $5 when they expire. Answer: none.

INSERT INTO :"schema".cells AS cells (kind, name, part, value, expires)
SELECT wanted.kind, wanted.name, wanted.part, wanted.value, wanted.expires
FROM unnest($1::"char"[], $2::bytea[], $3::bytea[], $4::bytea[], $5::timestamptz[])
  AS wanted (kind, name, part, value, expires)
ON CONFLICT (kind, name, part) DO UPDATE SET value = excluded.value, expires = excluded.expires
