-- Jobs that somebody made through the API outlive their verb: orphaned, they wait until a version has it again.

ALTER TABLE cron_jobs
    ADD COLUMN orphaned_at timestamptz,
    -- Of an orphaned job, which has no next tick: the first that nobody had decided. It and all after it don't run, and
    -- are skipped as no_verb, in one row, when the verb is back: nothing is written for each of them.
    ADD COLUMN orphaned_tick timestamptz,
    DROP CONSTRAINT cron_jobs_sound,
    ADD CONSTRAINT cron_jobs_sound CHECK (
        key > '' AND slot BETWEEN 0 AND 4095 AND timeout_ms > 0 AND on_disconnect IN ('stop', 'finish')
        AND (next_tick IS NULL) = (next_execution IS NULL)
        AND (removed_at IS NULL AND cancelled_at IS NULL AND orphaned_at IS NULL OR next_tick IS NULL)
        AND (orphaned_tick IS NULL OR orphaned_at IS NOT NULL)
        AND CASE WHEN paused_at IS NULL THEN paused_tick IS NULL AND paused_until IS NULL
                 ELSE paused_until IS NOT NULL OR next_tick IS NULL AND orphaned_tick IS NULL END
        AND CASE state WHEN 'idle' THEN start_time IS NULL AND execution_id IS NULL AND running >= 0
                       WHEN 'executing' THEN start_time IS NOT NULL AND execution_id IS NOT NULL AND running = 0
                       ELSE false END);

-- For the doctor, however many jobs there are. No claim or end changes it, so they stay HOT.
CREATE INDEX cron_jobs_orphaned ON cron_jobs (module, verb) WHERE orphaned_at IS NOT NULL;

-- Whether a job's ticks run, and its retries. (That of four arguments is for the release before.)
CREATE FUNCTION cron_active(
    removed_at timestamptz, cancelled_at timestamptz, orphaned_at timestamptz, paused_at timestamptz,
    paused_until timestamptz
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN removed_at IS NULL AND cancelled_at IS NULL AND orphaned_at IS NULL
       AND (paused_at IS NULL OR coalesce(paused_until <= now(), false));

ALTER TABLE cron_skips
    DROP CONSTRAINT cron_skips_reason_check,
    ADD CONSTRAINT cron_skips_reason_check CHECK (
        reason IN ('overlap', 'paused', 'no_runner', 'outside_window', 'superseded', 'missed_policy',
                   'deployment_removed', 'cancelled', 'no_verb'));

-- See controller/core/states.py, which says the same of one row.
CREATE OR REPLACE VIEW cron_job_status AS
SELECT id AS job_id,
       CASE WHEN cancelled_at IS NOT NULL OR removed_at IS NOT NULL THEN 'cancelled'
            WHEN orphaned_at IS NOT NULL THEN 'orphaned'
            WHEN cron_paused(paused_at, paused_until) THEN 'paused'
            WHEN state = 'executing' OR running > 0 THEN 'running'
            WHEN next_tick IS NOT NULL THEN 'scheduled'
            WHEN last_outcome IS NULL THEN 'pending'
            WHEN last_outcome = 'completed' THEN 'completed'
            ELSE 'failed'
       END AS status
FROM cron_jobs;
-- works with: 18
