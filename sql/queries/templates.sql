-- Templates: named defaults that jobs made through the API start from.

-- name: GetTemplate
SELECT t.id, t.namespace, t.name, t.description, t.schedule, t.anchor, t.timeout_ms, t.on_disconnect, t.policy,
       t.labels, t.payload, t.revision, t.created_at, t.created_by, t.changed_at, t.changed_by,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = t.namespace AND j.template = t.name AND j.template > '' AND j.removed_at IS NULL) AS jobs
FROM cron_templates t
WHERE t.namespace = :namespace AND t.name = :name;

-- name: ListTemplates
-- Without payloads: a thousand of them would not fit into a message. `:namespace` "": any.
SELECT t.id, t.namespace, t.name, t.description, t.schedule, t.anchor, t.timeout_ms, t.on_disconnect, t.policy,
       t.labels, '' AS payload, t.revision, t.created_at, t.created_by, t.changed_at, t.changed_by,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = t.namespace AND j.template = t.name AND j.template > '' AND j.removed_at IS NULL) AS jobs
FROM cron_templates t
WHERE (t.namespace, t.name) > (:after_namespace, :after_name) AND (:namespace = '' OR t.namespace = :namespace)
  AND (:namespaces?::text[] IS NULL OR t.namespace = ANY(:namespaces))
ORDER BY t.namespace, t.name
LIMIT :limit;

-- name: CountTemplates
-- How many ListTemplates would list.
SELECT count(*)
FROM cron_templates t
WHERE (:namespace = '' OR t.namespace = :namespace)
  AND (:namespaces?::text[] IS NULL OR t.namespace = ANY(:namespaces));

-- name: CreateTemplate
-- No row: there is one of this name. `:labels`: JSON.
INSERT INTO cron_templates (namespace, name, description, schedule, anchor, policy, payload, labels, timeout_ms,
                            on_disconnect, created_at, created_by, changed_at, changed_by)
VALUES (:namespace, :name, :description, :schedule, :anchor?, :policy, :payload, :labels::text::jsonb, :timeout_ms,
        :on_disconnect, now(), :actor, now(), :actor)
ON CONFLICT (namespace, name) DO NOTHING
RETURNING id;

-- name: UpdateTemplate
-- No row: it is not that revision any more. Columns as in CreateTemplate.
UPDATE cron_templates
SET description = :description, schedule = :schedule, anchor = :anchor?, policy = :policy, payload = :payload,
    labels = :labels::text::jsonb, timeout_ms = :timeout_ms,
    on_disconnect = :on_disconnect, revision = revision + 1, changed_at = now(), changed_by = :actor
WHERE id = :template_id AND revision = :revision
RETURNING id;

-- name: DeleteTemplate
-- Answers with what it set, and how many jobs came from it. `:template_id` and `:revision`: those that are meant; null:
-- whichever there is.
WITH gone AS (
    DELETE FROM cron_templates
    WHERE namespace = :namespace AND name = :name
      AND id = coalesce(:template_id?::bigint, id) AND revision = coalesce(:revision?::bigint, revision)
    RETURNING *
)
SELECT description, schedule, anchor, timeout_ms, on_disconnect, policy, labels, payload,
       (SELECT count(*) FROM cron_jobs j
        WHERE j.namespace = g.namespace AND j.template = g.name AND j.template > '' AND j.removed_at IS NULL) AS jobs
FROM gone g;
