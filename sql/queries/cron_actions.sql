-- Who did what, and why. Written in the transaction of what was done.

-- name: AddActions
-- `:at` null: now. The others are parallel arrays; `:details` hold JSON. `untold`: what TakeOrphanings tells webhooks.
INSERT INTO cron_actions (at, job_id, deployment_id, execution_id, action, actor, note, details, template, untold)
SELECT coalesce(:at?::timestamptz, now()), a.job_id, a.deployment_id, a.execution_id, a.action, a.actor, a.note,
       a.details::jsonb, a.template, a.action IN ('orphan', 'bring_back')
FROM unnest(:job_ids[?]::bigint[], :deployment_ids[?]::bigint[], :execution_ids[?]::bigint[], :actions::text[],
            :actors::text[], :notes::text[], :details::text[], :templates[?]::text[])
    AS a (job_id, deployment_id, execution_id, action, actor, note, details, template);

-- name: ListActions
-- The newest first. `:since` null: from the first one. Actions outside of `:namespaces` (null: all) are left out.
SELECT a.id, a.at, coalesce(j.key, ''), coalesce(d.key, ''), a.execution_id, a.action, a.actor, a.note, a.details::text,
       coalesce(a.template, '') AS template
FROM cron_actions a
LEFT JOIN LATERAL (SELECT key, namespace FROM cron_jobs WHERE id = a.job_id) j ON true
LEFT JOIN LATERAL (SELECT key, namespace FROM deployments WHERE id = a.deployment_id) d ON true
WHERE a.id < :before_id AND a.at >= coalesce(:since?::timestamptz, '-infinity')
  AND (:namespaces?::text[] IS NULL
       OR coalesce(j.namespace, d.namespace, split_part(a.template, '/', 1)) = ANY(:namespaces))
ORDER BY a.id DESC
LIMIT :limit;

-- name: ListJobActions
-- As ListActions, of jobs.
SELECT a.id, a.at, j.key, coalesce(d.key, ''), a.execution_id, a.action, a.actor, a.note, a.details::text,
       coalesce(a.template, '') AS template
FROM cron_actions a
JOIN cron_jobs j ON j.id = a.job_id
LEFT JOIN LATERAL (SELECT key FROM deployments WHERE id = a.deployment_id) d ON true
WHERE a.job_id = ANY(:job_ids::bigint[]) AND a.job_id IS NOT NULL AND a.id < :before_id
  AND a.at >= coalesce(:since?::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT :limit;

-- name: ListDeploymentActions
-- As ListActions, of deployments.
SELECT a.id, a.at, coalesce(j.key, ''), d.key, a.execution_id, a.action, a.actor, a.note, a.details::text,
       coalesce(a.template, '') AS template
FROM cron_actions a
JOIN deployments d ON d.id = a.deployment_id
LEFT JOIN LATERAL (SELECT key FROM cron_jobs WHERE id = a.job_id) j ON true
WHERE a.deployment_id = ANY(:deployment_ids::bigint[]) AND a.deployment_id IS NOT NULL AND a.id < :before_id
  AND a.at >= coalesce(:since?::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT :limit;

-- name: ListTemplateActions
-- As ListActions, of a template. `:template` is "namespace/name".
SELECT a.id, a.at, '' AS job, '' AS deployment, a.execution_id, a.action, a.actor, a.note, a.details::text, a.template
FROM cron_actions a
WHERE a.template = :template AND a.id < :before_id AND a.at >= coalesce(:since?::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT :limit;
