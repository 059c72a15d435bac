-- Adds what history is to be told of an entry of the log.
-- Arguments: $1 the entry, $2 its parts. Answer: none.

INSERT INTO :"schema".untold (seq, part, events)
SELECT $1, part, events
FROM unnest($2::bytea[]) WITH ORDINALITY AS told (events, part)
