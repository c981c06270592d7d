-- name: LockModule
-- One deployment of a module at a time, and no limit is set or removed, until the transaction ends. $1 namespace/module.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' module ' || $1, 0)),
       pg_advisory_xact_lock_shared(hashtextextended(current_schema() || ' limits', 0));

-- name: GetModuleDeployments
-- Of a module, the active deployment, and the one of a digest; and PostgreSQL's now, past any wait for the lock.
-- One row of nulls when there is neither. $1 namespace, $2 module, $3 digest.
SELECT n.now, d.id, d.key, d.digest, d.schema_text, d.min_replicas > 0 AS active
FROM (SELECT clock_timestamp() AS now) n
LEFT JOIN deployments d ON d.namespace = $1 AND d.module = $2 AND (d.digest = $3 OR d.min_replicas > 0);

-- name: CreateDeployment
-- Not active yet. $1 key, $2 namespace, $3 module, $4 digest, $5 schema text, $6 now.
WITH limitable AS (
    INSERT INTO cron_limits (namespace, module) VALUES ($2, ''), ($2, $3) ON CONFLICT DO NOTHING
)
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas, created_at)
VALUES ($1, $2, $3, $4, $5, 0, $6)
RETURNING id;

-- name: ActivateDeployment
-- $1 id, $2 min_replicas, $3 now.
UPDATE deployments SET min_replicas = $2, activated_at = $3, deactivated_at = NULL WHERE id = $1;

-- name: SetMinReplicas
-- Of a deployment that is active already. $1 id, $2 min_replicas.
UPDATE deployments SET min_replicas = $2 WHERE id = $1 AND min_replicas <> $2;

-- name: DeactivateDeployment
-- $1 id, $2 now.
UPDATE deployments SET min_replicas = 0, deactivated_at = $2 WHERE id = $1;

-- name: FindDeployment
-- $1 key.
SELECT namespace, module, digest, schema_text FROM deployments WHERE key = $1;

-- name: FindActive
-- Those of these deployments that are the active ones of their modules. $1 keys.
SELECT key FROM deployments WHERE key = ANY($1::text[]) AND min_replicas > 0;

-- name: CountRunningOfOthers
-- Unfinished executions of a module's versions but this one. $1 namespace, $2 module, $3 deployment id.
SELECT count(*)
FROM controllers c
CROSS JOIN LATERAL (
    SELECT deployment_id FROM cron_executions WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
) e
JOIN deployments d ON d.id = e.deployment_id
WHERE d.namespace = $1 AND d.module = $2 AND d.id <> $3;

-- name: NotifyJobs
-- Heard by every controller that listens once the transaction commits. $1 namespace/module.
SELECT pg_notify(current_schema() || '.jobs', $1);

-- name: ListDeployments
-- The newest first. $1 below this id; $2 namespace, $3 module, "" for any; $4 active ones only; $5 limit; $6 a runner is
-- alive if seen in the last so many ms.
SELECT d.id, d.key, d.namespace, d.module, d.digest, d.min_replicas, d.created_at, d.activated_at, d.deactivated_at,
       d.schema_text,
       (SELECT count(*) FROM runners r
        WHERE d.key = ANY(r.deployments) AND r.left_at IS NULL AND r.last_seen_at >= now() - $6::bigint * interval '1 millisecond') AS runners,
       CASE WHEN d.min_replicas > 0 THEN
           (SELECT count(*) FROM cron_jobs j WHERE j.deployment_id = d.id AND j.removed_at IS NULL AND j.key > ''
                AND j.key > split_part(d.key, '@', 1) || '.' AND j.key < split_part(d.key, '@', 1) || '/')
       ELSE 0 END AS jobs
FROM deployments d
WHERE d.id < $1 AND ($2 = '' OR d.namespace = $2) AND ($3 = '' OR d.module = $3)
  AND (NOT $4::boolean OR d.min_replicas > 0)
ORDER BY d.id DESC
LIMIT $5;

-- name: GetDeployment
-- $1 key; $2 a runner is alive if seen in the last so many ms.
SELECT d.id, d.key, d.namespace, d.module, d.digest, d.min_replicas, d.created_at, d.activated_at, d.deactivated_at,
       d.schema_text,
       (SELECT count(*) FROM runners r
        WHERE d.key = ANY(r.deployments) AND r.left_at IS NULL AND r.last_seen_at >= now() - $2::bigint * interval '1 millisecond') AS runners,
       CASE WHEN d.min_replicas > 0 THEN
           (SELECT count(*) FROM cron_jobs j WHERE j.deployment_id = d.id AND j.removed_at IS NULL AND j.key > ''
                AND j.key > split_part(d.key, '@', 1) || '.' AND j.key < split_part(d.key, '@', 1) || '/')
       ELSE 0 END AS jobs
FROM deployments d
WHERE d.key = $1;

-- name: GetJobsOfDeployments
-- Ids of the jobs that a change of this deployment touched: those that are its now, and those it had when it was ended.
-- $1 deployment ids.
SELECT id FROM cron_jobs WHERE deployment_id = ANY($1::bigint[]);
