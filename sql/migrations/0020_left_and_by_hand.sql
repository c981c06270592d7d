-- A runner that drained and left is none that died: since when it is gone.
ALTER TABLE runners ADD COLUMN left_at timestamptz;

-- A job without a schedule of its own is never done: it waits to be triggered, or for the job that it follows.
-- See controller/core/states.py, which says the same of one row.
CREATE OR REPLACE VIEW cron_job_status AS
SELECT id AS job_id,
       CASE WHEN cancelled_at IS NOT NULL OR removed_at IS NOT NULL THEN 'cancelled'
            WHEN orphaned_at IS NOT NULL THEN 'orphaned'
            WHEN cron_paused(paused_at, paused_until) THEN 'paused'
            WHEN state = 'executing' OR running > 0 THEN 'running'
            WHEN next_tick IS NOT NULL THEN 'scheduled'
            WHEN last_outcome IS NULL OR schedule = 'manual' THEN 'pending'
            WHEN last_outcome = 'completed' THEN 'completed'
            ELSE 'failed'
       END AS status
FROM cron_jobs;
-- works with: 19
