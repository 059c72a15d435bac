-- History: what came of attempts and how calls ended. Arguments: none.

-- One row for each event, and one for an attempt together with the end of its call. A partition is a day
-- of the server's clock in UTC, made by the first node that needs it and dropped whole when it is old.
CREATE TABLE :"schema".history (
  -- In this order they are told: that of one node's events, and nearly that of all.
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
