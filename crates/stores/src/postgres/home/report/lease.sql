-- Becomes the one who reports, or stays so: one node at a time.
-- Arguments: $1 the node, $2 for how many seconds, $3 whether it may follow another. Who does must know
-- that the tables say what the other wrote.
-- Answer: one row, if it is this node.

UPDATE :"schema".reporter
SET node = $1, renewed_at = clock_timestamp(), until = clock_timestamp() + $2 * interval '1 second'
WHERE node = $1 OR ($3 AND until < clock_timestamp())
RETURNING node
