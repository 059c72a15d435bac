-- Writes how limits are. Arguments: $1 rows, as JSON. Answer: none.

INSERT INTO :"schema".limits_now
SELECT * FROM jsonb_populate_recordset(NULL:::"schema".limits_now, $1::text::jsonb)
ON CONFLICT ("limit") DO UPDATE SET (rule, is_paused) = (excluded.rule, excluded.is_paused)
