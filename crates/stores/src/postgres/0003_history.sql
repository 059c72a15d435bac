-- History: what came of attempts and how calls ended. Arguments: none.

-- One row for each event, and one for an attempt together with the end of its call. A partition is a day
-- of the server's clock in UTC, made by the first node that needs it and dropped whole when it is old.
CREATE TABLE :"schema".history (
  -- In this order they happened.
  place bigint      GENERATED ALWAYS AS IDENTITY,
  at    timestamptz NOT NULL,
  call  bigint      NOT NULL,
  -- Names as people read them: a zero in one is shown as a sign for it.
  queue text        NOT NULL,
  lane  text        NOT NULL,
  -- enqueued, started, settled, ended, revived or unknown.
  what  text        NOT NULL,
  -- Of a call that ended, also with this attempt: done, dead, cancelled, expired, superseded or dropped.
  "end" text,
  -- All of it, as a record.
  event bytea       NOT NULL,
  PRIMARY KEY (place, at)
) PARTITION BY RANGE (at);
-- Reports are often packed already, and how long one is can be told without unpacking it.
ALTER TABLE :"schema".history ALTER COLUMN event SET STORAGE EXTERNAL;

CREATE INDEX history_call ON :"schema".history (call);
CREATE INDEX history_queue ON :"schema".history (queue, place);

-- What history is to be told, written in the commit that it tells of. Whoever makes rows of it removes it, in the
-- same transaction and in this order.
CREATE TABLE :"schema".untold (
  -- The entry of the log, and which part of what is told of it, from one on.
  seq    bigint NOT NULL,
  part   bigint NOT NULL,
  -- Records.
  events bytea  NOT NULL,
  PRIMARY KEY (seq, part)
) WITH (
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = -1,
  vacuum_truncate = false
);
ALTER TABLE :"schema".untold ALTER COLUMN events SET STORAGE EXTERNAL;
