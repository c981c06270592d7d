-- Schedule policies, jobs made through the API, and runs beside the schedule: retries, manual runs, backfills.

ALTER TABLE cron_jobs
    -- 0: one execution at a time, held by `state`. Else (overlap "allow") as many; the state stays idle, `running` counts.
    ADD COLUMN concurrency smallint NOT NULL DEFAULT 0,
    ADD COLUMN running smallint NOT NULL DEFAULT 0,
    -- Pause after so many ticks in a row that ended without success; 0: never.
    ADD COLUMN pause_after integer NOT NULL DEFAULT 0,
    ADD COLUMN failures integer NOT NULL DEFAULT 0,
    -- The latest tick whose execution completed.
    ADD COLUMN last_success timestamptz,
    -- A paused job has no next tick; `paused_tick` is the first one that its pause keeps from running.
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN paused_tick timestamptz,
    ADD COLUMN paused_by text,
    ADD COLUMN paused_note text,
    -- Canonical JSON of what isn't default (schema/policy.py); "" for none.
    ADD COLUMN policy text NOT NULL DEFAULT '',
    ADD COLUMN source text NOT NULL DEFAULT 'annotation',
    -- JSON for the verb's parameter; "" for none.
    ADD COLUMN payload text NOT NULL DEFAULT '',
    ADD COLUMN labels jsonb NOT NULL DEFAULT '{}',
    -- Who made, changed, resumed or deleted it last through the API.
    ADD COLUMN changed_by text,
    -- When; by this, whoever watches jobs finds what no execution, skip or deployment tells of.
    ADD COLUMN changed_at timestamptz,
    -- One constraint in place of many: whatever a claim or an end changes, each of them is evaluated for its row.
    DROP CONSTRAINT cron_jobs_key_check,
    DROP CONSTRAINT cron_jobs_slot_check,
    DROP CONSTRAINT cron_jobs_timeout_ms_check,
    DROP CONSTRAINT cron_jobs_on_disconnect_check,
    DROP CONSTRAINT cron_jobs_state_check,
    DROP CONSTRAINT cron_jobs_check,
    DROP CONSTRAINT cron_jobs_check1, -- next_execution >= next_tick: an interval's jitter goes both ways
    DROP CONSTRAINT cron_jobs_check2,
    DROP CONSTRAINT cron_jobs_check3,
    DROP CONSTRAINT cron_jobs_check4,
    ADD CONSTRAINT cron_jobs_sound CHECK (
        key > '' AND slot BETWEEN 0 AND 4095 AND timeout_ms > 0 AND on_disconnect IN ('stop', 'finish')
        AND (next_tick IS NULL) = (next_execution IS NULL)
        AND (removed_at IS NULL OR next_tick IS NULL)
        AND CASE WHEN paused_at IS NULL THEN paused_tick IS NULL ELSE next_tick IS NULL END
        -- What holds a job runs alone, whatever the job's policy was before.
        AND CASE state WHEN 'idle' THEN start_time IS NULL AND execution_id IS NULL AND running >= 0
                       WHEN 'executing' THEN start_time IS NOT NULL AND execution_id IS NOT NULL AND running = 0
                       ELSE false END);

-- No claim or end touches it, so they stay HOT; without it whoever watches reads all jobs four times a second.
CREATE INDEX cron_jobs_changed ON cron_jobs (changed_at) WHERE changed_at IS NOT NULL;

ALTER TABLE cron_schedules ADD COLUMN policy text NOT NULL DEFAULT '';
CREATE INDEX cron_schedules_open ON cron_schedules (job_id) WHERE until_at IS NULL;

ALTER TABLE cron_executions
    -- What its handler is told: ticks passed over since the execution before, that one's tick, the latest that completed.
    ADD COLUMN missed bigint NOT NULL DEFAULT 0,
    ADD COLUMN previous_tick timestamptz,
    ADD COLUMN previous_success timestamptz,
    -- In place of the job's own.
    ADD COLUMN payload text,
    -- False: it runs beside others, and its end neither frees the job nor sets the next tick.
    ADD COLUMN holds_job boolean NOT NULL DEFAULT true,
    -- It is one of its job's `running`. One that neither holds its job nor is counted runs beside whatever the job does.
    ADD COLUMN counted boolean NOT NULL DEFAULT false,
    -- When it was to be tried again, had no tick come before.
    ADD COLUMN retry_at timestamptz,
    DROP CONSTRAINT cron_executions_attempt_check,
    DROP CONSTRAINT cron_executions_check,
    DROP CONSTRAINT cron_executions_check1,
    DROP CONSTRAINT cron_executions_check2,
    DROP CONSTRAINT cron_executions_check3,
    DROP CONSTRAINT cron_executions_outcome_check,
    DROP CONSTRAINT cron_executions_controller_id_check,
    DROP CONSTRAINT cron_executions_runner_id_check,
    ADD CONSTRAINT cron_executions_sound CHECK (
        attempt > 0 AND claimed_at >= run_at AND controller_id > '' AND runner_id > '' AND NOT (holds_job AND counted)
        AND CASE WHEN outcome IS NULL THEN ended_at IS NULL
                 ELSE outcome IN ('completed', 'failed', 'timed_out', 'cancelled', 'lost') AND ended_at IS NOT NULL
                      AND ended_at >= started_at AND started_at >= claimed_at END);

ALTER TABLE cron_skips
    DROP CONSTRAINT cron_skips_reason_check,
    ADD CONSTRAINT cron_skips_reason_check CHECK (
        reason IN ('overlap', 'paused', 'no_runner', 'outside_window', 'superseded', 'missed_policy'));

-- Runs that wait beside the schedule. A backfill is one row that moves from tick to tick.
CREATE SEQUENCE cron_activation_ids AS bigint;
CREATE TABLE cron_activations (
    id             bigint NOT NULL DEFAULT nextval('cron_activation_ids') PRIMARY KEY,
    job_id         bigint NOT NULL,
    slot           integer NOT NULL CHECK (slot BETWEEN 0 AND 4095),
    trigger        text NOT NULL CHECK (trigger IN ('retry', 'manual', 'backfill')),
    tick           timestamptz NOT NULL,
    until_tick     timestamptz,
    attempt        integer NOT NULL CHECK (attempt > 0),
    run_at         timestamptz NOT NULL,
    -- In place of the job's own.
    payload        text CHECK (octet_length(payload) <= 65536),
    beside         boolean NOT NULL DEFAULT false,
    -- Of a backfill: also ticks that completed before.
    again          boolean NOT NULL DEFAULT false,
    requested_by   text NOT NULL DEFAULT '',
    created_at     timestamptz NOT NULL DEFAULT now(),
    CHECK ((trigger = 'backfill') = (until_tick IS NOT NULL)),
    CHECK (until_tick >= tick)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
ALTER SEQUENCE cron_activation_ids OWNED BY cron_activations.id;
CREATE INDEX cron_activations_due ON cron_activations (slot, run_at);
CREATE INDEX cron_activations_job ON cron_activations (job_id);

CREATE OR REPLACE VIEW cron_job_status AS
SELECT id AS job_id,
       CASE WHEN state = 'executing' OR running > 0 THEN 'running'
            WHEN removed_at IS NOT NULL THEN 'cancelled'
            WHEN paused_at IS NOT NULL THEN 'paused'
            WHEN next_tick IS NOT NULL THEN 'scheduled'
            WHEN last_outcome IS NULL THEN 'pending'
            WHEN last_outcome IN ('completed', 'cancelled') THEN last_outcome
            ELSE 'failed'
       END AS status
FROM cron_jobs;
