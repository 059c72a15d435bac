-- Enqueueing in SQL: a call that an application hands in within its own transaction. Arguments: none.

-- The queues there are: changed in the same commit as the log.
CREATE TABLE :"schema".queue_names (
  queue text PRIMARY KEY
);

-- Calls that were handed in and not taken yet: a node takes those it can see, and removes them in the
-- commit that makes them calls.
CREATE TABLE :"schema".inbox (
  -- Calls of a lane are taken in this order.
  ticket     bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue      text        NOT NULL,
  lane       text        NOT NULL,
  body       bytea       NOT NULL,
  tolls      jsonb       NOT NULL,
  priority   smallint    NOT NULL,
  -- Null: at once.
  not_before timestamptz,
  dedupe     text,
  supersedes text,
  made_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Why it is not taken yet. It is tried again.
  refused    text,
  -- It waits for room in its queue, and all that come after it there do, too.
  is_held    boolean     NOT NULL DEFAULT false
) WITH (
  -- Rows live for a moment.
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_threshold = 10000,
  autovacuum_analyze_scale_factor = 0.1,
  vacuum_truncate = false
);
ALTER TABLE :"schema".inbox ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX inbox_new ON :"schema".inbox (ticket) WHERE refused IS NULL;
CREATE INDEX inbox_refused ON :"schema".inbox (ticket) WHERE refused IS NOT NULL AND NOT is_held;
CREATE INDEX inbox_held ON :"schema".inbox (queue, ticket) WHERE is_held;

COMMENT ON TABLE :"schema".inbox IS
  'Calls that applications handed in by enqueue() and no node has taken yet. A row that stays says in '
  '"refused" why. One that is not wanted any more can be deleted.';
COMMENT ON COLUMN :"schema".inbox.refused IS
  'Why it is not taken yet; null: it was not tried. It is tried again every few seconds.';

-- Refuses a text that is no name.
CREATE FUNCTION :"schema".check_name(kind text, name text, most integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF name IS NULL OR name = '' THEN
    RAISE EXCEPTION 'tollgate: a % needs 1 to % bytes, and this one is %', kind, most,
      CASE WHEN name IS NULL THEN 'null' ELSE 'empty' END USING ERRCODE = 'invalid_parameter_value';
  ELSIF octet_length(name) > most THEN
    RAISE EXCEPTION
      'tollgate: a % may have up to % bytes, and this one has %: shorten it, or use a hash of it',
      kind, most, octet_length(name) USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;

-- Refuses what are no tolls.
CREATE FUNCTION :"schema".check_tolls(tolls jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  toll jsonb;
  field text;
  is_sound boolean;
BEGIN
  IF tolls IS NULL OR jsonb_typeof(tolls) <> 'array' THEN
    RAISE EXCEPTION 'tollgate: tolls are an array, as in [{"limit": "stripe", "partition": "acme", "weight": 2}]'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF jsonb_array_length(tolls) > 8 THEN
    RAISE EXCEPTION 'tollgate: % tolls are more than the 8 a call may owe', jsonb_array_length(tolls)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR toll IN SELECT jsonb_array_elements(tolls) LOOP
    IF jsonb_typeof(toll) <> 'object' THEN
      RAISE EXCEPTION 'tollgate: a toll is an object with a limit, and this is %', toll
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    FOR field IN SELECT jsonb_object_keys(toll || '{"limit": null}') LOOP
      is_sound := CASE field
        WHEN 'limit' THEN jsonb_typeof(toll -> 'limit') = 'string'
        WHEN 'partition' THEN jsonb_typeof(toll -> 'partition') IN ('string', 'null')
        -- As many digits as surely fit.
        WHEN 'weight' THEN
          jsonb_typeof(toll -> 'weight') = 'number' AND toll ->> 'weight' ~ '^[1-9][0-9]{0,17}$'
        WHEN 'feedback' THEN jsonb_typeof(toll -> 'feedback') = 'boolean'
      END;
      IF is_sound IS NOT TRUE THEN
        RAISE EXCEPTION
          'tollgate: a toll has a limit (text), and may have a partition (text), a weight (a whole number from 1) and feedback (a boolean): % of % is none of these',
          field, toll USING ERRCODE = 'invalid_parameter_value';
      END IF;
    END LOOP;
    PERFORM :"schema".check_name('limit name', toll ->> 'limit', 512);
    IF toll ->> 'partition' IS NOT NULL THEN
      PERFORM :"schema".check_name('partition', toll ->> 'partition', 512);
    END IF;
  END LOOP;
END
$$;

-- Hands in a call whose body is bytes. Whoever was granted it may call it, and needs no right at the
-- tables.
CREATE FUNCTION :"schema".enqueue_bytes(
  queue text,
  lane text,
  body bytea,
  priority integer DEFAULT 0,
  delay interval DEFAULT NULL,
  not_before timestamptz DEFAULT NULL,
  dedupe_id text DEFAULT NULL,
  supersedes text DEFAULT NULL,
  tolls jsonb DEFAULT '[]'
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given bigint;
BEGIN
  PERFORM :"schema".check_name('queue name', queue, 512);
  PERFORM :"schema".check_name('lane name', lane, 512);
  PERFORM :"schema".check_tolls(tolls);
  IF dedupe_id IS NOT NULL THEN
    PERFORM :"schema".check_name('dedupe id', dedupe_id, 1024);
  END IF;
  IF supersedes IS NOT NULL THEN
    PERFORM :"schema".check_name('key of what it supersedes', supersedes, 1024);
  END IF;
  IF queue ^@ 'tollgate:' OR queue ^@ 'machine/' OR queue ^@ 'task/' THEN
    RAISE EXCEPTION 'tollgate: the calls of queue % are Tollgate''s own, or those of runs: nobody else hands in there', queue
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF NOT EXISTS (SELECT FROM :"schema".queue_names AS known WHERE known.queue = enqueue_bytes.queue) THEN
    RAISE EXCEPTION 'tollgate: there is no queue %: define it first', queue
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF dedupe_id ^@ 'tollgate/' THEN
    RAISE EXCEPTION 'tollgate: dedupe ids that begin with "tollgate/" are Tollgate''s own: choose another'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF priority IS NULL OR priority NOT BETWEEN 0 AND 9 THEN
    RAISE EXCEPTION 'tollgate: a priority is 0 to 9, and this is %', coalesce(priority::text, 'null')
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF delay IS NOT NULL AND not_before IS NOT NULL THEN
    RAISE EXCEPTION 'tollgate: leave out delay or not_before: they say the same'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF delay < interval '0' THEN
    RAISE EXCEPTION 'tollgate: a delay is not negative, and this is %', delay
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF octet_length(body) > 16777216 THEN
    RAISE EXCEPTION
      'tollgate: a body may have up to 16777216 bytes, and this one has %: keep it elsewhere and send a reference',
      octet_length(body) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO :"schema".inbox AS made
    (queue, lane, body, tolls, priority, not_before, dedupe, supersedes)
  VALUES
    (queue, lane, coalesce(body, ''), tolls, priority,
     coalesce(not_before, clock_timestamp() + delay), dedupe_id, supersedes)
  RETURNING made.ticket INTO given;
  -- Heard when the transaction commits, once however many calls it hands in.
  PERFORM pg_notify(:'schema', 'inbox');
  RETURN given;
END
$$;

-- Hands in a call whose body is JSON.
CREATE FUNCTION :"schema".enqueue(
  queue text,
  lane text,
  body jsonb,
  priority integer DEFAULT 0,
  delay interval DEFAULT NULL,
  not_before timestamptz DEFAULT NULL,
  dedupe_id text DEFAULT NULL,
  supersedes text DEFAULT NULL,
  tolls jsonb DEFAULT '[]'
) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT :"schema".enqueue_bytes(
    queue, lane, convert_to(body::text, 'UTF8'), priority, delay, not_before, dedupe_id, supersedes,
    tolls)
$$;

COMMENT ON FUNCTION :"schema".enqueue IS
  'Hands in a call with a JSON body. It becomes a call when the transaction commits, and never if it '
  'rolls back. Answers its ticket, by which it stands in the inbox until then.';
COMMENT ON FUNCTION :"schema".enqueue_bytes IS 'As enqueue(), for a body of any bytes.';

-- Who may look at the views may not therefore hand in calls.
REVOKE EXECUTE ON FUNCTION :"schema".enqueue, :"schema".enqueue_bytes FROM PUBLIC;
