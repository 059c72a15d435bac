-- Views for people: what a node reports of what it has in memory. Arguments: none.

-- Who reports, and until when no other does.
CREATE TABLE :"schema".reporter (
  one        boolean     PRIMARY KEY DEFAULT true CHECK (one),
  node       bigint      NOT NULL,
  renewed_at timestamptz NOT NULL,
  until      timestamptz NOT NULL
) WITH (fillfactor = 20);
INSERT INTO :"schema".reporter (node, renewed_at, until) VALUES (0, now(), now());

-- How things were when the reporter last looked. Nothing reads these to decide. Rows are changed where
-- something changed, most of them each second while it does.
CREATE TABLE :"schema".queues_now (
  queue     text    PRIMARY KEY,
  waiting   bigint  NOT NULL,
  in_flight bigint  NOT NULL,
  dead      bigint  NOT NULL,
  lanes     bigint  NOT NULL,
  depth_max bigint  NOT NULL,
  is_paused boolean NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE :"schema".lanes_now (
  queue     text    NOT NULL,
  lane      text    NOT NULL,
  waiting   bigint  NOT NULL,
  in_flight bigint  NOT NULL,
  dead      bigint  NOT NULL,
  is_paused boolean NOT NULL,
  is_held   boolean NOT NULL,
  head      bigint,
  "limit"   text,
  partition text,
  PRIMARY KEY (queue, lane)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE :"schema".meters_now (
  "limit"        text    NOT NULL,
  -- Empty for the global one.
  partition      text    NOT NULL,
  rule           text    NOT NULL,
  capacity       bigint  NOT NULL,
  used           bigint  NOT NULL,
  remaining      bigint  NOT NULL,
  in_flight      bigint  NOT NULL,
  waiting        bigint  NOT NULL,
  is_paused      boolean NOT NULL,
  closed_until   timestamptz,
  closed_why     text,
  next_admission timestamptz,
  PRIMARY KEY ("limit", partition)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE :"schema".limits_now (
  "limit"   text    PRIMARY KEY,
  rule      text    NOT NULL,
  is_paused boolean NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

-- What there is beyond what is reported; and which calls are in flight, and which dead, as far as they are.
CREATE TABLE :"schema".beyond_now (
  what  text     PRIMARY KEY,
  more  bigint   NOT NULL,
  calls bigint[] NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);

CREATE VIEW :"schema".queues AS
SELECT queue, waiting, in_flight, dead, lanes, depth_max, is_paused FROM :"schema".queues_now;

COMMENT ON VIEW :"schema".queues IS
  'Queues, up to 10,000, as they were a second ago, or ten where there is very much to look at.';
COMMENT ON COLUMN :"schema".queues.queue IS 'Its name.';
COMMENT ON COLUMN :"schema".queues.waiting IS 'Calls that wait, also those that rest or are not due.';
COMMENT ON COLUMN :"schema".queues.in_flight IS 'Calls that are started and not settled.';
COMMENT ON COLUMN :"schema".queues.dead IS 'Calls that are not tried again unless they are revived.';
COMMENT ON COLUMN :"schema".queues.lanes IS 'Lanes that are known; some may be empty.';
COMMENT ON COLUMN :"schema".queues.depth_max IS 'Most calls that may wait or be in flight.';
COMMENT ON COLUMN :"schema".queues.is_paused IS 'An operator holds it back.';

CREATE VIEW :"schema".lanes AS
SELECT
  lanes.queue, lanes.lane, lanes.waiting, lanes.in_flight, lanes.dead,
  CASE
    WHEN lanes.waiting = 0 THEN NULL
    WHEN queues.is_paused THEN 'its queue is paused'
    WHEN lanes.is_paused THEN 'it is paused'
    WHEN lanes.is_held THEN 'a dead call holds it'
    WHEN lanes.head IS NULL AND lanes.in_flight > 0 THEN 'its calls in flight'
    WHEN lanes.head IS NULL THEN 'its next call is not due, or rests'
    WHEN lanes."limit" IS NOT NULL THEN 'limit ' || lanes."limit" || coalesce(':' || lanes.partition, '')
    ELSE 'no worker asks for it'
  END AS blocked_by,
  coalesce(meters.closed_until, meters.next_admission) AS not_before,
  lanes.head, lanes."limit", lanes.partition
FROM :"schema".lanes_now AS lanes
LEFT JOIN :"schema".queues_now AS queues USING (queue)
LEFT JOIN :"schema".meters_now AS meters
  ON meters."limit" = lanes."limit" AND meters.partition = coalesce(lanes.partition, '');

COMMENT ON VIEW :"schema".lanes IS
  'Lanes that have calls, as they were a second ago, or ten where there is very much to look at: up to '
  '10,000, those with most that wait first. The view "beyond" says how many more there are.';
COMMENT ON COLUMN :"schema".lanes.queue IS 'Its queue.';
COMMENT ON COLUMN :"schema".lanes.lane IS 'Its name.';
COMMENT ON COLUMN :"schema".lanes.waiting IS 'Calls that wait, also those that rest or are not due.';
COMMENT ON COLUMN :"schema".lanes.in_flight IS 'Calls that are started and not settled.';
COMMENT ON COLUMN :"schema".lanes.dead IS 'Calls that are not tried again unless they are revived.';
COMMENT ON COLUMN :"schema".lanes.blocked_by IS
  'Why its next call does not start; null: none waits. A limit that is open has no worker that asks.';
COMMENT ON COLUMN :"schema".lanes.not_before IS
  'Until when the meter at which its next call stands lets nothing pass; null: it is open, or opens '
  'when a call in flight ends.';
COMMENT ON COLUMN :"schema".lanes.head IS 'The id of its next call.';
COMMENT ON COLUMN :"schema".lanes."limit" IS 'The limit at which its next call stands.';
COMMENT ON COLUMN :"schema".lanes.partition IS 'The partition of that limit; null: none.';

CREATE VIEW :"schema".meters AS
SELECT
  "limit", nullif(partition, '') AS partition, rule, capacity, used, remaining, in_flight, waiting,
  is_paused, closed_until, closed_why, next_admission
FROM :"schema".meters_now;

COMMENT ON VIEW :"schema".meters IS
  'Meters that are not as new or where calls wait, up to 10,000, as they were a second ago, or ten '
  'where there is very much to look at. The view "beyond" says how many more there are.';
COMMENT ON COLUMN :"schema".meters."limit" IS 'The name of its limit.';
COMMENT ON COLUMN :"schema".meters.partition IS 'What it counts; null: the global one.';
COMMENT ON COLUMN :"schema".meters.rule IS 'The rules it follows.';
COMMENT ON COLUMN :"schema".meters.capacity IS 'The largest weight that can ever pass.';
COMMENT ON COLUMN :"schema".meters.used IS
  'What counts at the rule that has least left: slots that are held, or units that are spent.';
COMMENT ON COLUMN :"schema".meters.remaining IS 'Units that would pass now; negative under debt.';
COMMENT ON COLUMN :"schema".meters.in_flight IS 'Slots that are held.';
COMMENT ON COLUMN :"schema".meters.waiting IS 'Lanes whose next call stands here.';
COMMENT ON COLUMN :"schema".meters.is_paused IS 'An operator holds its limit back.';
COMMENT ON COLUMN :"schema".meters.closed_until IS
  'Until when an upstream or an operator closed it; null: it is not.';
COMMENT ON COLUMN :"schema".meters.closed_why IS 'Why it is closed.';
COMMENT ON COLUMN :"schema".meters.next_admission IS
  'When one unit passes; null: at once, or when a slot is freed.';

CREATE VIEW :"schema".limits AS
SELECT "limit", rule, is_paused FROM :"schema".limits_now;

COMMENT ON VIEW :"schema".limits IS 'Limits, up to 10,000, as they were a second ago.';
COMMENT ON COLUMN :"schema".limits."limit" IS 'Its name.';
COMMENT ON COLUMN :"schema".limits.rule IS 'Its rules.';
COMMENT ON COLUMN :"schema".limits.is_paused IS 'An operator holds it back.';

CREATE VIEW :"schema".waiting AS
SELECT
  calls.id, calls.queue, calls.lane, calls.priority, calls.accepted, calls.not_before,
  clock_timestamp() - calls.accepted AS age
FROM :"schema".calls
WHERE NOT EXISTS (
  SELECT FROM :"schema".beyond_now, unnest(beyond_now.calls) AS other (id) WHERE other.id = calls.id
);

COMMENT ON VIEW :"schema".waiting IS
  'Calls that wait. Those that came or ended are right at once; that a call started, or died, is seen '
  'here a second later (ten where there is very much to look at), and not at all for calls beyond the '
  'first 50,000 that are in flight, and the first 50,000 that are dead: see the view "beyond".';
COMMENT ON COLUMN :"schema".waiting.id IS 'The call''s id.';
COMMENT ON COLUMN :"schema".waiting.queue IS 'Its queue.';
COMMENT ON COLUMN :"schema".waiting.lane IS 'Its lane.';
COMMENT ON COLUMN :"schema".waiting.priority IS 'From 0 to 9; higher goes first.';
COMMENT ON COLUMN :"schema".waiting.accepted IS 'When it was accepted.';
COMMENT ON COLUMN :"schema".waiting.not_before IS
  'When it was to join its lane, as it was enqueued; null: at once.';
COMMENT ON COLUMN :"schema".waiting.age IS 'How long ago it was accepted.';

CREATE VIEW :"schema".beyond AS
SELECT what, more FROM :"schema".beyond_now;

COMMENT ON VIEW :"schema".beyond IS 'How many more there are than the other views tell of.';
COMMENT ON COLUMN :"schema".beyond.what IS
  'Of what: queues, lanes, meters, limits, calls in flight, dead calls.';
COMMENT ON COLUMN :"schema".beyond.more IS 'How many are not told of; 0: all are.';
