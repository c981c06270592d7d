-- How much may run at once of a module, of a namespace (module ''), or of each value that a label has there.
-- To set or remove a limit, a transaction waits until no job is being made (LockModule holds the same lock, shared). It
-- then locks the jobs, in order of their ids, then what runs, then the limit. Claims and ends lock in that order too.

-- name: LockLimits
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' limits', 0));

-- name: LockJobsOfLimit
-- Also those removed ones that may still run. `:module` "": of all.
SELECT id FROM cron_jobs
WHERE namespace = :namespace AND (:module = '' OR module = :module)
  AND (removed_at IS NULL OR state = 'executing' OR running > 0 OR limits IS NOT NULL)
ORDER BY id
FOR NO KEY UPDATE;

-- name: SetLimit
-- `:module` "": of the namespace. `:label` "": of all that runs there. `:max_concurrent` null: no limit.
INSERT INTO cron_limits AS l (namespace, module, label, max_concurrent, changed_by, note)
VALUES (:namespace, :module, :label, :max_concurrent?, :actor, :note)
ON CONFLICT (namespace, module, label) WHERE rule IS NULL DO UPDATE
SET max_concurrent = :max_concurrent, changed_at = now(), changed_by = :actor, note = :note
RETURNING id;

-- name: SetValues
-- Each value of a limit by label may have as many.
UPDATE cron_limits SET max_concurrent = :max_concurrent WHERE rule = :limit_id;

-- name: DropValues
-- Of a limit by label that is removed.
DELETE FROM cron_limits WHERE rule = :limit_id;

-- name: DropIdleValues
-- Values of which nothing runs. The next claim makes them anew.
DELETE FROM cron_limits
WHERE id IN (SELECT id FROM cron_limits WHERE rule IS NOT NULL AND running = 0 FOR UPDATE SKIP LOCKED);

-- name: BindJobs
-- Binds jobs to the present limits. A job with running executions that have places stays bound, so that its ends give
-- them back.
WITH holding AS MATERIALIZED (
    SELECT e.job_id
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT job_id, places FROM cron_executions
        WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
    ) e
    WHERE e.places IS NOT NULL
)
UPDATE cron_jobs j
SET limits = b.limits
FROM (
    SELECT w.id, coalesce(l.limits, CASE WHEN w.id IN (SELECT job_id FROM holding) THEN '{}'::bigint[] END) AS limits
    FROM unnest(:job_ids::bigint[]) w (id)
    CROSS JOIN LATERAL (
        SELECT cron_limits_of(namespace, module, labels) AS limits FROM cron_jobs WHERE id = w.id OFFSET 0
    ) l
) b
WHERE j.id = b.id AND j.limits IS DISTINCT FROM b.limits;

-- name: ListRunningJobs
-- Jobs of which something runs, and whose limit this is.
SELECT DISTINCT e.job_id
FROM controllers c
CROSS JOIN LATERAL (
    SELECT job_id FROM cron_executions WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
) e
CROSS JOIN LATERAL (SELECT limits FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
WHERE :limit_id = ANY(j.limits);

-- name: ListUnbound
-- Executions that run under a limit without a place of it; and the place that each is to have.
SELECT e.id, p.id AS place
FROM controllers c
CROSS JOIN LATERAL (
    SELECT id, job_id, places FROM cron_executions
    WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
) e
CROSS JOIN LATERAL (SELECT limits, labels FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
JOIN cron_limits p ON p.id = :limit_id AND p.label = '' OR p.rule = :limit_id AND p.value = j.labels ->> p.label
WHERE :limit_id = ANY(j.limits)
  AND NOT EXISTS (SELECT FROM cron_limits o WHERE o.id = ANY(e.places) AND :limit_id IN (o.id, o.rule))
ORDER BY e.id;

-- name: BindExecutions
-- Parallel arrays, `:execution_ids` ascending: each has this place, too. Their jobs are locked.
UPDATE cron_executions e SET places = array_append(e.places, b.place)
FROM unnest(:execution_ids::bigint[], :places::bigint[]) b (id, place)
WHERE e.id = ANY (ARRAY[b.id]);

-- name: CountPlaces
-- Counts anew what runs under a limit whose jobs are locked, and notifies controllers of free places.
WITH held AS MATERIALIZED (
    SELECT u.place, count(*)::integer AS running
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT places FROM cron_executions
        WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
    ) e
    CROSS JOIN unnest(e.places) u (place)
    GROUP BY u.place
)
UPDATE cron_limits l
SET running = coalesce((SELECT h.running FROM held h WHERE h.place = l.id), 0)
WHERE l.id = :limit_id OR l.rule = :limit_id
RETURNING l.running, pg_notify(current_schema() || '.places', '');

-- name: ListLimits
-- By namespace, that of a namespace before those of its modules, then by label. Null: of any. `:limit` null: all.
-- Of one by label `values` have something running, `full_values` as much as they may; and the fullest five.
SELECT l.namespace, l.module, l.label, l.max_concurrent, coalesce(v.running, l.running) AS running, l.changed_at,
       l.changed_by, l.note, coalesce(v.values, 0) AS values, coalesce(v.full_values, 0) AS full_values,
       ARRAY(SELECT value FROM cron_limits WHERE rule = l.id AND running > 0 ORDER BY running DESC, value LIMIT 5)
           AS fullest,
       ARRAY(SELECT running FROM cron_limits WHERE rule = l.id AND running > 0 ORDER BY running DESC, value LIMIT 5)
           AS fullest_running
FROM cron_limits l
LEFT JOIN LATERAL (
    SELECT sum(running)::integer AS running, count(*) FILTER (WHERE running > 0)::integer AS values,
           count(*) FILTER (WHERE running >= max_concurrent)::integer AS full_values
    FROM cron_limits WHERE rule = l.id
) v ON l.label > ''
WHERE l.max_concurrent IS NOT NULL AND l.rule IS NULL
  AND (:namespace?::text IS NULL OR l.namespace = :namespace)
  AND (:module?::text IS NULL OR l.module = :module) AND (:label?::text IS NULL OR l.label = :label)
  AND (:namespaces?::text[] IS NULL OR l.namespace = ANY(:namespaces))
  AND (l.namespace, l.module, l.label) > (:after_namespace, :after_module, :after_label)
ORDER BY l.namespace, l.module, l.label
LIMIT :limit?::bigint;

-- name: CountLimits
-- How many ListLimits would list, of any module and label.
SELECT count(*)
FROM cron_limits l
WHERE l.max_concurrent IS NOT NULL AND l.rule IS NULL
  AND (:namespace?::text IS NULL OR l.namespace = :namespace)
  AND (:namespaces?::text[] IS NULL OR l.namespace = ANY(:namespaces));

-- Claims of jobs under a limit take places, and ends give them back: in their own transaction, with the jobs locked.

-- name: FindPlaces
-- The places that jobs need; this transaction has locked the jobs. For a limit by label, it is the place of the job's
-- value; null: there is none yet.
SELECT j.id, array_agg(CASE WHEN l.label = '' THEN l.id ELSE v.id END ORDER BY u.position) AS places
FROM unnest(:job_ids::bigint[]) w (id)
CROSS JOIN LATERAL (SELECT id, limits, labels FROM cron_jobs WHERE id = w.id OFFSET 0) j
CROSS JOIN LATERAL unnest(j.limits) WITH ORDINALITY u (id, position)
CROSS JOIN LATERAL (SELECT id, label FROM cron_limits WHERE id = u.id OFFSET 0) l
LEFT JOIN LATERAL (
    SELECT id FROM cron_limits WHERE l.label > '' AND rule = l.id AND value = j.labels ->> l.label OFFSET 0
) v ON true
GROUP BY j.id;

-- name: MakePlaces
-- Makes places for values of which nothing has run. In one order, since transactions that make the same place wait for
-- each other; and before any place is locked. So they can't deadlock.
INSERT INTO cron_limits (namespace, module, label, rule, value, max_concurrent)
SELECT DISTINCT l.namespace, l.module, l.label, l.id, j.labels ->> l.label, l.max_concurrent
FROM unnest(:job_ids::bigint[]) w (id)
CROSS JOIN LATERAL (SELECT limits, labels FROM cron_jobs WHERE id = w.id OFFSET 0) j
CROSS JOIN LATERAL unnest(j.limits) u (id)
CROSS JOIN LATERAL (SELECT * FROM cron_limits WHERE id = u.id AND label > '' OFFSET 0) l
WHERE NOT EXISTS (SELECT FROM cron_limits WHERE rule = l.id AND value = j.labels ->> l.label)
ORDER BY l.id, j.labels ->> l.label
ON CONFLICT (rule, value) WHERE rule IS NOT NULL DO NOTHING;

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
-- Parallel arrays, `:limit_ids` ascending. Whoever waits for a place of one that was full is told
-- which one it is.
WITH given AS MATERIALIZED (
    SELECT l.id, g.places
    FROM unnest(:limit_ids::bigint[], :places::integer[]) g (id, places)
    CROSS JOIN LATERAL (SELECT id FROM cron_limits WHERE id = g.id FOR NO KEY UPDATE) l
)
UPDATE cron_limits l SET running = greatest(l.running - g.places, 0)
FROM given g
WHERE l.id = g.id
RETURNING CASE WHEN l.running + g.places >= l.max_concurrent
               THEN pg_notify(current_schema() || '.places', l.id::text) END;
