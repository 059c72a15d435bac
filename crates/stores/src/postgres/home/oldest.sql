-- The transaction that has been open longest of those for which removed rows are kept, in this database.
-- Arguments: none. Answer: at most one row: its process, if it has one, what it is called, and for how many
-- microseconds it has been open.

SELECT pid, called, greatest(extract(epoch FROM clock_timestamp() - since) * 1000000, 0)::bigint
FROM (
  SELECT pid, application_name AS called, xact_start AS since
  FROM pg_catalog.pg_stat_activity
  WHERE datname = current_database()
    AND backend_type = 'client backend'
    AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    AND pid <> pg_backend_pid()
  UNION ALL
  SELECT NULL, gid, prepared
  FROM pg_catalog.pg_prepared_xacts
  WHERE database = current_database()
) AS holding
WHERE since IS NOT NULL
ORDER BY since
LIMIT 1
