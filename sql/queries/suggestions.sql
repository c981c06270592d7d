-- Names that begin with what somebody types into a filter. Each look is bounded, so rare ones may be missing.

-- name: SuggestKeys
-- Keys of jobs. What begins with `:begun` lies in one range of the index.
SELECT key AS name
FROM cron_jobs
WHERE removed_at IS NULL AND key > '' AND key >= :begun AND starts_with(key, :begun)
  AND key <= :begun || chr(1114111) AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
ORDER BY key
LIMIT :limit;

-- name: SuggestOfJobs
-- Of the first `:looked` jobs by key: their labels (`:kind` "label"), or their verbs ("verb").
SELECT DISTINCT n.name
FROM (
    SELECT verb, labels FROM cron_jobs
    WHERE removed_at IS NULL AND key > '' AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
    ORDER BY key
    LIMIT :looked
) j
CROSS JOIN LATERAL (
    SELECT j.verb COLLATE "C" AS name WHERE :kind::text = 'verb'
    UNION ALL
    SELECT (l.key || '=' || l.value) COLLATE "C" FROM jsonb_each_text(j.labels) l WHERE :kind::text = 'label'
) n
WHERE starts_with(n.name, :begun)
ORDER BY n.name
LIMIT :limit;

-- name: SuggestOfDeployments
-- Of active deployments: their modules (`:kind` "module"), or their namespaces ("namespace").
SELECT DISTINCT n.name
FROM deployments d
CROSS JOIN LATERAL (SELECT CASE :kind::text WHEN 'module' THEN d.module ELSE d.namespace END COLLATE "C" AS name) n
WHERE d.min_replicas > 0 AND (:namespaces?::text[] IS NULL OR d.namespace = ANY(:namespaces))
  AND starts_with(n.name, :begun)
ORDER BY n.name
LIMIT :limit;
