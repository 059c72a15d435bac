-- Values under keys. Arguments: none.

CREATE TABLE :"schema".cells (
  -- What it is of: one letter.
  kind    "char"      NOT NULL,
  name    bytea       NOT NULL,
  -- Empty where there is none, else a colon and the part.
  part    bytea       NOT NULL,
  value   bytea       NOT NULL,
  -- When it may be forgotten. No index on it: one would make every update write all indexes.
  expires timestamptz,
  PRIMARY KEY (kind, name, part)
) WITH (
  -- Room for new versions of a row on its own page, which needs no new entry in the index.
  fillfactor = 50,
  -- A hot row leaves versions behind by the thousand.
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.1,
  -- Giving pages back to the system locks everyone out.
  vacuum_truncate = false
);

-- A row is read with each payment: its value stays in it as long as a page holds it.
ALTER TABLE :"schema".cells ALTER COLUMN value SET STORAGE MAIN;
