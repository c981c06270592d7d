-- Sets: jobs that files declare, which `cronring apply` makes, changes and removes. docs/decisions/0094

-- name: GetSet
SELECT s.namespace, s.name, s.revision, s.applied_at, s.applied_by, s.note,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = s.namespace AND j.set_name = s.name AND j.set_name > '' AND j.removed_at IS NULL) AS jobs
FROM cron_sets s
WHERE s.namespace = :namespace AND s.name = :name;

-- name: ListSets
-- `:namespace` "": any.
SELECT s.namespace, s.name, s.revision, s.applied_at, s.applied_by, s.note,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = s.namespace AND j.set_name = s.name AND j.set_name > '' AND j.removed_at IS NULL) AS jobs
FROM cron_sets s
WHERE (s.namespace, s.name) > (:after_namespace, :after_name) AND (:namespace = '' OR s.namespace = :namespace)
  AND (:namespaces?::text[] IS NULL OR s.namespace = ANY(:namespaces))
ORDER BY s.namespace, s.name
LIMIT :limit;

-- name: CountSets
-- How many ListSets would list.
SELECT count(*)
FROM cron_sets s
WHERE (:namespace = '' OR s.namespace = :namespace)
  AND (:namespaces?::text[] IS NULL OR s.namespace = ANY(:namespaces));

-- name: ListSetKeys
-- Of the jobs of a set that are not removed, in order of their keys.
SELECT key
FROM cron_jobs
WHERE namespace = :namespace AND set_name = :name AND set_name > '' AND removed_at IS NULL AND key > :after_key
ORDER BY key
LIMIT :limit;

-- name: TakeSet
-- Locks the set's row until the transaction ends, and raises its revision. No row: the revision is no longer
-- `:revision` (0: there was no set).
INSERT INTO cron_sets (namespace, name, revision, applied_at, applied_by, note)
VALUES (:namespace, :name, :revision::bigint + 1, now(), :actor, :note)
ON CONFLICT (namespace, name) DO UPDATE
SET revision = excluded.revision, applied_at = excluded.applied_at, applied_by = excluded.applied_by,
    note = excluded.note
WHERE cron_sets.revision = excluded.revision - 1
RETURNING revision;

-- name: OwnJobs
-- Makes jobs of one set those of another; "" is none. Their rows are locked. Answers with those that it has taken.
UPDATE cron_jobs SET set_name = :name, changed_by = :actor, changed_at = now()
WHERE id = ANY(:job_ids::bigint[]) AND set_name = :was
RETURNING id;

-- name: ForgetEmptySet
DELETE FROM cron_sets s
WHERE s.namespace = :namespace AND s.name = :name
  AND NOT EXISTS (SELECT FROM cron_jobs j
                  WHERE j.namespace = s.namespace AND j.set_name = s.name AND j.set_name > ''
                    AND j.removed_at IS NULL);

-- name: GetHandChanges
-- For these keys: what somebody last did by hand to the job of the set, if no `apply` came after. If there is no such
-- job, its last removed one counts. No row also if retention has removed the action.
SELECT k.key, a.at, a.action, a.actor, a.note
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (
    SELECT coalesce(
        (SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = k.key),
        (SELECT id FROM cron_jobs WHERE removed_at IS NOT NULL AND key > '' AND key = k.key ORDER BY id DESC LIMIT 1)
    ) AS id OFFSET 0
) f
CROSS JOIN LATERAL (SELECT id FROM cron_jobs WHERE id = f.id AND set_name = :name OFFSET 0) j
CROSS JOIN LATERAL (
    SELECT at, action, actor, note, details FROM cron_actions
    WHERE job_id IS NOT NULL AND job_id = j.id AND action IN ('create', 'update', 'delete', 'adopt')
    ORDER BY id DESC LIMIT 1
) a
WHERE NOT a.details ? 'set';
