-- Writes how queues are. Arguments: $1 rows, as JSON. Answer: none.

INSERT INTO :"schema".queues_now
SELECT * FROM jsonb_populate_recordset(NULL:::"schema".queues_now, $1::text::jsonb)
ON CONFLICT (queue) DO UPDATE SET
  (waiting, in_flight, dead, lanes, depth_max, is_paused) = (
    excluded.waiting, excluded.in_flight, excluded.dead, excluded.lanes, excluded.depth_max,
    excluded.is_paused)
