-- Workspaces: values of the label `workspace`.

-- name: ListWorkspaces
-- Those that have jobs, messages or dead letters, by namespace and name. `:namespace` null: of all. Messages are not
-- counted here: of each queue, and of the dead letters, the index is asked for one workspace after the other.
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
), names AS MATERIALIZED (
    SELECT n.namespace, n.queue, CASE WHEN n.namespace = :after_namespace THEN :after_workspace ELSE '' END AS beyond
    FROM cron_queue_names() n
    WHERE n.namespace COLLATE "C" >= :after_namespace AND (:namespace IS NULL OR n.namespace = :namespace)
      AND (:namespaces IS NULL OR n.namespace = ANY(:namespaces))
), of_messages AS (
    SELECT n.namespace, f.workspace
    FROM names n
    CROSS JOIN LATERAL (
        WITH RECURSIVE lanes AS (
            (SELECT m.workspace FROM cron_queue m
             WHERE m.namespace = n.namespace AND m.queue = n.queue AND m.ended_at IS NULL AND m.workspace > n.beyond
             ORDER BY m.workspace LIMIT 1)
            UNION ALL
            SELECT (SELECT m.workspace FROM cron_queue m
                    WHERE m.namespace = n.namespace AND m.queue = n.queue AND m.ended_at IS NULL
                      AND m.workspace > l.workspace
                    ORDER BY m.workspace LIMIT 1)
            FROM lanes l WHERE l.workspace IS NOT NULL
        )
        SELECT workspace FROM lanes LIMIT :limit::bigint
    ) f
    UNION ALL
    SELECT n.namespace, f.workspace
    FROM (SELECT DISTINCT namespace, beyond FROM names) n
    CROSS JOIN LATERAL (
        WITH RECURSIVE graves AS (
            (SELECT d.workspace FROM cron_dead_letters d
             WHERE d.namespace = n.namespace AND d.workspace > n.beyond ORDER BY d.workspace LIMIT 1)
            UNION ALL
            SELECT (SELECT d.workspace FROM cron_dead_letters d
                    WHERE d.namespace = n.namespace AND d.workspace > g.workspace ORDER BY d.workspace LIMIT 1)
            FROM graves g WHERE g.workspace IS NOT NULL
        )
        SELECT workspace FROM graves LIMIT :limit
    ) f
)
SELECT a.namespace, a.workspace, sum(a.jobs)::bigint AS jobs, sum(a.paused)::bigint AS paused,
       sum(a.running)::bigint AS running
FROM (
    SELECT namespace, workspace, jobs, paused, running FROM of_jobs
    UNION ALL
    SELECT namespace, workspace, 0, 0, 0 FROM of_messages WHERE workspace IS NOT NULL
) a
GROUP BY a.namespace, a.workspace
ORDER BY a.namespace COLLATE "C", a.workspace COLLATE "C"
LIMIT :limit;

-- name: CountWorkspace
-- `:labels`: JSON that names it. Removed jobs may still run. Messages are those that are not done, and dead letters.
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
       (SELECT count(*)
        FROM cron_queue_names() q
        CROSS JOIN LATERAL (
            SELECT id FROM cron_queue
            WHERE namespace = q.namespace AND queue = q.queue AND workspace = :workspace AND ended_at IS NULL OFFSET 0
        ) m
        WHERE q.namespace = :namespace)
       + (SELECT count(*) FROM cron_dead_letters WHERE namespace = :namespace AND workspace = :workspace) AS messages;

-- name: DropWorkspaceMessages
-- Some of its messages go, `:limit` of each queue, and as many dead letters; how many. What an execution waits for goes
-- with that. What somebody has locked is being ended: nobody waits for it here.
WITH chosen AS MATERIALIZED (
    SELECT m.id
    FROM cron_queue_names() q
    CROSS JOIN LATERAL (
        SELECT id FROM cron_queue
        WHERE namespace = q.namespace AND queue = q.queue AND workspace = :workspace AND ended_at IS NULL
          AND NOT awaited
        ORDER BY run_at, id
        LIMIT :limit::bigint FOR UPDATE SKIP LOCKED
    ) m
    WHERE q.namespace = :namespace
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
