-- Writes how meters are. Arguments: $1 rows, as JSON. Answer: none.

INSERT INTO :"schema".meters_now
SELECT * FROM jsonb_populate_recordset(NULL:::"schema".meters_now, $1::text::jsonb)
ON CONFLICT ("limit", partition) DO UPDATE SET
  (rule, capacity, used, remaining, in_flight, waiting, is_paused, closed_until, closed_why,
   next_admission) = (
    excluded.rule, excluded.capacity, excluded.used, excluded.remaining, excluded.in_flight,
    excluded.waiting, excluded.is_paused, excluded.closed_until, excluded.closed_why,
    excluded.next_admission)
