-- Control of jobs: pauses that end by themselves, cancelled jobs, what was decided ahead, and who did what and why.

ALTER TABLE cron_jobs
    -- Of a pause that ends by itself: the job has a next tick already, the first one from then on, and those before it
    -- are in the books as paused. So nothing has to happen when it ends, whoever lives then.
    ADD COLUMN paused_until timestamptz,
    -- Ticks of which it was decided ahead of their time that they don't run: the first and the last. While the last is
    -- still to come, a change takes back what of them is, with their rows in cron_skips.
    ADD COLUMN ahead_from timestamptz,
    ADD COLUMN ahead_until timestamptz,
    -- A cancelled job has no next tick, and its books are closed; it can be restored.
    ADD COLUMN cancelled_at timestamptz,
    ADD COLUMN cancelled_by text,
    ADD COLUMN cancelled_note text,
    DROP CONSTRAINT cron_jobs_sound,
    ADD CONSTRAINT cron_jobs_sound CHECK (
        key > '' AND slot BETWEEN 0 AND 4095 AND timeout_ms > 0 AND on_disconnect IN ('stop', 'finish')
        AND (next_tick IS NULL) = (next_execution IS NULL)
        AND (removed_at IS NULL AND cancelled_at IS NULL OR next_tick IS NULL)
        AND CASE WHEN paused_at IS NULL THEN paused_tick IS NULL AND paused_until IS NULL
                 ELSE paused_until IS NOT NULL OR next_tick IS NULL END
        -- What holds a job runs alone, whatever the job's policy was before.
        AND CASE state WHEN 'idle' THEN start_time IS NULL AND execution_id IS NULL AND running >= 0
                       WHEN 'executing' THEN start_time IS NOT NULL AND execution_id IS NOT NULL AND running = 0
                       ELSE false END);

-- Whoever watches jobs is told when a pause ends by itself. No claim or end changes it, so they stay HOT.
CREATE INDEX cron_jobs_paused_until ON cron_jobs (paused_until) WHERE paused_until IS NOT NULL;

-- Whether a pause is in force.
CREATE FUNCTION cron_paused(paused_at timestamptz, paused_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > now());

-- Whether a job's ticks run, and its retries.
CREATE FUNCTION cron_active(
    removed_at timestamptz, cancelled_at timestamptz, paused_at timestamptz, paused_until timestamptz
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN removed_at IS NULL AND cancelled_at IS NULL
       AND (paused_at IS NULL OR coalesce(paused_until <= now(), false));

ALTER TABLE cron_skips
    DROP CONSTRAINT cron_skips_reason_check,
    ADD CONSTRAINT cron_skips_reason_check CHECK (
        reason IN ('overlap', 'paused', 'no_runner', 'outside_window', 'superseded', 'missed_policy',
                   'deployment_removed', 'cancelled'));

-- What operators did, to a job, to a deployment, or to an execution: written with what it changed.
CREATE TABLE cron_actions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL DEFAULT now(),
    job_id         bigint,
    deployment_id  bigint,
    execution_id   bigint,
    action         text NOT NULL CHECK (action > ''),
    actor          text NOT NULL,
    note           text NOT NULL DEFAULT '',
    -- Instants are ISO 8601 in UTC.
    details        jsonb NOT NULL DEFAULT '{}',
    CHECK (num_nonnulls(job_id, deployment_id, execution_id) > 0)
);
CREATE INDEX cron_actions_at ON cron_actions (at);
CREATE INDEX cron_actions_job ON cron_actions (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX cron_actions_deployment ON cron_actions (deployment_id, id) WHERE deployment_id IS NOT NULL;
CREATE INDEX cron_actions_execution ON cron_actions (execution_id) WHERE execution_id IS NOT NULL;

-- See controller/core/states.py, which says the same of one row.
CREATE OR REPLACE VIEW cron_job_status AS
SELECT id AS job_id,
       CASE WHEN cancelled_at IS NOT NULL OR removed_at IS NOT NULL THEN 'cancelled'
            WHEN cron_paused(paused_at, paused_until) THEN 'paused'
            WHEN state = 'executing' OR running > 0 THEN 'running'
            WHEN next_tick IS NOT NULL THEN 'scheduled'
            WHEN last_outcome IS NULL THEN 'pending'
            WHEN last_outcome = 'completed' THEN 'completed'
            ELSE 'failed'
       END AS status
FROM cron_jobs;
