-- Who did what, and why. Written in the transaction of what was done.

-- name: AddActions
-- $1 when, or null for now; parallel arrays: $2 job ids or null, $3 deployment ids or null, $4 execution ids or null,
-- $5 actions, $6 who, $7 notes, $8 details (JSON), $9 templates or null. `untold`: what TakeOrphanings tells webhooks.
INSERT INTO cron_actions (at, job_id, deployment_id, execution_id, action, actor, note, details, template, untold)
SELECT coalesce($1::timestamptz, now()), a.job_id, a.deployment_id, a.execution_id, a.action, a.actor, a.note,
       a.details::jsonb, a.template, a.action IN ('orphan', 'bring_back')
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[])
    AS a (job_id, deployment_id, execution_id, action, actor, note, details, template);

-- name: ListActions
-- The newest first. $1 below this id, $2 at or after, or null, $3 limit.
SELECT a.id, a.at, coalesce(j.key, ''), coalesce(d.key, ''), a.execution_id, a.action, a.actor, a.note, a.details::text,
       coalesce(a.template, '') AS template
FROM cron_actions a
LEFT JOIN LATERAL (SELECT key FROM cron_jobs WHERE id = a.job_id) j ON true
LEFT JOIN LATERAL (SELECT key FROM deployments WHERE id = a.deployment_id) d ON true
WHERE a.id < $1 AND a.at >= coalesce($2::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT $3;

-- name: ListJobActions
-- As ListActions, of jobs. $1 below this id, $2 job ids, $3 at or after, or null, $4 limit.
SELECT a.id, a.at, j.key, coalesce(d.key, ''), a.execution_id, a.action, a.actor, a.note, a.details::text,
       coalesce(a.template, '') AS template
FROM cron_actions a
JOIN cron_jobs j ON j.id = a.job_id
LEFT JOIN LATERAL (SELECT key FROM deployments WHERE id = a.deployment_id) d ON true
WHERE a.job_id = ANY($2::bigint[]) AND a.job_id IS NOT NULL AND a.id < $1
  AND a.at >= coalesce($3::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT $4;

-- name: ListDeploymentActions
-- As ListActions, of deployments. $1 below this id, $2 deployment ids, $3 at or after, or null, $4 limit.
SELECT a.id, a.at, coalesce(j.key, ''), d.key, a.execution_id, a.action, a.actor, a.note, a.details::text,
       coalesce(a.template, '') AS template
FROM cron_actions a
JOIN deployments d ON d.id = a.deployment_id
LEFT JOIN LATERAL (SELECT key FROM cron_jobs WHERE id = a.job_id) j ON true
WHERE a.deployment_id = ANY($2::bigint[]) AND a.deployment_id IS NOT NULL AND a.id < $1
  AND a.at >= coalesce($3::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT $4;

-- name: ListTemplateActions
-- As ListActions, of a template. $1 below this id, $2 "namespace/name", $3 at or after, or null, $4 limit.
SELECT a.id, a.at, '' AS job, '' AS deployment, a.execution_id, a.action, a.actor, a.note, a.details::text, a.template
FROM cron_actions a
WHERE a.template = $2 AND a.id < $1 AND a.at >= coalesce($3::timestamptz, '-infinity')
ORDER BY a.id DESC
LIMIT $4;
