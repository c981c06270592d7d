-- name: LockModule
-- Until the transaction ends, no other deployment of the module goes on, and no limit is set or removed.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' module ' || :namespaced_module, 0)),
       pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ' limits', 0));

-- name: GetModuleDeployments
-- Of a module, the active deployment, and the one of a digest; and PostgreSQL's now, past any wait for the lock.
-- One row of nulls when there is neither.
SELECT n.now, d.id, d.key, d.digest, d.schema_text, d.min_replicas
FROM (SELECT clock_timestamp() AS now) n
LEFT JOIN deployments d ON d.namespace = :namespace AND d.module = :module
  AND (d.digest = :digest OR d.min_replicas > 0);

-- name: CreateDeployment
-- Not active yet.
WITH limitable AS (
    INSERT INTO cron_limits (namespace, module) VALUES (:namespace, ''), (:namespace, :module) ON CONFLICT DO NOTHING
)
INSERT INTO deployments
    (key, namespace, module, digest, schema_text, async_verbs, min_replicas, created_at, fingerprint)
VALUES (:key, :namespace, :module, :digest, :schema_text, :async_verbs, 0, :now, :fingerprint)
RETURNING id;

-- name: RecogniseDeployment
-- The deployment of a digest whose schema was sent by the same bytes before.
SELECT key, min_replicas > 0 AS active FROM deployments
WHERE namespace = :namespace AND module = :module AND digest = :digest AND fingerprint = :fingerprint;

-- name: RememberFingerprint
-- The same version came as other bytes: keep their fingerprint.
UPDATE deployments SET fingerprint = :fingerprint WHERE id = :deployment_id AND fingerprint <> :fingerprint;

-- name: ActivateDeployment
UPDATE deployments SET min_replicas = :min_replicas, activated_at = :now, deactivated_at = NULL
WHERE id = :deployment_id;

-- name: SetMinReplicas
-- Of a deployment that is active already.
UPDATE deployments SET min_replicas = :min_replicas WHERE id = :deployment_id AND min_replicas <> :min_replicas;

-- name: DeactivateDeployment
UPDATE deployments SET min_replicas = 0, deactivated_at = :now WHERE id = :deployment_id;

-- name: FindDeployment
SELECT namespace, module, digest, schema_text FROM deployments WHERE key = :key AND module NOT LIKE '@%';

-- name: FindActive
-- Those of these deployments that are the active ones of their modules.
SELECT key FROM deployments WHERE key = ANY(:keys::text[]) AND min_replicas > 0;

-- name: CountRunningOfOthers
-- Unfinished executions of a module's versions but this one.
SELECT count(*)
FROM controllers c
CROSS JOIN LATERAL (
    SELECT deployment_id FROM cron_executions
    WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
) e
JOIN deployments d ON d.id = e.deployment_id
WHERE d.namespace = :namespace AND d.module = :module AND d.id <> :deployment_id;

-- name: NotifyJobs
-- Heard by every controller that listens once the transaction commits.
SELECT pg_notify(current_schema() || '.jobs', :payload);

-- name: ListDeployments
-- The newest first. What stands for a queue is none. `:namespace` and `:module` may be "", for any. A runner is alive
-- if seen in the last `:lost_after_ms`.
SELECT d.id, d.key, d.namespace, d.module, d.digest, d.min_replicas, d.created_at, d.activated_at, d.deactivated_at,
       d.schema_text,
       (SELECT count(*) FROM runners r
        WHERE d.key = ANY(r.deployments) AND r.left_at IS NULL
          AND r.last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond') AS runners,
       CASE WHEN d.min_replicas > 0 THEN
           (SELECT count(*) FROM cron_jobs j WHERE j.deployment_id = d.id AND j.removed_at IS NULL AND j.key > ''
                AND j.key > split_part(d.key, '@', 1) || '.' AND j.key < split_part(d.key, '@', 1) || '/')
       ELSE 0 END AS jobs
FROM deployments d
WHERE d.id < :before_id AND d.module NOT LIKE '@%'
  AND (:namespace = '' OR d.namespace = :namespace) AND (:module = '' OR d.module = :module)
  AND (NOT :active_only::boolean OR d.min_replicas > 0)
  AND (:namespaces?::text[] IS NULL OR d.namespace = ANY(:namespaces))
ORDER BY d.id DESC
LIMIT :limit;

-- name: CountDeployments
-- How many ListDeployments would list.
SELECT count(*)
FROM deployments d
WHERE d.module NOT LIKE '@%'
  AND (:namespace = '' OR d.namespace = :namespace) AND (:module = '' OR d.module = :module)
  AND (NOT :active_only::boolean OR d.min_replicas > 0)
  AND (:namespaces?::text[] IS NULL OR d.namespace = ANY(:namespaces));

-- name: GetDeployment
-- Runners as in ListDeployments.
SELECT d.id, d.key, d.namespace, d.module, d.digest, d.min_replicas, d.created_at, d.activated_at, d.deactivated_at,
       d.schema_text,
       (SELECT count(*) FROM runners r
        WHERE d.key = ANY(r.deployments) AND r.left_at IS NULL
          AND r.last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond') AS runners,
       CASE WHEN d.min_replicas > 0 THEN
           (SELECT count(*) FROM cron_jobs j WHERE j.deployment_id = d.id AND j.removed_at IS NULL AND j.key > ''
                AND j.key > split_part(d.key, '@', 1) || '.' AND j.key < split_part(d.key, '@', 1) || '/')
       ELSE 0 END AS jobs
FROM deployments d
WHERE d.key = :key AND d.module NOT LIKE '@%';

-- name: GetJobsOfDeployments
-- Ids of the jobs that a change of this deployment touched: those that are its now, and those it had when it was ended.
SELECT id FROM cron_jobs WHERE deployment_id = ANY(:deployment_ids::bigint[]);
