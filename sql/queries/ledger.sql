-- What the audit and "why" read. LATERAL over the jobs of a page, as in cron_jobs.sql: one range of an index for each.

-- name: GetStandings
-- How jobs stand, removed ones among them, in order of ids. `:key` "": of any in these namespaces (null: in all).
SELECT j.id, j.key, j.removed_at IS NOT NULL AS removed,
       -- Of a pause with an end, the books have the ticks already. What a pause without one keeps, it keeps of an
       -- orphan, too.
       CASE WHEN j.orphaned_tick IS NOT NULL THEN 'no_verb'
            WHEN j.paused_at IS NOT NULL AND j.paused_until IS NULL THEN 'paused' ELSE '' END AS kept,
       j.state = 'executing' AS executing, j.last_tick,
       coalesce(j.next_tick, j.orphaned_tick, CASE WHEN j.paused_until IS NULL THEN j.paused_tick END) AS undecided_tick
FROM (
    (SELECT * FROM cron_jobs
     WHERE :key = '' AND id > :after_id AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
     ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT * FROM cron_jobs WHERE :key <> '' AND removed_at IS NULL AND key > '' AND key = :key AND id > :after_id)
    UNION ALL
    (SELECT * FROM cron_jobs WHERE :key <> '' AND removed_at IS NOT NULL AND key > '' AND key = :key AND id > :after_id)
) j
ORDER BY j.id
LIMIT :limit;

-- name: GetSpans
-- The schedules that jobs had, in order of job and time, those that ended before `:since` left out. `:job_ids`
-- ascending.
SELECT s.job_id, s.revision, s.schedule, s.anchor, s.from_at, s.until_at, s.policy
FROM cron_schedules s
WHERE s.job_id = ANY(:job_ids::bigint[]) AND (s.until_at IS NULL OR s.until_at >= :since)
  AND (s.job_id, s.revision) > (:after_job_id::bigint, :after_revision::integer)
ORDER BY s.job_id, s.revision
LIMIT :limit;

-- name: GetClosedBooks
-- What is left of ticks whose rows retention has removed. Job 0: of jobs that are gone altogether.
SELECT job_id, until_at, due, executed, caught_up, late, skipped, outcomes
FROM cron_closed_books
WHERE job_id = ANY(:job_ids::bigint[]);

-- name: CountRuns
-- How the runs of jobs went: at most `:limit` of each (and all of a tick), from behind a tick on. So no statement takes
-- long. With that many `executions` there may be more behind `last_tick`. `:job_ids` and `:after_ticks` are parallel
-- arrays. Later than `:late_after_us` is late.
SELECT w.job_id, c.*
FROM unnest(:job_ids::bigint[], :after_ticks::timestamptz[]) AS w (job_id, after_tick)
CROSS JOIN LATERAL (
    SELECT count(*) AS executions,
           max(r.tick) AS last_tick,
           count(*) FILTER (WHERE r.trigger = 'schedule' AND NOT r.late AND r.outcome IS NOT NULL) AS on_time,
           count(*) FILTER (WHERE r.trigger = 'schedule' AND r.late AND r.outcome IS NOT NULL) AS late,
           count(*) FILTER (WHERE r.trigger = 'catch_up' AND r.outcome IS NOT NULL) AS caught_up,
           count(*) FILTER (WHERE r.scheduled AND r.outcome IS NULL) AS running,
           -- A claim by schedule is a tick's first attempt; the key makes that at most one.
           count(*) FILTER (WHERE r.scheduled AND r.attempt > 1) AS again,
           count(*) FILTER (WHERE r.trigger = 'backfill') AS backfills,
           max(r.run_at - r.began_at) AS ahead_of_run,
           max(r.tick - r.began_at) FILTER (WHERE r.scheduled) AS ahead_of_tick,
           count(*) FILTER (WHERE r.outcome = 'completed') AS completed,
           count(*) FILTER (WHERE r.outcome = 'failed') AS failed,
           count(*) FILTER (WHERE r.outcome = 'timed_out') AS timed_out,
           count(*) FILTER (WHERE r.outcome = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE r.outcome = 'lost') AS lost,
           count(*) FILTER (WHERE r.outcome = 'out_of_memory') AS out_of_memory,
           count(*) FILTER (WHERE r.outcome = 'out_of_cpu') AS out_of_cpu
    FROM (
        SELECT e.tick, e.attempt, e.trigger, e.run_at, e.outcome, e.trigger IN ('schedule', 'catch_up') AS scheduled,
               least(e.claimed_at, e.started_at) AS began_at,
               coalesce(e.started_at, e.claimed_at) > e.run_at + :late_after_us::bigint * interval '1 microsecond'
               AS late
        FROM cron_executions e
        WHERE e.job_id = w.job_id AND e.tick > w.after_tick AND e.tick <= :until_tick
        ORDER BY e.tick
        FETCH FIRST :limit ROWS WITH TIES
    ) r
) c
WHERE c.executions > 0;

-- name: CountSkips
-- Skipped ticks of jobs by reason, of ranges that lie wholly in what is audited; and, with their ticks, each range that
-- reaches beyond it. `:job_ids` and `:after_ticks` are parallel arrays.
SELECT w.job_id, s.*
FROM unnest(:job_ids::bigint[], :after_ticks::timestamptz[]) AS w (job_id, after)
CROSS JOIN LATERAL (
    SELECT k.reason, sum(k.ticks)::bigint AS ticks, NULL::timestamptz AS first_tick, NULL::timestamptz AS last_tick
    FROM cron_skips k
    WHERE k.job_id = w.job_id AND k.first_tick > w.after AND k.first_tick <= :until_tick AND k.last_tick <= :until_tick
    GROUP BY k.reason
    UNION ALL
    SELECT k.reason, k.ticks, k.first_tick, k.last_tick
    FROM cron_skips k
    WHERE k.job_id = w.job_id AND k.first_tick > w.after AND k.first_tick <= :until_tick AND k.last_tick > :until_tick
    UNION ALL
    -- Ranges don't overlap (a walk finds it where they do), so none but the latest before it can reach into it.
    SELECT b.reason, b.ticks, b.first_tick, b.last_tick
    FROM (
        SELECT * FROM cron_skips k WHERE k.job_id = w.job_id AND k.first_tick <= w.after
        ORDER BY k.first_tick DESC LIMIT 1
    ) b
    WHERE b.last_tick > w.after
) s;

-- name: GetRunsInOrder
-- Runs of a job, by tick and attempt.
SELECT id, tick, attempt, trigger, run_at, claimed_at, started_at, outcome
FROM cron_executions
WHERE job_id = :job_id AND (tick, attempt) > (:after_tick::timestamptz, :after_attempt::integer) AND tick <= :until_tick
ORDER BY tick, attempt
LIMIT :limit;

-- name: GetSkipsInOrder
-- Ranges of a job that don't run, by their first ticks. `:after_tick` and `:until_tick` are first ticks.
SELECT id, reason, first_tick, last_tick, ticks
FROM cron_skips
WHERE job_id = :job_id AND (first_tick, id) > (:after_tick::timestamptz, :after_id::bigint)
  AND first_tick <= :until_tick
ORDER BY first_tick, id
LIMIT :limit;

-- name: GetSkipBefore
-- The range of a job that begins at or before `:instant`, if it reaches beyond.
SELECT b.* FROM (
    SELECT id, reason, first_tick, last_tick, ticks FROM cron_skips
    WHERE job_id = :job_id AND first_tick <= :instant ORDER BY first_tick DESC LIMIT 1
) b
WHERE b.last_tick > :instant;

-- name: GetTwins
-- Ticks that ran by schedule of two jobs of one key: the later one began, by PostgreSQL's clock, before the latest tick
-- that the earlier one had run (that clock was set back in between).
SELECT t.key, one.tick, one.id AS first_id, other.id AS second_id
FROM (
    SELECT key, id, created_at, max(last_tick) OVER (PARTITION BY key ORDER BY id
                                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS last_before
    FROM cron_jobs
) t
CROSS JOIN LATERAL (
    SELECT e.id, e.tick FROM cron_executions e
    WHERE e.job_id = t.id AND e.tick > :after_tick AND e.tick <= least(:until_tick, t.last_before)
      AND e.trigger IN ('schedule', 'catch_up')
    OFFSET 0
) other
JOIN cron_jobs j ON j.key = t.key AND j.id < t.id
CROSS JOIN LATERAL (
    SELECT e.id, e.tick FROM cron_executions e
    WHERE e.job_id = j.id AND e.tick = other.tick AND e.trigger IN ('schedule', 'catch_up')
    OFFSET 0
) one
WHERE t.created_at <= t.last_before
LIMIT :limit;

-- name: GetSubjects
-- The jobs of a key, removed ones among them, the newest first, and PostgreSQL's now. A runner seen in the last
-- `:lost_after_ms` lives; a queue needs none.
SELECT j.id, j.key, j.schedule, j.policy, d.key AS deployment, j.source, j.created_at, j.removed_at,
       j.state = 'executing', j.execution_id, j.running, j.next_tick, j.next_execution, j.last_tick,
       j.paused_at, j.paused_tick, j.paused_until,
       j.paused_by, j.paused_note, j.cancelled_at, j.cancelled_by, j.cancelled_note, j.orphaned_at, j.orphaned_tick,
       d.module LIKE '@%' OR EXISTS (
           SELECT FROM runners r WHERE r.left_at IS NULL
               AND r.last_seen_at > now() - :lost_after_ms::bigint * interval '1 millisecond'
                                       AND d.key = ANY(r.deployments)) AS hosted,
       (SELECT max(r.last_seen_at) FROM runners r WHERE d.key = ANY(r.deployments)) AS runner_seen_at,
       coalesce((SELECT format('%s%s runs %s of %s', p.label || '=' || p.value || ' of ',
                               CASE WHEN l.module = '' THEN 'namespace ' || l.namespace
                                    WHEN l.namespace = 'default' THEN 'module ' || l.module
                                    ELSE 'module ' || l.namespace || '/' || l.module END, p.running, p.max_concurrent)
                 FROM cron_limits l
                 JOIN cron_limits p ON p.id = l.id OR p.rule = l.id AND p.value = j.labels ->> p.label
                 WHERE l.id = ANY(j.limits) AND p.running >= p.max_concurrent
                 ORDER BY l.label, l.module DESC LIMIT 1), '') AS full_limit, j.anchor
FROM (
    (SELECT * FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = :key)
    UNION ALL
    (SELECT * FROM cron_jobs WHERE removed_at IS NOT NULL AND key > '' AND key = :key ORDER BY id DESC LIMIT 20)
) j
JOIN deployments d ON d.id = j.deployment_id
ORDER BY j.id DESC
LIMIT 20;

-- name: GetSpansAround
-- Of a job's schedules, in order: those that began before an instant, the latest ones up to the limit, and the first
-- few after it.
SELECT schedule, anchor, from_at, until_at, policy FROM (
    (SELECT * FROM cron_schedules WHERE job_id = :job_id AND from_at < :instant ORDER BY revision DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM cron_schedules WHERE job_id = :job_id AND from_at >= :instant ORDER BY revision LIMIT :limit)
) s
ORDER BY revision;

-- name: GetAttemptsOfTick
-- The latest attempts at a tick.
SELECT e.id, e.tick, e.attempt, e.trigger, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       coalesce(e.error_type, ''), coalesce(e.error_message, ''), e.controller_id, e.runner_id, e.retry_at, e.number,
       d.key
FROM cron_executions e
JOIN deployments d ON d.id = e.deployment_id
WHERE e.job_id = :job_id AND e.tick = :tick
ORDER BY e.attempt DESC
LIMIT :limit;

-- name: GetRunBefore
-- The latest run of a tick before an instant.
SELECT e.id, e.tick, e.attempt, e.trigger, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       coalesce(e.error_type, ''), coalesce(e.error_message, ''), e.controller_id, e.runner_id, e.retry_at, e.number,
       d.key
FROM cron_executions e
JOIN deployments d ON d.id = e.deployment_id
WHERE e.job_id = :job_id AND e.tick < :instant
ORDER BY e.tick DESC, e.attempt DESC
LIMIT 1;

-- name: GetRunAfter
-- The first run by schedule of a tick after an instant.
SELECT e.id, e.tick, e.attempt, e.trigger, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       coalesce(e.error_type, ''), coalesce(e.error_message, ''), e.controller_id, e.runner_id, e.retry_at, e.number,
       d.key
FROM cron_executions e
JOIN deployments d ON d.id = e.deployment_id
WHERE e.job_id = :job_id AND e.tick > :instant AND e.trigger IN ('schedule', 'catch_up')
ORDER BY e.tick, e.attempt
LIMIT 1;

-- name: GetSkipAt
-- The range that a tick is in.
SELECT b.* FROM (
    SELECT reason, first_tick, last_tick, ticks, controller_id, decided_at FROM cron_skips
    WHERE job_id = :job_id AND first_tick <= :tick ORDER BY first_tick DESC LIMIT 1
) b
WHERE b.last_tick >= :tick;

-- name: GetWaiting
-- What waits beside a job's schedule, the next one first.
SELECT id, trigger, tick, until_tick, attempt, run_at, requested_by
FROM cron_activations
WHERE job_id = :job_id
ORDER BY run_at, id
LIMIT :limit;

-- name: GetActionsBefore
-- What operators did to a job, or to its deployment, up to an instant, the latest first.
SELECT a.at, a.action, a.actor, a.note, a.details::text
FROM (
    (SELECT * FROM cron_actions WHERE job_id = :job_id AND execution_id IS NULL
     AND at <= :instant ORDER BY id DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM cron_actions
     WHERE deployment_id = (SELECT deployment_id FROM cron_jobs WHERE id = :job_id)
       AND at <= :instant ORDER BY id DESC LIMIT :limit)
) a
ORDER BY a.id DESC
LIMIT :limit;

-- name: ListBooks
-- The latest entries of the books of some jobs, by tick: executions, and ranges that didn't run.
SELECT j.key, b.*
FROM unnest(:keys::text[]) WITH ORDINALITY k (key, position)
JOIN cron_jobs j ON j.key = k.key AND j.removed_at IS NULL
    AND (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
CROSS JOIN LATERAL (
    (SELECT e.tick, e.tick AS last_tick, 1::bigint AS ticks, '' AS skipped, e.id, coalesce(e.outcome, '') AS outcome,
            e.trigger, e.attempt, e.run_at, e.claimed_at, e.started_at, e.ended_at, coalesce(e.error_type, '') AS error
     FROM cron_executions e
     WHERE e.job_id = j.id AND e.tick < coalesce(:before?::timestamptz, 'infinity')
     ORDER BY e.tick DESC, e.attempt DESC
     LIMIT :last::integer)
    UNION ALL
    (SELECT s.first_tick, s.last_tick, s.ticks, s.reason, 0, '', '', 0, s.first_tick, s.decided_at, NULL, NULL, ''
     FROM cron_skips s
     WHERE s.job_id = j.id AND s.first_tick < coalesce(:before, 'infinity')
     ORDER BY s.first_tick DESC
     LIMIT :last)
    ORDER BY 1 DESC, 8 DESC
    LIMIT :last
) b
ORDER BY k.position, b.tick DESC, b.attempt DESC;
