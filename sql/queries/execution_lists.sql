-- docs/decisions/0084: one answer looks at a bounded number, whatever the filter is
-- Executions by a filter (cron_fitting_executions). There are three ways to read them: all, by id; those that run or
-- have not completed, by outcome; and those of some jobs, by tick. A statement ...End finds where a look ends, so that
-- the next one begins there.

-- name: ListExecutions
-- The newest first.
SELECT e.* FROM cron_fitting_executions(
    :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
    :labels::text::jsonb) e
WHERE e.id < :before_id AND e.id > :above_id
ORDER BY e.id DESC
LIMIT :limit;

-- name: FindExecutionsEnd
-- What comes after `:looked` of them.
SELECT id, tick FROM cron_executions
WHERE id < :before_id AND id > :above_id
  AND tick >= coalesce(:since?::timestamptz, '-infinity') AND tick <= coalesce(:until?::timestamptz, 'infinity')
ORDER BY id DESC
OFFSET :looked LIMIT 1;

-- name: RankExecutions
-- The highest `value` first, from below `:below` on. `:sort`: "slowest", of those that have ended; or "latest".
SELECT e.*
FROM cron_fitting_executions(
    :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
    :labels::text::jsonb) e
CROSS JOIN LATERAL (SELECT cron_rank(:sort, e.run_at, e.claimed_at, e.started_at, e.ended_at) AS value) r
WHERE e.id < :before_id AND e.id > :above_id AND (r.value, e.id) < (:below_value, :below_id)
ORDER BY r.value DESC, e.id DESC
LIMIT :limit;

-- name: CountExecutions
SELECT count(*) FROM cron_fitting_executions(
    :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
    :labels::text::jsonb) e
WHERE e.id < :before_id AND e.id > :above_id;

-- name: ListTroubledExecutions
-- As ListExecutions, of `:outcomes` without "completed".
SELECT t.*
FROM (
    SELECT e.*
    FROM unnest(:outcomes::text[]) AS o (outcome)
    CROSS JOIN LATERAL (
        SELECT e.* FROM cron_fitting_executions(
            :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
            :labels::text::jsonb) e
        WHERE e.outcome <> 'completed' AND e.outcome = o.outcome AND e.id < :before_id AND e.id > :above_id
        ORDER BY e.id DESC
        LIMIT :limit
    ) e
    UNION ALL
    SELECT e.*
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT e.* FROM cron_fitting_executions(
            :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
            :labels::text::jsonb) e
        WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id OFFSET 0
    ) e
    WHERE e.id < :before_id AND e.id > :above_id AND 'running' = ANY(:outcomes)
) t
ORDER BY t.id DESC
LIMIT :limit;

-- name: FindTroubledEnd
-- What comes after `:looked` of one of the outcomes.
SELECT e.id, e.tick
FROM unnest(:outcomes::text[]) AS o (outcome)
CROSS JOIN LATERAL (
    SELECT id, tick FROM cron_executions
    WHERE outcome <> 'completed' AND outcome = o.outcome AND id < :before_id AND id > :above_id
      AND tick >= coalesce(:since?::timestamptz, '-infinity') AND tick <= coalesce(:until?::timestamptz, 'infinity')
    ORDER BY id DESC
    OFFSET :looked LIMIT 1
) e
ORDER BY e.id DESC
LIMIT 1;

-- name: RankTroubledExecutions
-- As RankExecutions, of `:outcomes` without "completed".
SELECT t.*
FROM (
    SELECT e.*
    FROM unnest(:outcomes::text[]) AS o (outcome)
    CROSS JOIN LATERAL (
        SELECT e.* FROM cron_fitting_executions(
            :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
            :labels::text::jsonb) e
        WHERE e.outcome <> 'completed' AND e.outcome = o.outcome AND e.id < :before_id AND e.id > :above_id
        OFFSET 0
    ) e
    UNION ALL
    SELECT e.*
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT e.* FROM cron_fitting_executions(
            :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
            :labels::text::jsonb) e
        WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id OFFSET 0
    ) e
    WHERE e.id < :before_id AND e.id > :above_id AND 'running' = ANY(:outcomes)
) t
CROSS JOIN LATERAL (SELECT cron_rank(:sort, t.run_at, t.claimed_at, t.started_at, t.ended_at) AS value) r
WHERE (r.value, t.id) < (:below_value, :below_id)
ORDER BY r.value DESC, t.id DESC
LIMIT :limit;

-- name: CountTroubledExecutions
SELECT count(*)
FROM (
    SELECT e.id
    FROM unnest(:outcomes::text[]) AS o (outcome)
    CROSS JOIN LATERAL (
        SELECT e.id FROM cron_fitting_executions(
            :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
            :labels::text::jsonb) e
        WHERE e.outcome <> 'completed' AND e.outcome = o.outcome AND e.id < :before_id AND e.id > :above_id
        OFFSET 0
    ) e
    UNION ALL
    SELECT e.id
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT e.id FROM cron_fitting_executions(
            :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
            :labels::text::jsonb) e
        WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id OFFSET 0
    ) e
    WHERE e.id < :before_id AND e.id > :above_id AND 'running' = ANY(:outcomes)
) t;

-- name: GetJobsForExecutions
-- The jobs, removed ones too, whose executions match a filter with labels or a module. At most `:limit`.
WITH chosen AS MATERIALIZED (
    SELECT id, namespace, module, verb FROM cron_jobs
    WHERE :labels::text <> '{}' AND labels <> '{}' AND labels @> :labels::text::jsonb
    UNION ALL
    SELECT j.id, j.namespace, j.module, j.verb
    FROM cron_limits l -- has a row for each module that ever was
    CROSS JOIN LATERAL (
        SELECT CASE l.namespace WHEN 'default' THEN '' ELSE l.namespace || '/' END || l.module AS prefix
    ) k
    CROSS JOIN LATERAL ( -- '/' is what comes after '.'
        SELECT * FROM cron_jobs
        WHERE removed_at IS NULL AND key > '' AND key >= k.prefix || '.' AND key < k.prefix || '/'
        UNION ALL
        SELECT * FROM cron_jobs
        WHERE removed_at IS NOT NULL AND key > '' AND key >= k.prefix || '.' AND key < k.prefix || '/'
    ) j
    WHERE :labels::text = '{}' AND l.label = '' AND l.module > '' AND l.module = :module
)
SELECT j.id
FROM chosen j
WHERE (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
  AND (:namespace = '' OR j.namespace = :namespace) AND (:module = '' OR j.module = :module)
  AND (:verb = '' OR j.verb = :verb)
LIMIT :limit;

-- name: ListJobExecutions
-- Of these jobs, the newest tick first: from before one position up to after another. A position is a tick, an attempt
-- at it, and the job.
SELECT e.*
FROM unnest(:job_ids::bigint[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT e.* FROM cron_fitting_executions(
        :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
        :labels::text::jsonb) e
    WHERE e.job_id = j.id AND e.tick <= :before_tick AND e.tick >= :above_tick AND e.id > :above_id
      AND (e.tick, e.attempt, e.job_id) < (:before_tick, :before_attempt, :before_job)
      AND (e.tick, e.attempt, e.job_id) > (:above_tick, :above_attempt, :above_job)
    ORDER BY e.tick DESC, e.attempt DESC
    LIMIT :limit
) e
ORDER BY e.tick DESC, e.attempt DESC, e.job_id DESC
LIMIT :limit;

-- name: FindJobExecutionsEnd
-- What comes after `:looked` of one of the jobs.
SELECT e.tick, e.attempt, e.job_id
FROM unnest(:job_ids::bigint[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT tick, attempt, job_id FROM cron_executions
    WHERE job_id = j.id AND tick <= :before_tick
      AND (tick, attempt, job_id) < (:before_tick, :before_attempt, :before_job)
      AND tick >= coalesce(:since?::timestamptz, '-infinity') AND tick <= coalesce(:until?::timestamptz, 'infinity')
    ORDER BY tick DESC, attempt DESC
    OFFSET :looked LIMIT 1
) e
ORDER BY e.tick DESC, e.attempt DESC, e.job_id DESC
LIMIT 1;

-- name: CountJobTicks
-- How many executions of these jobs a look from `:since` to `:until` meets; `:looked` at most.
SELECT count(*)
FROM (
    SELECT
    FROM unnest(:job_ids::bigint[]) AS j (id)
    CROSS JOIN LATERAL (
        SELECT FROM cron_executions
        WHERE job_id = j.id AND tick >= coalesce(:since?::timestamptz, '-infinity')
          AND tick <= coalesce(:until?::timestamptz, 'infinity')
        LIMIT :looked
    ) e
    LIMIT :looked
) met;

-- name: RankJobExecutions
-- As RankExecutions, of these jobs.
SELECT e.*
FROM unnest(:job_ids::bigint[]) AS j (id)
CROSS JOIN LATERAL (SELECT e.* FROM cron_fitting_executions(
        :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
        :labels::text::jsonb) e WHERE e.job_id = j.id OFFSET 0) e
CROSS JOIN LATERAL (SELECT cron_rank(:sort, e.run_at, e.claimed_at, e.started_at, e.ended_at) AS value) r
WHERE (r.value, e.id) < (:below_value, :below_id) AND e.id > :above_id
ORDER BY r.value DESC, e.id DESC
LIMIT :limit;

-- name: CountJobExecutions
SELECT count(*)
FROM unnest(:job_ids::bigint[]) AS j (id)
CROSS JOIN LATERAL (SELECT e.id FROM cron_fitting_executions(
        :since?, :until?, :outcomes, :runner, :of_jobs, :namespaces?, :namespace, :module, :verb,
        :labels::text::jsonb) e WHERE e.job_id = j.id OFFSET 0) e
WHERE e.id > :above_id;
