-- The schema, and which migrations were run in it. A schema that is there is left as it is: then a
-- role does that may not make one. Arguments: none.

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = :'schema') THEN
    CREATE SCHEMA :"schema";
  END IF;
END
$$;

CREATE TABLE :"schema".migrations (
  version integer     PRIMARY KEY,
  name    text        NOT NULL,
  -- How many migrations a Tollgate must know at least to go on with the schema since this one.
  needs   integer     NOT NULL,
  run_at  timestamptz NOT NULL DEFAULT now()
);
