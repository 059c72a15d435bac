-- Writes how lanes are. Arguments: $1 rows, as JSON. Answer: none.

INSERT INTO :"schema".lanes_now
SELECT * FROM jsonb_populate_recordset(NULL:::"schema".lanes_now, $1::text::jsonb)
ON CONFLICT (queue, lane) DO UPDATE SET
  (waiting, in_flight, dead, is_paused, is_held, head, "limit", partition) = (
    excluded.waiting, excluded.in_flight, excluded.dead, excluded.is_paused, excluded.is_held,
    excluded.head, excluded."limit", excluded.partition)
