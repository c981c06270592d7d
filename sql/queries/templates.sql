-- Templates: named defaults that jobs made through the API start from.

-- name: GetTemplate
-- $1 namespace, $2 name.
SELECT t.id, t.namespace, t.name, t.description, t.schedule, t.anchor, t.policy, t.payload, t.labels, t.timeout_ms,
       t.on_disconnect, t.revision, t.created_at, t.created_by, t.changed_at, t.changed_by,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = t.namespace AND j.template = t.name AND j.template > '' AND j.removed_at IS NULL) AS jobs
FROM cron_templates t
WHERE t.namespace = $1 AND t.name = $2;

-- name: ListTemplates
-- Without payloads: a thousand of them would not fit into a message. $1 namespace, "" for any, $2 and $3 after this
-- namespace and name, $4 limit.
SELECT t.id, t.namespace, t.name, t.description, t.schedule, t.anchor, t.policy, '' AS payload, t.labels, t.timeout_ms,
       t.on_disconnect, t.revision, t.created_at, t.created_by, t.changed_at, t.changed_by,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = t.namespace AND j.template = t.name AND j.template > '' AND j.removed_at IS NULL) AS jobs
FROM cron_templates t
WHERE (t.namespace, t.name) > ($2, $3) AND ($1 = '' OR t.namespace = $1)
ORDER BY t.namespace, t.name
LIMIT $4;

-- name: CreateTemplate
-- No row: there is one of this name. $1 namespace, $2 name, $3 description, $4 schedule, $5 anchor, $6 policy, $7 payload,
-- $8 labels (JSON), $9 timeout (ms), $10 on_disconnect, $11 who.
INSERT INTO cron_templates (namespace, name, description, schedule, anchor, policy, payload, labels, timeout_ms,
                            on_disconnect, created_at, created_by, changed_at, changed_by)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb, $9, $10, now(), $11, now(), $11)
ON CONFLICT (namespace, name) DO NOTHING
RETURNING id;

-- name: UpdateTemplate
-- No row: it is not that revision any more. $1 id, $2 revision, $3 to $11 as in CreateTemplate.
UPDATE cron_templates
SET description = $3, schedule = $4, anchor = $5, policy = $6, payload = $7, labels = $8::text::jsonb, timeout_ms = $9,
    on_disconnect = $10, revision = revision + 1, changed_at = now(), changed_by = $11
WHERE id = $1 AND revision = $2
RETURNING id;

-- name: DeleteTemplate
-- Answers with how many jobs came from it. $1 namespace, $2 name.
WITH gone AS (
    DELETE FROM cron_templates WHERE namespace = $1 AND name = $2 RETURNING namespace, name
)
SELECT (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = g.namespace AND j.template = g.name AND j.template > '' AND j.removed_at IS NULL) AS jobs
FROM gone g;
