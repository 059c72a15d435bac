-- Writes an entry of the log. Two nodes that would write the same one do not both succeed.
-- Arguments: $1 its number, $2 the node, $3 limit time, $4 what changed. Answer: none.

INSERT INTO :"schema".log (seq, node, at, limit_time, effects)
VALUES ($1, $2, clock_timestamp(), $3, $4)
