-- Jobs of the interval scheduler's contract (docs/interval-jobs.md). Those of the first group are parts of transactions
-- that have locked the job's row, or have just made it.

-- name: AddIntervalJob
INSERT INTO cron_interval_jobs (job_id, id, source_id, terms) VALUES (:job_id, :interval_id, :source_id?, :terms);

-- name: SetIntervalJob
UPDATE cron_interval_jobs SET source_id = :source_id?, terms = :terms WHERE job_id = :job_id;

-- name: ForgetRetries
-- What waits to be tried again does not: the job is run anew.
DELETE FROM cron_activations WHERE job_id = :job_id AND trigger = 'retry';

-- name: GetIntervalJob
-- The job of that id, with its latest run, which may go on.
SELECT d.*, e.claimed_at, e.started_at, e.ended_at, e.attempt, e.outcome, e.error_type, e.error_message
FROM (SELECT * FROM cron_interval_job_details WHERE id = :interval_id AND namespace = :namespace OFFSET 0) d
LEFT JOIN LATERAL (
    SELECT * FROM cron_executions WHERE job_id = d.job_id AND tick >= d.latest_from
    ORDER BY tick DESC, attempt DESC LIMIT 1
) e ON true;

-- name: ListIntervalJobs
-- As GetIntervalJob, the newest first. `:status` "": any. `:source_id` null: any.
SELECT d.*, e.claimed_at, e.started_at, e.ended_at, e.attempt, e.outcome, e.error_type, e.error_message
FROM (
    SELECT * FROM cron_interval_job_details
    WHERE namespace = :namespace AND (:status = '' OR status = :status)
      AND (:source_id?::text IS NULL OR source_id = :source_id)
    ORDER BY job_id DESC
    LIMIT :limit::bigint OFFSET :offset::bigint
) d
LEFT JOIN LATERAL (
    SELECT * FROM cron_executions WHERE job_id = d.job_id AND tick >= d.latest_from
    ORDER BY tick DESC, attempt DESC LIMIT 1
) e ON true
ORDER BY d.job_id DESC;

-- name: CountIntervalJobs
-- By status, those of a source, or (null) of any.
SELECT status, count(*) FROM cron_interval_job_details
WHERE namespace = :namespace AND (:source_id?::text IS NULL OR source_id = :source_id)
GROUP BY status;

-- name: ListIntervalExecutions
-- A job's executions, the newest first.
SELECT e.id, e.number, e.outcome, e.claimed_at, e.started_at, e.ended_at, e.error_type, e.error_message, e.stack,
       e.cpu_us, e.memory_peak_bytes, e.attempt, e.metrics
FROM cron_executions e
WHERE e.job_id = :job_id
ORDER BY e.number DESC
LIMIT :limit::bigint OFFSET :offset::bigint;

-- name: CountIntervalExecutions
SELECT count(*) FROM cron_executions WHERE job_id = :job_id;

-- name: GetIntervalExecution
-- Of a job of the contract that is there: the id that callers know that one by, and the execution.
SELECT i.id AS interval_id, e.id, e.number, e.outcome, e.claimed_at, e.started_at, e.ended_at, e.error_type,
       e.error_message, e.stack, e.cpu_us, e.memory_peak_bytes, e.attempt, e.metrics
FROM cron_executions e
JOIN cron_interval_jobs i ON i.job_id = e.job_id
JOIN cron_jobs j ON j.id = e.job_id
WHERE e.id = :execution_id AND j.namespace = :namespace AND j.removed_at IS NULL;

-- name: GetIntervalFigures
-- Of all jobs of the contract: how many executions ended, completed and were cancelled, and how long they took. What is
-- not folded yet is counted by itself.
SELECT now() AS database_now, sum(n.ended)::bigint AS ended, sum(n.completed)::bigint AS completed,
       sum(n.cancelled)::bigint AS cancelled, sum(n.duration_us)::bigint AS duration_us,
       (SELECT max(lease_expires_at) FROM controllers) AS latest_lease, m.leases_cleared,
       (SELECT coalesce(sum(j.executions), 0)::bigint FROM cron_interval_jobs i JOIN cron_jobs j ON j.id = i.job_id
        WHERE j.namespace = :namespace AND j.removed_at IS NULL) AS executions
FROM (
    SELECT coalesce(sum(f.outcomes[1] + f.outcomes[2] + f.outcomes[3] + f.outcomes[4] + f.outcomes[5] + f.outcomes[6]
                        + f.outcomes[7]), 0) AS ended,
           coalesce(sum(f.outcomes[1]), 0) AS completed, coalesce(sum(f.outcomes[4]), 0) AS cancelled,
           coalesce(sum(f.duration_us), 0) AS duration_us
    FROM cron_interval_jobs i
    JOIN cron_jobs j ON j.id = i.job_id
    JOIN cron_figures f ON f.job_id = i.job_id
    WHERE j.namespace = :namespace AND j.removed_at IS NULL
    UNION ALL
    SELECT count(*), count(*) FILTER (WHERE u.outcome = 'completed'), count(*) FILTER (WHERE u.outcome = 'cancelled'),
           coalesce(sum(date_part('epoch', u.ended_at - u.started_at) * 1e6), 0)
    FROM (
        SELECT job_id, outcome, started_at, ended_at
        FROM cron_executions WHERE id > (SELECT folded_id FROM cron_folding)
        UNION ALL
        SELECT e.job_id, e.outcome, e.started_at, e.ended_at
        FROM cron_unfolded w
        CROSS JOIN LATERAL (SELECT * FROM cron_executions WHERE id = w.execution_id AND tick = w.tick OFFSET 0) e
    ) u
    JOIN cron_interval_jobs i ON i.job_id = u.job_id
    JOIN cron_jobs j ON j.id = u.job_id
    WHERE u.outcome IS NOT NULL AND j.namespace = :namespace AND j.removed_at IS NULL
) n
CROSS JOIN cron_maintenance m
GROUP BY m.leases_cleared;
