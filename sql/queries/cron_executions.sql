-- LATERAL with OFFSET 0: one index probe for each row on the left, never a join that reads all that runs; see
-- cron_jobs.sql.

-- name: AdoptExecutions
-- docs/decisions/0003: name job, tick and id in what looks into partitions
-- `:from_ids`: controllers that left them unfinished. `:runner_ids` null: on all runners. Rows are locked one by one,
-- in order of ids, as in EndCronJob. If a row has changed meanwhile, the conditions are checked again.
WITH left_behind AS MATERIALIZED (
    SELECT id, tick FROM cron_executions
    WHERE outcome IS NULL AND controller_id > '' AND controller_id = ANY(:from_ids::text[])
      AND (:runner_ids?::text[] IS NULL OR runner_id = ANY(:runner_ids))
    ORDER BY id
), adopted AS (
    UPDATE cron_executions e SET controller_id = :controller_id
    FROM left_behind l
    WHERE e.id = ANY (ARRAY[l.id]) AND e.tick = l.tick AND e.ended_at IS NULL AND e.controller_id = ANY(:from_ids)
    RETURNING e.*
)
SELECT e.id, e.tick, e.run_at, e.claimed_at, e.attempt, e.trigger, ed.key AS deployment, e.runner_id, e.missed,
       e.previous_tick, e.previous_success, coalesce(e.payload, j.payload) AS payload, e.holds_job,
       e.of_schedule, j.*
FROM adopted e
JOIN deployments ed ON ed.id = e.deployment_id
CROSS JOIN LATERAL (SELECT * FROM cron_scheduled_jobs WHERE id = e.job_id OFFSET 0) j
ORDER BY e.id;

-- name: GetUnfinished
-- `:controller_id`: who answers for them (null: anybody).
SELECT * FROM cron_unfinished_executions
WHERE execution_id = ANY(:execution_ids::bigint[])
  AND (:controller_id?::text IS NULL OR controller_id = :controller_id)
ORDER BY execution_id;

-- name: GetLost
-- Unfinished executions of runners not seen for `:lost_after_ms`, without jobs that run on without contact.
SELECT e.*
FROM runners r
CROSS JOIN LATERAL (
    SELECT * FROM cron_unfinished_executions
    WHERE runner_id > '' AND runner_id = r.id AND on_disconnect = 'stop' OFFSET 0
) e
WHERE r.last_seen_at < now() - :lost_after_ms::bigint * interval '1 millisecond'
ORDER BY e.execution_id;

-- name: GetOverdueExecutions
-- Unfinished executions past their hard deadline. The index begins with the controller, and each has a row in
-- controllers: so the join probes the index once for each controller.
SELECT e.*
FROM controllers c
CROSS JOIN LATERAL (
    SELECT * FROM cron_unfinished_executions
    WHERE controller_id > '' AND controller_id = c.id AND hard_deadline <= now() OFFSET 0
) e
ORDER BY e.execution_id;

-- name: GetExecution
-- docs/decisions/0085: no claim copies a payload
-- With the payload that it ran with. `payload_of`: "run", its own; "job", its job's; "": the job's has changed so often
-- since that nobody knows it.
SELECT d.*, e.output, coalesce(e.payload, p.payload) AS payload, e.stack, e.metrics,
       CASE WHEN e.payload IS NOT NULL THEN 'run' WHEN p.payload IS NOT NULL THEN 'job' ELSE '' END AS payload_of
FROM cron_execution_details d
JOIN cron_executions e ON e.id = d.id AND e.tick = d.tick AND e.job_id = d.job_id
CROSS JOIN LATERAL (
    (SELECT payload FROM cron_payloads WHERE job_id = e.job_id AND until_at > e.claimed_at ORDER BY until_at LIMIT 1)
    UNION ALL
    SELECT payload FROM cron_jobs WHERE id = e.job_id
    LIMIT 1
) p
WHERE d.id = :execution_id;

-- name: GetJobIds
-- Every job that ever had this key, removed ones among them.
SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = :key
UNION ALL
SELECT id FROM cron_jobs WHERE removed_at IS NOT NULL AND key > '' AND key = :key
ORDER BY id;

-- name: ListTickRuns
-- Of each tick of a job in a span, the latest attempt, and whether any has completed.
SELECT DISTINCT ON (e.tick) e.tick, e.id, e.outcome,
       coalesce(bool_or(e.outcome = 'completed') OVER (PARTITION BY e.tick), false) AS completed
FROM cron_executions e
WHERE e.job_id = :job_id AND e.tick BETWEEN :first_tick AND :last_tick AND e.trigger <> 'manual'
ORDER BY e.tick, e.attempt DESC;

-- name: FindExecutionBefore
-- An id below which every execution was claimed before `:instant`. It halves the range of ids, as ids grow with claims;
-- a minute of margin covers claims that were committed out of order.
WITH RECURSIVE search (low, high) AS (
    SELECT 0::bigint, coalesce((SELECT max(id) FROM cron_executions), 0)
    UNION ALL
    SELECT CASE WHEN found.claimed_at < :instant::timestamptz - interval '1 minute' THEN found.id ELSE s.low END,
           CASE WHEN found.claimed_at < :instant - interval '1 minute' THEN s.high ELSE (s.low + s.high) / 2 END
    FROM search s
    CROSS JOIN LATERAL (
        SELECT e.id, e.claimed_at FROM cron_executions e
        WHERE e.id > (s.low + s.high) / 2 ORDER BY e.id LIMIT 1
    ) found
    WHERE s.high - s.low > 1
)
SELECT max(low) FROM search;

-- name: GetLastIds
-- The highest ids of executions and of skips, and PostgreSQL's now.
SELECT coalesce((SELECT max(id) FROM cron_executions), 0) AS execution_id,
       coalesce((SELECT max(id) FROM cron_skips), 0) AS skip_id,
       now() AS database_now;

-- name: GetUnfinishedIds
SELECT e.id
FROM controllers c
CROSS JOIN LATERAL (
    SELECT id FROM cron_executions WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
) e;

-- name: GetChanges
-- What has happened to jobs. Executions above `:after_execution_id`, in gaps (parallel arrays; of any tick) or among
-- `:execution_ids`; for the latter, only partitions from `:first_tick` to `:last_tick` are read. Skips above
-- `:after_skip_id` or in gaps (20,000 of each at a time). And, at or after `:since`, what somebody did to a job, ends
-- of pauses, and deployments that were (de)activated. These have no job_id; `instant` tells one from the next.
(SELECT 'execution' AS kind, id, job_id, outcome IS NOT NULL AS ended, NULL::timestamptz AS instant,
        now() AS database_now, tick
 FROM cron_executions WHERE id > :after_execution_id ORDER BY id LIMIT 20000)
UNION ALL
(SELECT 'execution', e.id, e.job_id, e.outcome IS NOT NULL, NULL, now(), e.tick
 FROM unnest(:first_execution_ids::bigint[], :last_execution_ids::bigint[])
     AS g (first, last) JOIN cron_executions e ON e.id BETWEEN g.first AND g.last
 LIMIT 20000)
UNION ALL
SELECT 'execution', id, job_id, outcome IS NOT NULL, NULL, now(), tick FROM cron_executions
WHERE id = ANY(:execution_ids::bigint[]) AND tick BETWEEN :first_tick AND :last_tick
UNION ALL
(SELECT 'skip', id, job_id, true, NULL, now(), NULL FROM cron_skips WHERE id > :after_skip_id ORDER BY id LIMIT 20000)
UNION ALL
(SELECT 'skip', s.id, s.job_id, true, NULL, now(), NULL
 FROM unnest(:first_skip_ids::bigint[], :last_skip_ids::bigint[])
     AS g (first, last) JOIN cron_skips s ON s.id BETWEEN g.first AND g.last
 LIMIT 20000)
UNION ALL
SELECT 'deployment', d.id, NULL, true, greatest(d.activated_at, d.deactivated_at), now(), NULL
FROM deployments d WHERE greatest(d.activated_at, d.deactivated_at) >= :since
UNION ALL
SELECT 'job', id, id, true, changed_at, now(), NULL FROM cron_jobs WHERE changed_at >= :since
UNION ALL
SELECT 'job', id, id, true, paused_until, now(), NULL FROM cron_jobs WHERE paused_until >= :since
  AND paused_until <= now();

-- name: GetExecutionChanges
-- Executions as in GetChanges.
SELECT e.*
FROM ((SELECT * FROM cron_execution_details WHERE id > :after_execution_id ORDER BY id LIMIT 20000)
      UNION ALL
      (SELECT e.* FROM unnest(:first_execution_ids::bigint[], :last_execution_ids::bigint[]) AS g (first, last)
       JOIN cron_execution_details e ON e.id BETWEEN g.first AND g.last LIMIT 20000)
      UNION ALL
      SELECT * FROM cron_execution_details WHERE id = ANY(:execution_ids::bigint[])
        AND tick BETWEEN :first_tick AND :last_tick) e
ORDER BY e.id;
