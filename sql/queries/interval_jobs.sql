-- Jobs of the interval scheduler's contract (docs/interval-jobs.md). Those of the first group are parts of transactions
-- that have locked the job's row, or have just made it.

-- name: AddIntervalJob
INSERT INTO cron_interval_jobs (job_id, id, namespace, source_id, terms)
VALUES (:job_id, :interval_id, :namespace, :source_id?, :terms);

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

-- name: GetIntervalJobs
-- As GetIntervalJob, those of these ids that are there, the newest first.
SELECT d.*, e.claimed_at, e.started_at, e.ended_at, e.attempt, e.outcome, e.error_type, e.error_message
FROM (SELECT * FROM cron_interval_job_details WHERE job_id = ANY(:job_ids::bigint[]) OFFSET 0) d
LEFT JOIN LATERAL (
    SELECT * FROM cron_executions WHERE job_id = d.job_id AND tick >= d.latest_from
    ORDER BY tick DESC, attempt DESC LIMIT 1
) e ON true
ORDER BY d.job_id DESC;

-- name: FindIntervalJobs
-- Ids, the newest first. `:source_id` null: of any.
SELECT job_id FROM cron_interval_jobs
WHERE namespace = :namespace AND (:source_id?::text IS NULL OR source_id = :source_id)
ORDER BY job_id DESC
LIMIT :limit::bigint OFFSET :offset::bigint;

-- name: CountIntervalJobs
SELECT count(*) FROM cron_interval_jobs
WHERE namespace = :namespace AND (:source_id?::text IS NULL OR source_id = :source_id);

-- name: FindIntervalJobsOfStatus
-- docs/decisions/0102: read in one scan of the key
-- As FindIntervalJobs, those of a status, and how many they are. No index has that: each job is looked at.
SELECT (array_agg(f.job_id ORDER BY f.job_id DESC))
           [:offset::integer + 1 : :offset::integer + :limit::integer] AS job_ids,
       count(*) AS total
FROM (
    SELECT j.id AS job_id, cron_interval_status(j.cancelled_at, j.state, j.running, j.orphaned_at, j.paused_at,
                                                j.paused_until, j.paused_by, j.failures, j.next_tick, j.last_outcome,
                                                j.waiting) AS status
    FROM (
        SELECT id, cancelled_at, state, running, orphaned_at, paused_at, paused_until, paused_by, failures, next_tick,
               last_outcome,
               CASE WHEN id IN (SELECT job_id FROM cron_activations WHERE trigger = 'manual') THEN 'manual'
                    WHEN id IN (SELECT job_id FROM cron_activations WHERE trigger = 'retry') THEN 'retry'
               END AS waiting
        FROM cron_jobs
        WHERE id = ANY (ARRAY(
            SELECT job_id FROM cron_interval_jobs
            WHERE namespace = :namespace AND (:source_id?::text IS NULL OR source_id = :source_id)))
        OFFSET 0
    ) j
) f
WHERE f.status = :status;

-- name: CountIntervalStatuses
-- How many jobs there are of each status; see FindIntervalJobsOfStatus.
SELECT f.status, count(*) AS jobs
FROM (
    SELECT cron_interval_status(j.cancelled_at, j.state, j.running, j.orphaned_at, j.paused_at, j.paused_until,
                                j.paused_by, j.failures, j.next_tick, j.last_outcome, j.waiting) AS status
    FROM (
        SELECT id, cancelled_at, state, running, orphaned_at, paused_at, paused_until, paused_by, failures, next_tick,
               last_outcome,
               CASE WHEN id IN (SELECT job_id FROM cron_activations WHERE trigger = 'manual') THEN 'manual'
                    WHEN id IN (SELECT job_id FROM cron_activations WHERE trigger = 'retry') THEN 'retry'
               END AS waiting
        FROM cron_jobs
        WHERE id = ANY (ARRAY(SELECT job_id FROM cron_interval_jobs WHERE namespace = :namespace))
        OFFSET 0
    ) j
) f
GROUP BY f.status;

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
WHERE e.id = :execution_id AND i.namespace = :namespace;

-- name: GetIntervalFigures
-- Of all jobs of a namespace: how many executions ended, completed and were cancelled, and how long they took. What is
-- not folded yet is counted by itself.
SELECT now() AS database_now, sum(n.ended)::bigint AS ended, sum(n.completed)::bigint AS completed,
       sum(n.cancelled)::bigint AS cancelled, sum(n.duration_us)::bigint AS duration_us,
       (SELECT max(lease_expires_at) FROM controllers) AS latest_lease, m.leases_cleared,
       (SELECT coalesce(sum(j.executions), 0)::bigint
        FROM cron_interval_jobs i
        CROSS JOIN LATERAL (SELECT executions FROM cron_jobs WHERE id = i.job_id OFFSET 0) j
        WHERE i.namespace = :namespace) AS executions
FROM (
    SELECT coalesce(sum(f.outcomes[1] + f.outcomes[2] + f.outcomes[3] + f.outcomes[4] + f.outcomes[5] + f.outcomes[6]
                        + f.outcomes[7]), 0) AS ended,
           coalesce(sum(f.outcomes[1]), 0) AS completed, coalesce(sum(f.outcomes[4]), 0) AS cancelled,
           coalesce(sum(f.duration_us), 0) AS duration_us
    FROM cron_interval_jobs i
    CROSS JOIN LATERAL (SELECT * FROM cron_figures WHERE job_id = i.job_id OFFSET 0) f
    WHERE i.namespace = :namespace
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
    CROSS JOIN LATERAL (SELECT namespace FROM cron_interval_jobs WHERE job_id = u.job_id OFFSET 0) i
    WHERE u.outcome IS NOT NULL AND i.namespace = :namespace
) n
CROSS JOIN cron_maintenance m
GROUP BY m.leases_cleared;
