-- Workspaces: values of the label `workspace`.

-- name: ListWorkspaces
-- Those that have jobs, messages or dead letters, by namespace and name. `:namespace` null: of all. Messages are not
-- counted here.
WITH of_jobs AS (
    SELECT namespace, labels ->> 'workspace' AS workspace, count(*) AS jobs,
           count(*) FILTER (WHERE cron_paused(paused_at, paused_until)) AS paused,
           count(*) FILTER (WHERE state = 'executing' OR running > 0) AS running
    FROM cron_jobs
    WHERE removed_at IS NULL AND key > '' AND labels <> '{}' AND labels ->> 'workspace' > ''
      AND (:namespace?::text IS NULL OR namespace = :namespace)
      AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
      AND (namespace, (labels ->> 'workspace') COLLATE "C")
          > (:after_namespace::text, :after_workspace::text COLLATE "C")
    GROUP BY namespace, labels ->> 'workspace'
)
SELECT a.namespace, a.workspace, sum(a.jobs)::bigint AS jobs, sum(a.paused)::bigint AS paused,
       sum(a.running)::bigint AS running
FROM (
    SELECT namespace, workspace, jobs, paused, running FROM of_jobs
    UNION ALL
    SELECT namespace, workspace, 0, 0, 0
    FROM cron_queue_workspaces(
        CASE WHEN :namespace IS NULL THEN :namespaces ELSE ARRAY[:namespace] END, :after_namespace, :after_workspace,
        :limit::bigint
    )
    WHERE :namespaces IS NULL OR namespace = ANY(:namespaces)
) a
GROUP BY a.namespace, a.workspace
ORDER BY a.namespace COLLATE "C", a.workspace COLLATE "C"
LIMIT :limit;

-- name: CountWorkspace
-- `:labels`: JSON that names it. Removed jobs may still run. Messages are those that are not done, and dead letters.
-- One that an execution waits for counts with that, as running.
WITH chosen AS MATERIALIZED (
    SELECT id, removed_at IS NULL AS there, cron_paused(paused_at, paused_until) AS paused
    FROM cron_jobs
    WHERE labels <> '{}' AND labels @> :labels::text::jsonb AND namespace = :namespace
)
SELECT (SELECT count(*) FROM chosen WHERE there) AS jobs,
       (SELECT count(*) FROM chosen WHERE there AND paused) AS paused,
       (SELECT count(*)
        FROM controllers c
        CROSS JOIN LATERAL (
            SELECT job_id FROM cron_executions
            WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id OFFSET 0
        ) e
        WHERE e.job_id IN (SELECT id FROM chosen)) AS running,
       (SELECT count(*)
        FROM chosen j
        CROSS JOIN LATERAL (SELECT id FROM cron_activations WHERE job_id = j.id OFFSET 0) a) AS waiting,
       (SELECT count(*) FROM cron_queue
        WHERE namespace = :namespace AND workspace = :workspace AND ended_at IS NULL AND NOT awaited)
       + (SELECT count(*) FROM cron_dead_letters WHERE namespace = :namespace AND workspace = :workspace) AS messages;

-- name: DropWorkspaceMessages
-- Deletes at most `:limit` of its messages, and as many dead letters. Says how many. A message that an execution waits
-- for goes with the execution. A locked message is just being ended, and is passed over.
WITH chosen AS MATERIALIZED (
    SELECT id FROM cron_queue
    WHERE namespace = :namespace AND workspace = :workspace AND ended_at IS NULL AND NOT awaited
    LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
), letters AS MATERIALIZED (
    SELECT id FROM cron_dead_letters WHERE namespace = :namespace AND workspace = :workspace
    LIMIT :limit FOR UPDATE SKIP LOCKED
), dropped AS (
    DELETE FROM cron_queue WHERE id = ANY (ARRAY(SELECT id FROM chosen)) RETURNING id
), buried AS (
    DELETE FROM cron_dead_letters WHERE id = ANY (ARRAY(SELECT id FROM letters)) RETURNING id
)
SELECT (SELECT count(*) FROM dropped) + (SELECT count(*) FROM buried) AS gone;

-- name: FindWorkspaceJobs
-- The first `:limit` of its jobs; `:going`: of those that have not been cancelled.
SELECT id FROM cron_jobs
WHERE labels <> '{}' AND labels @> :labels::text::jsonb AND namespace = :namespace AND removed_at IS NULL
  AND (NOT :going OR cancelled_at IS NULL)
ORDER BY id
LIMIT :limit::bigint;
