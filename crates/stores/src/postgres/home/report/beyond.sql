-- Writes what there is beyond what is told. Arguments: $1 rows, as JSON. Answer: none.

INSERT INTO :"schema".beyond_now
SELECT * FROM jsonb_populate_recordset(NULL:::"schema".beyond_now, $1::text::jsonb)
ON CONFLICT (what) DO UPDATE SET (more, calls) = (excluded.more, excluded.calls)
