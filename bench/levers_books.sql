-- Experiments of bench.levers_books in scratch databases, no migrations. Most take away what protects the books.

-- name: no note
DROP TRIGGER cron_jobs_note_pause ON cron_jobs

-- name: no foreign key
ALTER TABLE cron_jobs DROP CONSTRAINT cron_jobs_deployment_id_fkey

-- name: no checks
ALTER TABLE cron_jobs DROP CONSTRAINT cron_jobs_sound;
ALTER TABLE cron_executions DROP CONSTRAINT cron_executions_sound

-- name: long checks
-- As they were before docs/decisions/0122.
DROP TRIGGER cron_jobs_sound ON cron_jobs;
ALTER DOMAIN cron_outcome DROP CONSTRAINT cron_outcome_known;
ALTER TABLE cron_jobs ADD CONSTRAINT cron_jobs_sound CHECK (
    key > '' AND slot BETWEEN 0 AND 4095 AND timeout_ms <> 0 AND on_disconnect IN ('stop', 'finish')
    AND (next_tick IS NULL) = (next_execution IS NULL)
    AND (removed_at IS NULL AND cancelled_at IS NULL AND orphaned_at IS NULL OR next_tick IS NULL)
    AND (orphaned_tick IS NULL OR orphaned_at IS NOT NULL)
    AND CASE WHEN paused_at IS NULL THEN paused_tick IS NULL AND paused_until IS NULL
             ELSE paused_until IS NOT NULL OR next_tick IS NULL AND orphaned_tick IS NULL END
    AND CASE state WHEN 'idle' THEN start_time IS NULL AND execution_id IS NULL AND running >= 0
                   WHEN 'executing' THEN start_time IS NOT NULL AND execution_id IS NOT NULL AND running = 0
                   ELSE false END);
ALTER TABLE cron_executions ADD CONSTRAINT cron_executions_sound CHECK (
    attempt > 0 AND claimed_at >= run_at AND controller_id > '' AND NOT (holds_job AND counted)
    AND CASE WHEN outcome IS NULL THEN ended_at IS NULL
             ELSE outcome IN ('completed', 'failed', 'timed_out', 'cancelled', 'lost', 'out_of_memory', 'out_of_cpu')
                  AND ended_at IS NOT NULL AND ended_at >= started_at AND started_at >= claimed_at END)

-- name: no due
DROP INDEX cron_jobs_due, cron_jobs_late

-- name: no of_runner
DROP INDEX cron_executions_of_runner

-- name: no unfinished
DROP INDEX cron_executions_of_runner, cron_executions_of_controller, cron_executions_cancelling

-- name: room
-- For each row once more, as those of jobs have it.
DO $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT inhrelid::regclass AS name FROM pg_inherits WHERE inhparent = 'cron_executions'::regclass LOOP
        EXECUTE format('ALTER TABLE %s SET (fillfactor = 45)', part.name);
    END LOOP;
END $$

-- name: no outcome
-- An index whose condition names the outcome is one that each end changes, whether that row has an entry in it or not.
DROP INDEX cron_executions_of_runner, cron_executions_of_controller, cron_executions_cancelling,
           cron_executions_decided, cron_executions_troubled

-- name: cached ids
ALTER SEQUENCE cron_execution_ids CACHE 100

-- name: history
INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                             hard_deadline, trigger, missed, previous_tick, previous_success, holds_job, counted,
                             number)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[],
                     $7::text[], $8::text[], $9::timestamptz[], $10::text[], $11::bigint[], $12::timestamptz[],
                     $13::timestamptz[], $14::boolean[], $15::boolean[], $16::bigint[])

-- name: bare tables
-- The same jobs three times: no CHECK, no trigger, no foreign key. Each row has as much room as ours.
CREATE TABLE wide_jobs (LIKE cron_jobs) WITH (fillfactor = 45);
INSERT INTO wide_jobs SELECT * FROM cron_jobs ORDER BY id;
CREATE TABLE narrow_jobs WITH (fillfactor = 45) AS
SELECT id, key, slot, state, next_tick, next_execution, start_time, execution_id, revision, concurrency, running,
       missed, last_tick, last_run_at, last_started_at, last_ended_at, last_outcome, last_success, failures,
       executions, limits
FROM cron_jobs ORDER BY id;
CREATE TABLE keyless_jobs WITH (fillfactor = 45) AS SELECT * FROM narrow_jobs ORDER BY id;
ALTER TABLE keyless_jobs DROP COLUMN key;
ALTER TABLE wide_jobs ADD PRIMARY KEY (id);
ALTER TABLE narrow_jobs ADD PRIMARY KEY (id);
ALTER TABLE keyless_jobs ADD PRIMARY KEY (id);
CREATE UNIQUE INDEX ON wide_jobs (key);
CREATE UNIQUE INDEX ON narrow_jobs (key);
CREATE INDEX ON wide_jobs (slot, next_execution);
CREATE INDEX ON narrow_jobs (slot, next_execution);
CREATE INDEX ON keyless_jobs (slot, next_execution)

-- name: claim
-- $1 job ids (ascending).
UPDATE hot_jobs j
SET state = 'executing', start_time = now(), execution_id = j.executions, executions = j.executions + 1, missed = 0,
    last_tick = j.next_tick
FROM unnest($1::bigint[]) AS w (job_id)
WHERE j.id = w.job_id

-- name: end
-- $1 job ids (ascending).
UPDATE hot_jobs j
SET state = 'idle', start_time = NULL, execution_id = NULL, next_tick = j.next_tick + interval '1 second',
    next_execution = j.next_execution + interval '1 second', last_run_at = j.next_execution, last_started_at = now(),
    last_ended_at = now(), last_outcome = 'completed', last_success = j.next_tick, failures = 0
FROM unnest($1::bigint[]) AS w (job_id)
WHERE j.id = w.job_id
