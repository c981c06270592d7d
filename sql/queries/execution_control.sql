-- What operators do to single executions.

-- name: MarkCancelled
-- docs/decisions/0052: a mark outlives whoever set it
-- Marks an unfinished execution that isn't marked yet, and notifies controllers. No row: there is no such execution, it
-- has ended, or it was marked before.
WITH marked AS (
    UPDATE cron_executions SET cancel_requested_at = now(), cancel_requested_by = :actor, cancel_note = :note
    WHERE id = :execution_id AND ended_at IS NULL AND cancel_requested_at IS NULL
    RETURNING id, job_id
)
SELECT m.job_id, (SELECT j.key FROM cron_jobs j WHERE j.id = m.job_id) AS job,
       pg_notify(current_schema() || '.cancels', m.id::text)
FROM marked m;

-- name: LockJobOfExecution
-- The job of an execution, locked until the transaction ends, and what a retry of the execution takes over from it.
-- `payload`: that it ran with (see GetExecution); null: it had none, or nobody knows it any more.
SELECT j.id, j.key,
       CASE WHEN j.removed_at IS NOT NULL THEN 'removed' WHEN j.cancelled_at IS NOT NULL THEN 'cancelled'
            WHEN j.orphaned_at IS NOT NULL THEN 'orphaned' ELSE '' END AS gone,
       e.tick, nullif(coalesce(e.payload, p.payload), '') AS payload, NOT (e.holds_job OR e.counted) AS beside,
       e.of_schedule
FROM cron_executions e
JOIN cron_jobs j ON j.id = e.job_id
CROSS JOIN LATERAL (
    (SELECT payload FROM cron_payloads WHERE job_id = e.job_id AND until_at > e.claimed_at ORDER BY until_at LIMIT 1)
    UNION ALL
    SELECT payload FROM cron_jobs WHERE id = e.job_id
    LIMIT 1
) p
WHERE e.id = :execution_id
FOR NO KEY UPDATE OF j;

-- name: GetAttempts
-- An execution, and other attempts at its tick that run, or have completed, or came later: the latest first.
SELECT id, attempt, outcome, counted_before
FROM cron_executions
WHERE job_id = :job_id AND tick = :tick AND (ended_at IS NULL OR outcome = 'completed' OR id >= :execution_id)
ORDER BY attempt DESC;

-- name: HastenRetry
-- A waiting retry of the tick becomes one by hand, and runs now, with that payload. `:payload` null: with its own.
UPDATE cron_activations SET requested_by = :actor, run_at = least(run_at, now()), payload = coalesce(:payload?, payload)
WHERE job_id = :job_id AND tick = :tick AND trigger = 'retry'
RETURNING id;

-- name: CreateRetry
-- `:payload` null: the job's own. `:counted_before`: its tick has counted as one without success.
INSERT INTO cron_activations (job_id, slot, trigger, tick, attempt, run_at, payload, beside, of_schedule, requested_by,
                              counted_before)
SELECT id, slot, 'retry', :tick, :attempt, now(), :payload?, :beside, :of_schedule, :actor, :counted_before
FROM cron_jobs WHERE id = :job_id
RETURNING id;
