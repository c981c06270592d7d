-- The bare row changes of an execution: a claim and an end, in our tables and in bare ones. See bench/limits_rows.py.
-- Ticks are seconds since 1970. Nothing else of a scheduler: no lease, no revision, no skips, no figures.

-- name: claim, ours
-- $1 job ids (ascending), $2 their ticks. What else is set, the constraints of these tables want.
WITH claimed AS (
    UPDATE cron_jobs j
    SET state = 'executing', start_time = now(), execution_id = nextval('cron_execution_ids'),
        last_tick = to_timestamp(w.tick)
    FROM unnest($1::bigint[], $2::bigint[]) AS w (job_id, tick)
    WHERE j.id = w.job_id AND j.state = 'idle'
    RETURNING j.execution_id, j.id, j.deployment_id, j.last_tick, j.timeout_ms
)
INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                             hard_deadline)
SELECT execution_id, id, deployment_id, last_tick, last_tick, now(), 'bench', 'bench',
       now() + timeout_ms * interval '1 millisecond'
FROM claimed
RETURNING id, job_id

-- name: end, ours
-- $1 execution ids, $2 job ids, $3 ticks, $4 the jobs' next ticks. That it is unfinished, only the job's row says: were
-- that asked of executions, of which hardly any are, all would be read and compared with each that is to end.
WITH reported AS MATERIALIZED (
    SELECT execution_id, job_id, to_timestamp(tick) AS tick, to_timestamp(next_tick) AS next_tick
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS r (execution_id, job_id, tick, next_tick)
), ended AS (
    UPDATE cron_executions e
    SET outcome = 'completed', started_at = e.claimed_at, ended_at = now()
    FROM reported r
    WHERE e.id = r.execution_id AND e.tick = r.tick
    RETURNING r.execution_id, r.job_id, r.next_tick
)
UPDATE cron_jobs j
SET state = 'idle', start_time = NULL, execution_id = NULL, next_tick = e.next_tick, next_execution = e.next_tick
FROM ended e
WHERE j.id = e.job_id AND j.execution_id = e.execution_id

-- name: bare tables
-- The columns that say what is claimed and what has ended, and primary keys. Rows of jobs have as much room as ours.
CREATE TABLE bare_jobs (
    id bigint PRIMARY KEY,
    state text NOT NULL,
    next_tick timestamptz,
    execution_id bigint
) WITH (fillfactor = 45);
CREATE TABLE bare_executions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL,
    tick timestamptz NOT NULL,
    claimed_at timestamptz NOT NULL,
    ended_at timestamptz,
    outcome text
);
INSERT INTO bare_jobs SELECT id, state, next_tick FROM cron_jobs ORDER BY id

-- name: claim, bare
-- $1 job ids (ascending), $2 their ticks.
WITH claimed AS (
    UPDATE bare_jobs j
    SET state = 'executing', execution_id = nextval('bare_executions_id_seq')
    FROM unnest($1::bigint[], $2::bigint[]) AS w (job_id, tick)
    WHERE j.id = w.job_id AND j.state = 'idle'
    RETURNING j.execution_id, j.id, w.tick
)
INSERT INTO bare_executions (id, job_id, tick, claimed_at) OVERRIDING SYSTEM VALUE
SELECT execution_id, id, to_timestamp(tick), now() FROM claimed
RETURNING id, job_id

-- name: end, bare
-- As `end, ours`; an execution is found by its id alone.
WITH ended AS (
    UPDATE bare_executions e
    SET outcome = 'completed', ended_at = now()
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS r (execution_id, job_id, tick, next_tick)
    WHERE e.id = r.execution_id
    RETURNING r.execution_id, r.job_id, r.next_tick
)
UPDATE bare_jobs j
SET state = 'idle', execution_id = NULL, next_tick = to_timestamp(e.next_tick)
FROM ended e
WHERE j.id = e.job_id AND j.execution_id = e.execution_id

-- name: jobs
SELECT id FROM cron_jobs ORDER BY id

-- name: partitions
SELECT count(*) FROM pg_inherits WHERE inhparent = 'cron_executions'::regclass

-- name: settings
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'wal_sync_method')
