-- How much may run at once of a module, or of a namespace (module '').
-- Whoever sets or removes a limit waits until nobody makes jobs (LockModule holds the same lock, shared), then locks the
-- jobs, in order of their ids, then the limit. Claims and ends lock them in that order too.

-- name: LockLimits
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' limits', 0));

-- name: LockJobsOfLimit
-- Also those removed ones that may still run. $1 namespace, $2 module, '' for all.
SELECT id FROM cron_jobs
WHERE namespace = $1 AND ($2 = '' OR module = $2)
  AND (removed_at IS NULL OR state = 'executing' OR running > 0 OR module_limit IS NOT NULL OR namespace_limit IS NOT NULL)
ORDER BY id
FOR NO KEY UPDATE;

-- name: SetLimit
-- $1 namespace, $2 module or '', $3 how many at once or null for no limit, $4 who, $5 note.
INSERT INTO cron_limits AS l (namespace, module, max_concurrent, changed_by, note)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (namespace, module) DO UPDATE
SET max_concurrent = $3, changed_at = now(), changed_by = $4, note = $5
RETURNING id;

-- name: BindJobs
-- The jobs have this limit from now on, or no longer. $1 limit's id, $2 job ids (ascending), $3 of modules, not of a
-- namespace, $4 have it.
UPDATE cron_jobs j
SET module_limit = CASE WHEN $3 THEN b.bound ELSE j.module_limit END,
    namespace_limit = CASE WHEN $3 THEN j.namespace_limit ELSE b.bound END
FROM (SELECT id, CASE WHEN $4 THEN $1::bigint END AS bound FROM unnest($2::bigint[]) AS u (id)) b
WHERE j.id = b.id AND CASE WHEN $3 THEN j.module_limit ELSE j.namespace_limit END IS DISTINCT FROM b.bound;

-- name: CountPlaces
-- Counts anew what runs under a limit whose jobs are locked, and tells whoever waits for a place. $1 limit's id.
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
    WHERE j.module_limit = $1 OR j.namespace_limit = $1
) r
WHERE l.id = $1
RETURNING l.running, pg_notify(current_schema() || '.places', '');

-- name: ListLimits
-- By namespace, that of a namespace before those of its modules. $1 namespace, null for all, $2 module, null for all.
SELECT namespace, module, max_concurrent, running, changed_at, changed_by, note
FROM cron_limits
WHERE max_concurrent IS NOT NULL AND ($1::text IS NULL OR namespace = $1) AND ($2::text IS NULL OR module = $2)
ORDER BY namespace, module;
