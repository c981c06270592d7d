-- Schedule policies, jobs made through the API, and runs beside the schedule: retries, manual runs, backfills.

ALTER TABLE cron_jobs
    -- Canonical JSON of what isn't default (schema/policy.py); "" for none.
    ADD COLUMN policy text NOT NULL DEFAULT '',
    -- 0: one execution at a time, held by `state`. Else (overlap "allow") as many; the state stays idle, `running` counts.
    ADD COLUMN concurrency integer NOT NULL DEFAULT 0 CHECK (concurrency >= 0),
    ADD COLUMN running integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    -- Pause after so many ticks in a row that ended without success; 0: never.
    ADD COLUMN pause_after integer NOT NULL DEFAULT 0 CHECK (pause_after >= 0),
    ADD COLUMN failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    -- The latest tick whose execution completed.
    ADD COLUMN last_success timestamptz,
    -- A paused job has no next tick; `paused_tick` is the first one that its pause keeps from running.
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN paused_tick timestamptz,
    ADD COLUMN paused_by text,
    ADD COLUMN paused_note text,
    ADD COLUMN source text NOT NULL DEFAULT 'annotation' CHECK (source IN ('annotation', 'api')),
    -- JSON for the verb's parameter; "" for none.
    ADD COLUMN payload text NOT NULL DEFAULT '' CHECK (octet_length(payload) <= 65536),
    ADD COLUMN labels jsonb NOT NULL DEFAULT '{}',
    -- Who made, changed, resumed or deleted it last through the API.
    ADD COLUMN changed_by text NOT NULL DEFAULT '',
    -- When; by this, whoever watches jobs finds what no execution, skip or deployment tells of.
    ADD COLUMN changed_at timestamptz,
    -- next_execution >= next_tick no longer holds: an interval's jitter goes both ways.
    DROP CONSTRAINT cron_jobs_check1,
    ADD CONSTRAINT cron_jobs_paused CHECK (paused_at IS NULL OR next_tick IS NULL),
    ADD CONSTRAINT cron_jobs_paused_tick CHECK (paused_at IS NOT NULL OR paused_tick IS NULL),
    -- Whatever its policy was and is: what holds a job runs alone.
    ADD CONSTRAINT cron_jobs_alone CHECK (state = 'idle' OR running = 0);

CREATE INDEX cron_jobs_changed ON cron_jobs (changed_at) WHERE changed_at IS NOT NULL;

ALTER TABLE cron_schedules ADD COLUMN policy text NOT NULL DEFAULT '';
CREATE INDEX cron_schedules_open ON cron_schedules (job_id) WHERE until_at IS NULL;

ALTER TABLE cron_executions
    -- What its handler is told: ticks passed over since the execution before, that one's tick, the latest that completed.
    ADD COLUMN missed bigint NOT NULL DEFAULT 0 CHECK (missed >= 0),
    ADD COLUMN previous_tick timestamptz,
    ADD COLUMN previous_success timestamptz,
    -- In place of the job's own.
    ADD COLUMN payload text CHECK (octet_length(payload) <= 65536),
    -- False: it runs beside others, and its end neither frees the job nor sets the next tick.
    ADD COLUMN holds_job boolean NOT NULL DEFAULT true,
    -- It is one of its job's `running`. One that neither holds its job nor is counted runs beside whatever the job does.
    ADD COLUMN counted boolean NOT NULL DEFAULT false,
    -- When it was to be tried again, had no tick come before.
    ADD COLUMN retry_at timestamptz,
    ADD CONSTRAINT cron_executions_trigger CHECK (trigger IN ('schedule', 'catch_up', 'retry', 'manual', 'backfill')),
    ADD CONSTRAINT cron_executions_counted CHECK (NOT (holds_job AND counted));

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
