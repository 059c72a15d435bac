-- Drops the partition of a day, if it is there.
-- Arguments: :day, in days since the epoch. Answer: none.

DO $$
BEGIN
  -- Whoever wants to read or write waits behind this while it waits: it gives up soon, and is tried
  -- again later.
  PERFORM set_config('lock_timeout', '1s', true);
  PERFORM pg_advisory_xact_lock(hashtextextended(:'schema', 8656));
  EXECUTE format(
    'DROP TABLE IF EXISTS :"schema".%I',
    'history_' || to_char(date '1970-01-01' + :day, 'YYYYMMDD')
  );
END
$$
