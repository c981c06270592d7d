-- How much may run at once of a module, or of a namespace (module '').
-- Whoever sets or removes a limit waits until nobody makes jobs (LockModule holds the same lock, shared). Then the jobs
-- are locked, in order of their ids, then the limit. Claims and ends lock them in that order too.

-- name: LockLimits
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' limits', 0));

-- name: LockJobsOfLimit
-- Also those removed ones that may still run. `:module` "": of all.
SELECT id FROM cron_jobs
WHERE namespace = :namespace AND (:module = '' OR module = :module)
  AND (removed_at IS NULL OR state = 'executing' OR running > 0
       OR module_limit IS NOT NULL OR namespace_limit IS NOT NULL)
ORDER BY id
FOR NO KEY UPDATE;

-- name: SetLimit
-- `:module` "": of the namespace. `:max_concurrent` null: no limit.
INSERT INTO cron_limits AS l (namespace, module, max_concurrent, changed_by, note)
VALUES (:namespace, :module, :max_concurrent?, :actor, :note)
ON CONFLICT (namespace, module) DO UPDATE
SET max_concurrent = :max_concurrent, changed_at = now(), changed_by = :actor, note = :note
RETURNING id;

-- name: BindJobs
-- The jobs have this limit from now on, or no longer. `:job_ids` ascending. `:of_module`: a module's limit, not a
-- namespace's. `:bound`: they have it.
UPDATE cron_jobs j
SET module_limit = CASE WHEN :of_module THEN b.bound ELSE j.module_limit END,
    namespace_limit = CASE WHEN :of_module THEN j.namespace_limit ELSE b.bound END
FROM (SELECT id, CASE WHEN :bound THEN :limit_id::bigint END AS bound FROM unnest(:job_ids::bigint[]) AS u (id)) b
WHERE j.id = b.id AND CASE WHEN :of_module THEN j.module_limit ELSE j.namespace_limit END IS DISTINCT FROM b.bound;

-- name: CountPlaces
-- Counts anew what runs under a limit whose jobs are locked, and tells whoever waits for a place.
UPDATE cron_limits l
SET running = r.running
FROM (
    SELECT count(e.id)::integer AS running
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT id, job_id FROM cron_executions
        WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
    ) e
    CROSS JOIN LATERAL (SELECT module_limit, namespace_limit FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
    WHERE j.module_limit = :limit_id OR j.namespace_limit = :limit_id
) r
WHERE l.id = :limit_id
RETURNING l.running, pg_notify(current_schema() || '.places', '');

-- name: ListLimits
-- By namespace, that of a namespace before those of its modules. Null: of any. `:limit` null: all.
SELECT namespace, module, max_concurrent, running, changed_at, changed_by, note
FROM cron_limits
WHERE max_concurrent IS NOT NULL AND (:namespace?::text IS NULL OR namespace = :namespace)
  AND (:module?::text IS NULL OR module = :module) AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
  AND (namespace, module) > (:after_namespace, :after_module)
ORDER BY namespace, module
LIMIT :limit?::bigint;

-- Claims and ends of jobs under a limit take places, and give them back, in their own transaction, having their jobs.

-- name: LockPlaces
-- How many places each limit has left, until the transaction ends: claims wait for each other here, and for ends.
SELECT id, coalesce(max_concurrent - running, 2147483647) AS free
FROM cron_limits WHERE id = ANY(:limit_ids::bigint[])
ORDER BY id
FOR NO KEY UPDATE;

-- name: TakePlaces
-- Parallel arrays, of limits that are locked.
UPDATE cron_limits l SET running = l.running + t.places
FROM unnest(:limit_ids::bigint[], :places::integer[]) t (id, places)
WHERE l.id = t.id;

-- name: GivePlacesBack
-- Parallel arrays, `:limit_ids` ascending. Whoever waits for a place of one that was full is told.
WITH given AS MATERIALIZED (
    SELECT l.id, g.places
    FROM unnest(:limit_ids::bigint[], :places::integer[]) g (id, places)
    CROSS JOIN LATERAL (SELECT id FROM cron_limits WHERE id = g.id FOR NO KEY UPDATE) l
)
UPDATE cron_limits l SET running = greatest(l.running - g.places, 0)
FROM given g
WHERE l.id = g.id
RETURNING CASE WHEN l.running + g.places >= l.max_concurrent THEN pg_notify(current_schema() || '.places', '') END;
