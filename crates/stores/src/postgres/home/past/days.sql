-- The partitions of history. Arguments: none.
-- Answer: one row for each, the oldest first: its day, in days since the epoch, and its bytes.

SELECT
  (to_date(substr(part.relname, 9), 'YYYYMMDD') - date '1970-01-01')::bigint,
  coalesce(pg_total_relation_size(part.oid), 0)
FROM pg_catalog.pg_inherits AS inherits
JOIN pg_catalog.pg_class AS part ON part.oid = inherits.inhrelid
WHERE inherits.inhparent = ':"schema".history'::regclass AND part.relname ~ '^history_[0-9]{8}$'
ORDER BY 1
