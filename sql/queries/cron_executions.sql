-- LATERAL with OFFSET 0: one index probe for each row on the left, never a join that reads all that runs; see cron_jobs.sql.

-- name: AdoptExecutions
-- docs/decisions/0003: name job, tick and id in what looks into partitions
-- $1 the new controller's id, $2 ids of those that left them unfinished, $3 on which runners (null: on all). Locked as it
-- goes, in order of ids, as EndCronJob does: what it is that is adopted is asked again of a row that has changed meanwhile.
WITH left_behind AS MATERIALIZED (
    SELECT id, tick FROM cron_executions
    WHERE outcome IS NULL AND controller_id > '' AND controller_id = ANY($2::text[])
      AND ($3::text[] IS NULL OR runner_id = ANY($3))
    ORDER BY id
), adopted AS (
    UPDATE cron_executions e SET controller_id = $1
    FROM left_behind l
    WHERE e.id = ANY (ARRAY[l.id]) AND e.tick = l.tick AND e.ended_at IS NULL AND e.controller_id = ANY($2)
    RETURNING e.*
)
SELECT e.id, e.tick, e.run_at, e.claimed_at, e.attempt, e.trigger, ed.key AS deployment, e.runner_id, e.missed,
       e.previous_tick, e.previous_success, coalesce(e.payload, j.payload) AS payload, e.holds_job,
       e.of_schedule, j.id AS job_id, j.key, j.slot, d.key AS job_deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload AS job_payload
FROM adopted e
JOIN deployments ed ON ed.id = e.deployment_id
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
JOIN deployments d ON d.id = j.deployment_id
ORDER BY e.id;

-- name: GetUnfinished
-- $1 execution ids, $2 the controller that answers for them (null: any).
SELECT e.id, e.tick, e.run_at, e.claimed_at, e.attempt, e.trigger, ed.key AS deployment, e.runner_id, e.missed,
       e.previous_tick, e.previous_success, coalesce(e.payload, j.payload) AS payload, e.holds_job,
       e.of_schedule, j.id AS job_id, j.key, j.slot, d.key AS job_deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload AS job_payload
FROM cron_executions e
JOIN deployments ed ON ed.id = e.deployment_id
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
JOIN deployments d ON d.id = j.deployment_id
WHERE e.id = ANY($1::bigint[]) AND e.outcome IS NULL AND ($2::text IS NULL OR e.controller_id = $2)
ORDER BY e.id;

-- name: GetLost
-- Unfinished executions of runners not seen for $1 ms, but for jobs that run on without contact.
SELECT e.id, e.tick, e.run_at, e.claimed_at, e.attempt, e.trigger, ed.key AS deployment, e.runner_id, e.missed,
       e.previous_tick, e.previous_success, coalesce(e.payload, j.payload) AS payload, e.holds_job,
       e.of_schedule, j.id AS job_id, j.key, j.slot, d.key AS job_deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload AS job_payload
FROM runners r
CROSS JOIN LATERAL (
    SELECT * FROM cron_executions WHERE outcome IS NULL AND runner_id > '' AND runner_id = r.id OFFSET 0
) e
JOIN deployments ed ON ed.id = e.deployment_id
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
JOIN deployments d ON d.id = j.deployment_id
WHERE r.last_seen_at < now() - $1::bigint * interval '1 millisecond' AND j.on_disconnect = 'stop'
ORDER BY e.id;

-- name: GetOverdueExecutions
-- Unfinished executions past their hard deadline. Each has a row in controllers: that is how the index is entered.
SELECT e.id, e.tick, e.run_at, e.claimed_at, e.attempt, e.trigger, ed.key AS deployment, e.runner_id, e.missed,
       e.previous_tick, e.previous_success, coalesce(e.payload, j.payload) AS payload, e.holds_job,
       e.of_schedule, j.id AS job_id, j.key, j.slot, d.key AS job_deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload AS job_payload
FROM controllers c
CROSS JOIN LATERAL (
    SELECT * FROM cron_executions
    WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id AND hard_deadline <= now()
    OFFSET 0
) e
JOIN deployments ed ON ed.id = e.deployment_id
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
JOIN deployments d ON d.id = j.deployment_id
ORDER BY e.id;

-- name: GetExecution
-- $1 execution id.
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, e.output,
       e.missed, e.previous_tick, e.previous_success, e.payload, e.holds_job, e.retry_at,
       e.cancel_requested_at, e.cancel_requested_by, e.cancel_note, e.number, e.cpu_us, e.memory_peak_bytes,
       e.memory_shared, e.stack, e.metrics
FROM cron_executions e
JOIN cron_jobs j ON j.id = e.job_id
JOIN deployments d ON d.id = e.deployment_id
WHERE e.id = $1;

-- name: ListExecutions
-- The newest first. $1 below this id, $2 above this id, $3 tick at or after, or null, $4 outcome or "" for any, $5 limit.
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, NULL AS output,
       e.missed, e.previous_tick, e.previous_success, NULL AS payload, e.holds_job, e.retry_at,
       e.cancel_requested_at, e.cancel_requested_by, e.cancel_note, e.number, e.cpu_us, e.memory_peak_bytes,
       e.memory_shared, NULL AS stack, NULL AS metrics
FROM cron_executions e
JOIN cron_jobs j ON j.id = e.job_id
JOIN deployments d ON d.id = e.deployment_id
WHERE e.id < $1 AND e.id > $2 AND e.tick >= coalesce($3::timestamptz, '-infinity') AND ($4 = '' OR e.outcome = $4)
ORDER BY e.id DESC
LIMIT $5;

-- name: ListTroubledExecutions
-- As ListExecutions, of one outcome ($4) that is not "completed": those have an index of their own.
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, NULL AS output,
       e.missed, e.previous_tick, e.previous_success, NULL AS payload, e.holds_job, e.retry_at,
       e.cancel_requested_at, e.cancel_requested_by, e.cancel_note, e.number, e.cpu_us, e.memory_peak_bytes,
       e.memory_shared, NULL AS stack, NULL AS metrics
FROM cron_executions e
JOIN cron_jobs j ON j.id = e.job_id
JOIN deployments d ON d.id = e.deployment_id
WHERE e.outcome <> 'completed' AND e.outcome = $4
  AND e.id < $1 AND e.id > $2 AND e.tick >= coalesce($3::timestamptz, '-infinity')
ORDER BY e.id DESC
LIMIT $5;

-- name: ListRunningExecutions
-- As ListExecutions, of unfinished ones.
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, NULL AS output,
       e.missed, e.previous_tick, e.previous_success, NULL AS payload, e.holds_job, e.retry_at,
       e.cancel_requested_at, e.cancel_requested_by, e.cancel_note, e.number, e.cpu_us, e.memory_peak_bytes,
       e.memory_shared, NULL AS stack, NULL AS metrics
FROM controllers c
CROSS JOIN LATERAL (
    SELECT * FROM cron_executions WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
) e
JOIN cron_jobs j ON j.id = e.job_id
JOIN deployments d ON d.id = e.deployment_id
WHERE e.id < $1 AND e.id > $2 AND e.tick >= coalesce($3::timestamptz, '-infinity')
ORDER BY e.id DESC
LIMIT $4;

-- name: GetJobIds
-- Every job that ever had this key, removed ones among them. $1 key.
SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = $1
UNION ALL
SELECT id FROM cron_jobs WHERE removed_at IS NOT NULL AND key > '' AND key = $1
ORDER BY id;

-- name: ListJobExecutions
-- As ListExecutions, of one job ($6), entered by its ticks: they grow as ids do. $4 may be "running"; $7 tick at or
-- before, or null.
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, NULL AS output,
       e.missed, e.previous_tick, e.previous_success, NULL AS payload, e.holds_job, e.retry_at,
       e.cancel_requested_at, e.cancel_requested_by, e.cancel_note, e.number, e.cpu_us, e.memory_peak_bytes,
       e.memory_shared, NULL AS stack, NULL AS metrics
FROM cron_executions e
JOIN cron_jobs j ON j.id = e.job_id
JOIN deployments d ON d.id = e.deployment_id
WHERE e.job_id = $6 AND e.id < $1 AND e.id > $2 AND e.tick >= coalesce($3::timestamptz, '-infinity')
  AND e.tick <= coalesce($7::timestamptz, 'infinity')
  AND ($4 = '' OR e.outcome = $4 OR $4 = 'running' AND e.outcome IS NULL)
ORDER BY e.tick DESC, e.attempt DESC
LIMIT $5;

-- name: ListTickRuns
-- Of each tick of a job in a span, the latest attempt, and whether any has completed. $1 job id, $2 first, $3 last tick.
SELECT DISTINCT ON (e.tick) e.tick, e.id, e.outcome,
       coalesce(bool_or(e.outcome = 'completed') OVER (PARTITION BY e.tick), false) AS completed
FROM cron_executions e
WHERE e.job_id = $1 AND e.tick BETWEEN $2 AND $3 AND e.trigger <> 'manual'
ORDER BY e.tick, e.attempt DESC;

-- name: FindExecutionBefore
-- An id below which every execution was claimed before $1: by halving, as ids grow with claims, give or take a minute
-- for claims that were committed out of order. $1 instant.
WITH RECURSIVE search (low, high) AS (
    SELECT 0::bigint, coalesce((SELECT max(id) FROM cron_executions), 0)
    UNION ALL
    SELECT CASE WHEN found.claimed_at < $1::timestamptz - interval '1 minute' THEN found.id ELSE s.low END,
           CASE WHEN found.claimed_at < $1 - interval '1 minute' THEN s.high ELSE (s.low + s.high) / 2 END
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
-- What has happened to jobs: executions above $1, in gaps from $2 to $3 (parallel arrays; of any tick) or among $4 (of ticks
-- from $5 to $6: only those partitions are looked into), skips above $7 or in gaps from $8 to $9 (20,000 of each at a time);
-- and, at or after $10, what somebody did to a job, ends of pauses, and deployments (de)activated: those have no job_id,
-- and `instant` tells one change from the next.
(SELECT 'execution' AS kind, id, job_id, outcome IS NOT NULL AS settled, NULL::timestamptz AS instant,
        now() AS database_now, tick
 FROM cron_executions WHERE id > $1 ORDER BY id LIMIT 20000)
UNION ALL
(SELECT 'execution', e.id, e.job_id, e.outcome IS NOT NULL, NULL, now(), e.tick
 FROM unnest($2::bigint[], $3::bigint[]) AS g (first, last) JOIN cron_executions e ON e.id BETWEEN g.first AND g.last
 LIMIT 20000)
UNION ALL
SELECT 'execution', id, job_id, outcome IS NOT NULL, NULL, now(), tick FROM cron_executions
WHERE id = ANY($4::bigint[]) AND tick BETWEEN $5 AND $6
UNION ALL
(SELECT 'skip', id, job_id, true, NULL, now(), NULL FROM cron_skips WHERE id > $7 ORDER BY id LIMIT 20000)
UNION ALL
(SELECT 'skip', s.id, s.job_id, true, NULL, now(), NULL
 FROM unnest($8::bigint[], $9::bigint[]) AS g (first, last) JOIN cron_skips s ON s.id BETWEEN g.first AND g.last
 LIMIT 20000)
UNION ALL
SELECT 'deployment', d.id, NULL, true, greatest(d.activated_at, d.deactivated_at), now(), NULL
FROM deployments d WHERE greatest(d.activated_at, d.deactivated_at) >= $10
UNION ALL
SELECT 'job', id, id, true, changed_at, now(), NULL FROM cron_jobs WHERE changed_at >= $10
UNION ALL
SELECT 'job', id, id, true, paused_until, now(), NULL FROM cron_jobs WHERE paused_until >= $10 AND paused_until <= now();

-- name: GetExecutionChanges
-- Executions above $1, in gaps from $2 to $3 (parallel arrays; of any tick; 20,000 of each at a time) or among $4 (of
-- ticks from $5 to $6).
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, NULL AS output,
       e.missed, e.previous_tick, e.previous_success, NULL AS payload, e.holds_job, e.retry_at,
       e.cancel_requested_at, e.cancel_requested_by, e.cancel_note, e.number, e.cpu_us, e.memory_peak_bytes,
       e.memory_shared, NULL AS stack, NULL AS metrics
FROM ((SELECT * FROM cron_executions WHERE id > $1 ORDER BY id LIMIT 20000)
      UNION ALL
      (SELECT e.* FROM unnest($2::bigint[], $3::bigint[]) AS g (first, last)
       JOIN cron_executions e ON e.id BETWEEN g.first AND g.last LIMIT 20000)
      UNION ALL
      SELECT * FROM cron_executions WHERE id = ANY($4::bigint[]) AND tick BETWEEN $5 AND $6) e
JOIN cron_jobs j ON j.id = e.job_id
JOIN deployments d ON d.id = e.deployment_id
ORDER BY e.id;
