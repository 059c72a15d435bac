-- Makes the partition of a day, if it is missing: filled in and then attached, which keeps nobody from
-- reading and writing the others.
-- Arguments: :day, in days since the epoch. Answer: none.

DO $$
DECLARE
  begins date := date '1970-01-01' + :day;
  name   text := 'history_' || to_char(begins, 'YYYYMMDD');
BEGIN
  -- One node at a time makes and drops them.
  PERFORM pg_advisory_xact_lock(hashtextextended(:'schema', 8656));
  IF EXISTS (
    SELECT FROM pg_catalog.pg_tables WHERE schemaname = :'schema' AND tablename = name
  ) THEN
    RETURN;
  END IF;
  -- Rows are only added, and all of them go at once: nothing is to be cleaned up.
  EXECUTE format(
    'CREATE TABLE :"schema".%I (LIKE :"schema".history INCLUDING DEFAULTS INCLUDING STORAGE)
     WITH (autovacuum_vacuum_insert_threshold = -1)',
    name
  );
  EXECUTE format(
    'ALTER TABLE :"schema".history ATTACH PARTITION :"schema".%I FOR VALUES FROM (%L) TO (%L)',
    name,
    to_char(begins, 'YYYY-MM-DD') || ' 00:00:00+00',
    to_char(begins + 1, 'YYYY-MM-DD') || ' 00:00:00+00'
  );
END
$$
