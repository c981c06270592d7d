-- Jobs as people look for them, list them and count them.

-- name: ListJobs
-- Namespace, module and verb may be "", statuses, outcomes and contains empty, for any. `:labels`: JSON.
-- `:contains`: patterns of LIKE, in lower case. `:keys`: any of these, or empty.
-- `:namespaces` null: all, here and wherever somebody lists what they may see.
SELECT * FROM cron_job_details
WHERE removed_at IS NULL AND key > '' AND key > :after_key
  AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
  AND (:namespace = '' OR namespace = :namespace) AND (:module = '' OR module = :module)
  AND (:verb = '' OR verb = :verb)
  AND (:statuses::text[] = '{}' OR status = ANY(:statuses))
  AND (:outcomes::text[] = '{}' OR last_outcome = ANY(:outcomes))
  AND lower(key) LIKE ALL (:contains::text[]) AND (:keys::text[] = '{}' OR key = ANY(:keys))
  AND (:labels::text = '{}' OR labels @> :labels::text::jsonb)
ORDER BY key
LIMIT :limit;

-- name: RankJobs
-- Of these jobs the highest `value` first, from below `:below` on. `:sort`: as JobSort has it.
SELECT j.*
FROM unnest(:job_ids::bigint[]) AS f (id)
CROSS JOIN LATERAL (SELECT * FROM cron_job_details WHERE id = f.id OFFSET 0) j
CROSS JOIN LATERAL (
    SELECT coalesce(CASE :sort WHEN 'next' THEN -(extract(epoch FROM j.next_execution) * 1000000)::bigint
                               WHEN 'last' THEN (extract(epoch FROM j.last_run_at) * 1000000)::bigint
                               WHEN 'lateness'
                               THEN (extract(epoch FROM j.last_started_at - j.last_run_at) * 1000000)::bigint
                               WHEN 'success' THEN CASE WHEN j.last_outcome IS NULL THEN NULL
                                   ELSE -coalesce((extract(epoch FROM j.last_success) * 1000000)::bigint, 0) END
                               ELSE j.failures END, -9000000000000000000) AS value
) r
WHERE j.removed_at IS NULL AND (r.value, j.id) < (:below_value, :below_id)
ORDER BY r.value DESC, j.id DESC
LIMIT :limit;

-- name: GetJob
-- The job of that key that is not removed, with its payload.
SELECT d.*, (SELECT payload FROM cron_jobs WHERE id = d.id) AS payload
FROM cron_job_details d
WHERE d.removed_at IS NULL AND d.key > '' AND d.key = :key;

-- name: GetJobsByKey
-- As GetJob, of several keys.
SELECT d.*, (SELECT payload FROM cron_jobs WHERE id = d.id) AS payload
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = k.key OFFSET 0) j
CROSS JOIN LATERAL (SELECT * FROM cron_job_details WHERE id = j.id OFFSET 0) d;

-- name: GetJobsById
-- Removed ones among them.
SELECT * FROM cron_job_details
WHERE id = ANY(:job_ids::bigint[])
ORDER BY id;

-- name: GetSkippedTicks
-- Ticks of all time by job and reason.
SELECT job_id, reason, sum(ticks)::bigint AS ticks
FROM cron_skips
WHERE job_id = ANY(:job_ids::bigint[])
GROUP BY job_id, reason
ORDER BY job_id, reason;

-- name: FindJobs
-- Ids and keys of jobs that are not removed, in order of their ids. Conditions as in ListJobs.
SELECT j.id, j.key
FROM cron_jobs j
WHERE j.removed_at IS NULL AND j.id > :after_id
  AND (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
  AND (:namespace = '' OR j.namespace = :namespace) AND (:module = '' OR j.module = :module)
  AND (:verb = '' OR j.verb = :verb)
  AND (:labels::text = '{}' OR j.labels @> :labels::text::jsonb)
  AND (:outcomes::text[] = '{}' OR j.last_outcome = ANY(:outcomes))
  AND lower(j.key) LIKE ALL (:contains::text[]) AND (:keys::text[] = '{}' OR j.key = ANY(:keys))
  AND (:statuses::text[] = '{}'
       OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = ANY(:statuses) OFFSET 0))
ORDER BY j.id
LIMIT :limit;

-- name: CountJobs
-- How many FindJobs would find.
SELECT count(*)
FROM cron_jobs j
WHERE j.removed_at IS NULL AND j.key > ''
  AND (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
  AND (:namespace = '' OR j.namespace = :namespace) AND (:module = '' OR j.module = :module)
  AND (:verb = '' OR j.verb = :verb)
  AND (:labels::text = '{}' OR j.labels @> :labels::text::jsonb)
  AND (:outcomes::text[] = '{}' OR j.last_outcome = ANY(:outcomes))
  AND lower(j.key) LIKE ALL (:contains::text[]) AND (:keys::text[] = '{}' OR j.key = ANY(:keys))
  AND (:statuses::text[] = '{}'
       OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = ANY(:statuses) OFFSET 0));

-- name: FindChosenJobs
-- docs/decisions/0012: by the range of keys, as an index of modules slows every end
-- As FindJobs, of jobs with labels, or else of a module: by their indexes, however few they are. `:labels` are not
-- '{}', or `:module` is not "".
SELECT j.id, j.key
FROM cron_fitting_jobs(:labels::text::jsonb, :module, :namespaces?, :namespace, :verb, :outcomes, :contains, :keys,
                       :statuses) j
WHERE j.id > :after_id
ORDER BY j.id
LIMIT :limit;

-- name: FindChosenByKey
-- The same, in order of their keys.
SELECT j.id, j.key
FROM cron_fitting_jobs(:labels::text::jsonb, :module, :namespaces?, :namespace, :verb, :outcomes, :contains, :keys,
                       :statuses) j
WHERE j.key > :after_key
ORDER BY j.key
LIMIT :limit;

-- name: CountChosenJobs
-- How many FindChosenJobs would find.
SELECT count(*)
FROM cron_fitting_jobs(:labels::text::jsonb, :module, :namespaces?, :namespace, :verb, :outcomes, :contains, :keys,
                       :statuses);
