-- Lanes: what happened, in order, what calls carry, and from where a node begins. Arguments: none.

-- Whoever writes has this locked. It holds nothing.
CREATE TABLE :"schema".turn ();

-- What happened: one row for each commit of a node. All nodes let it happen, in this order.
CREATE TABLE :"schema".log (
  -- Without a gap: the next one is given under the lock of whoever writes.
  seq        bigint      PRIMARY KEY,
  -- Who wrote it.
  node       bigint      NOT NULL,
  -- The server's clock, and limit time in nanoseconds since the epoch.
  at         timestamptz NOT NULL,
  limit_time bigint      NOT NULL,
  -- What changed, as records.
  effects    bytea       NOT NULL
) WITH (
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = -1,
  vacuum_truncate = false
);
-- It is read by others within a moment, and packed already.
ALTER TABLE :"schema".log ALTER COLUMN effects SET STORAGE EXTERNAL;

INSERT INTO :"schema".log (seq, node, at, limit_time, effects) VALUES (0, 0, now(), 0, '');

-- Calls that have not ended, the dead among them. A row is added and removed, and never changed.
CREATE TABLE :"schema".calls (
  id         bigint      PRIMARY KEY,
  queue      text        NOT NULL,
  lane       text        NOT NULL,
  priority   smallint    NOT NULL,
  accepted   timestamptz NOT NULL,
  -- Null: at once.
  not_before timestamptz,
  -- What goes with the body (two bytes for its length, and itself), and the body.
  payload    bytea       NOT NULL
) WITH (
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_threshold = 10000,
  autovacuum_analyze_scale_factor = 0.1,
  vacuum_truncate = false
);
ALTER TABLE :"schema".calls ALTER COLUMN payload SET STORAGE EXTERNAL;

-- All that lasted when the log had reached `seq`, in parts: a node begins with the newest, and goes on
-- with the log.
CREATE TABLE :"schema".snapshots (
  seq   bigint  NOT NULL,
  part  integer NOT NULL,
  facts bytea   NOT NULL,
  PRIMARY KEY (seq, part)
);
ALTER TABLE :"schema".snapshots ALTER COLUMN facts SET STORAGE EXTERNAL;
