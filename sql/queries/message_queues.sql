-- Queues of messages, for the API; consumers by SQL call the functions themselves. A lease of another namespace is not
-- found, as its number may have been guessed.

-- name: TakeMessages
-- `:hold_ms`: how long no other consumer gets these messages.
SELECT lease, id, workspace, payload, delivery, job_id, execution_id, tick, run_at, attempt, enqueued_at, leased_until,
       (SELECT key FROM cron_jobs j WHERE j.id = t.job_id) AS job
FROM cron_queue_take(
    :queue::text, :consumer::text, :hold_ms::bigint * interval '1 millisecond', :most::integer, :namespace::text
) t;

-- name: ExtendLease
SELECT id, state FROM cron_queue_extend(
    (SELECT max(lease) FROM cron_queue_lanes WHERE lease = :lease::bigint AND namespace = :namespace::text),
    :hold_ms::bigint * interval '1 millisecond'
);

-- name: FinishMessages
SELECT id, state FROM cron_queue_done(
    (SELECT max(lease) FROM cron_queue_lanes WHERE lease = :lease::bigint AND namespace = :namespace::text),
    :ids::bigint[], :output::text
);

-- name: RetryMessages
-- `:delay_ms` null: the usual delay. `:last`: they are not delivered again.
SELECT id, state FROM cron_queue_retry(
    (SELECT max(lease) FROM cron_queue_lanes WHERE lease = :lease::bigint AND namespace = :namespace::text),
    :ids::bigint[], :error::text, :delay_ms?::bigint * interval '1 millisecond', :error_type::text, :last::boolean
);

-- name: ReleaseMessages
-- `:ids` null: all of the lease.
SELECT cron_queue_release(
    (SELECT max(lease) FROM cron_queue_lanes WHERE lease = :lease::bigint AND namespace = :namespace::text),
    :ids?::bigint[]
);

-- name: PutMessage
-- `:not_before` null: at once.
SELECT cron_queue_put(
    :queue::text, :payload::text::json, :workspace::text, :namespace::text, :not_before?::timestamptz
);

-- name: GetReadyQueues
-- Which of these queues, by parallel arrays, may have something to take now: their places in the arrays, from 1 on.
SELECT u.position
FROM unnest(:namespaces::text[], :queues::text[]) WITH ORDINALITY u (namespace, queue, position)
WHERE coalesce(
    (SELECT true FROM cron_queue_wakes w WHERE w.namespace = u.namespace AND w.queue = u.queue LIMIT 1),
    (SELECT true FROM cron_queue_lanes l
     WHERE l.namespace = u.namespace AND l.queue = u.queue AND l.ready_at <= now() LIMIT 1)
);

-- name: ListQueues
-- By namespace and name. What is counted is counted up to `:most`. Null: any.
SELECT n.namespace, n.queue,
       (SELECT count(*) FROM (SELECT FROM cron_queue m
                              WHERE m.namespace = n.namespace AND m.queue = n.queue AND m.ended_at IS NULL
                              LIMIT :most::bigint) c) AS depth,
       (SELECT m.enqueued_at FROM cron_queue m
        WHERE m.namespace = n.namespace AND m.queue = n.queue AND m.ended_at IS NULL
        ORDER BY m.id LIMIT 1) AS oldest_at,
       l.lanes, l.leased, l.consumers,
       (SELECT count(*) FROM (SELECT FROM cron_dead_letters d
                              WHERE d.namespace = n.namespace AND d.queue = n.queue LIMIT :most) c) AS dead,
       coalesce(q.max_deliveries, 5) AS max_deliveries, coalesce(q.on_retry, 'block') AS on_retry,
       coalesce(q.dead_kept_days, 30) AS dead_kept_days, q.changed_at, coalesce(q.changed_by, '') AS changed_by,
       coalesce(q.note, '') AS note
FROM cron_queue_names() n
LEFT JOIN cron_queues q ON q.namespace = n.namespace AND q.queue = n.queue
CROSS JOIN LATERAL (
    SELECT count(DISTINCT c.workspace) AS lanes, count(*) FILTER (WHERE c.leased) AS leased,
           count(DISTINCT c.consumer) FILTER (WHERE c.leased) AS consumers
    FROM (
        (SELECT a.workspace, a.lease IS NOT NULL AND a.ready_at > now() AS leased, a.consumer FROM cron_queue_lanes a
         WHERE a.namespace = n.namespace AND a.queue = n.queue AND a.ready_at IS NOT NULL LIMIT :most)
        UNION ALL -- messages that no take has looked at yet
        (SELECT w.workspace, false, NULL FROM cron_queue_wakes w
         WHERE w.namespace = n.namespace AND w.queue = n.queue LIMIT :most)
    ) c
) l
WHERE (:namespace?::text IS NULL OR n.namespace = :namespace) AND (:queue?::text IS NULL OR n.queue = :queue)
  AND (:namespaces?::text[] IS NULL OR n.namespace = ANY(:namespaces))
  AND (n.namespace, n.queue) > (:after_namespace::text, :after_queue::text)
ORDER BY n.namespace, n.queue
LIMIT :limit::bigint;

-- name: CountQueues
-- How many ListQueues would list, of any name. Null: of any namespace.
SELECT count(*)
FROM cron_queue_names() n
WHERE (:namespace?::text IS NULL OR n.namespace = :namespace)
  AND (:namespaces?::text[] IS NULL OR n.namespace = ANY(:namespaces));

-- name: ListMessages
-- Of a queue, the oldest first, from after `:after_id` on. `lease`: of whoever has it now.
SELECT m.id, m.workspace, m.payload, m.job_id, (SELECT key FROM cron_jobs j WHERE j.id = m.job_id) AS job,
       m.execution_id, m.tick, m.run_at, m.attempt, m.enqueued_at, m.failures, m.awaited, m.error_type, m.error_message,
       CASE WHEN m.id = ANY(l.given) AND l.ready_at > now() THEN l.consumer ELSE '' END AS consumer,
       CASE WHEN m.id = ANY(l.given) AND l.ready_at > now() THEN l.ready_at END AS leased_until
FROM cron_queue m
LEFT JOIN cron_queue_lanes l ON l.namespace = m.namespace AND l.queue = m.queue AND l.workspace = m.workspace
WHERE m.namespace = :namespace AND m.queue = :queue AND m.ended_at IS NULL AND m.id > :after_id
ORDER BY m.id
LIMIT :limit::bigint;

-- name: ListLane
-- Of a queue's messages of one workspace, in the order in which consumers get them, from after that position on.
SELECT m.id, m.workspace, m.payload, m.job_id, (SELECT key FROM cron_jobs j WHERE j.id = m.job_id) AS job,
       m.execution_id, m.tick, m.run_at, m.attempt, m.enqueued_at, m.failures, m.awaited, m.error_type, m.error_message,
       CASE WHEN m.id = ANY(l.given) AND l.ready_at > now() THEN l.consumer ELSE '' END AS consumer,
       CASE WHEN m.id = ANY(l.given) AND l.ready_at > now() THEN l.ready_at END AS leased_until
FROM cron_queue m
LEFT JOIN cron_queue_lanes l ON l.namespace = m.namespace AND l.queue = m.queue AND l.workspace = m.workspace
WHERE m.namespace = :namespace AND m.queue = :queue AND m.workspace = :workspace AND m.ended_at IS NULL
  AND (m.run_at, m.id) > (coalesce(:after_run_at?::timestamptz, '-infinity'), :after_id::bigint)
ORDER BY m.run_at, m.id
LIMIT :limit::bigint;

-- name: ListDeadLetters
-- Of a queue, the oldest first, from after `:after_id` on.
SELECT d.id, d.workspace, d.payload, d.job_id, (SELECT key FROM cron_jobs j WHERE j.id = d.job_id) AS job,
       d.execution_id, d.tick, d.attempt, d.enqueued_at, d.died_at, d.failures, d.outcome, d.error_type, d.error_message
FROM cron_dead_letters d
WHERE d.namespace = :namespace AND d.queue = :queue AND d.id > :after_id
ORDER BY d.id
LIMIT :limit::bigint;

-- name: ListDeadLettersOfWorkspace
-- As ListDeadLetters, of one workspace: a statement of its own, as no plan is good for both.
SELECT d.id, d.workspace, d.payload, d.job_id, (SELECT key FROM cron_jobs j WHERE j.id = d.job_id) AS job,
       d.execution_id, d.tick, d.attempt, d.enqueued_at, d.died_at, d.failures, d.outcome, d.error_type, d.error_message
FROM cron_dead_letters d
WHERE d.namespace = :namespace AND d.queue = :queue AND d.workspace = :workspace AND d.id > :after_id
ORDER BY d.id
LIMIT :limit::bigint;

-- name: FindDeadLetters
-- The oldest `:limit` of a queue, or those of `:ids`: locked until the transaction ends.
SELECT d.id FROM cron_dead_letters d
WHERE d.namespace = :namespace AND d.queue = :queue AND (:ids?::bigint[] IS NULL OR d.id = ANY(:ids))
ORDER BY d.id
LIMIT :limit::bigint
FOR UPDATE;

-- name: FindDeadLettersOfWorkspace
-- As FindDeadLetters, of one workspace.
SELECT d.id FROM cron_dead_letters d
WHERE d.namespace = :namespace AND d.queue = :queue AND d.workspace = :workspace
  AND (:ids?::bigint[] IS NULL OR d.id = ANY(:ids))
ORDER BY d.id
LIMIT :limit::bigint
FOR UPDATE;

-- name: ReplayDeadLetters
-- They are messages again, as if they had just come in, under their old ids.
WITH back AS MATERIALIZED (
    DELETE FROM cron_dead_letters WHERE id = ANY(:ids::bigint[]) RETURNING *
)
INSERT INTO cron_queue (id, namespace, queue, workspace, job_id, execution_id, tick, run_at, attempt, payload,
                        enqueued_at)
OVERRIDING SYSTEM VALUE
SELECT b.id, b.namespace, b.queue, b.workspace, b.job_id, b.execution_id, b.tick, now(), b.attempt, b.payload,
       b.enqueued_at
FROM back b ORDER BY b.id
RETURNING id;

-- name: RemoveDeadLetters
DELETE FROM cron_dead_letters WHERE id = ANY(:ids::bigint[]) RETURNING id;

-- name: LockQueue
-- Locks a queue's settings until the transaction ends, even if the queue has no row yet.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' queue ' || :namespace || '/' || :queue, 0));

-- name: GetQueue
-- What somebody has set of it, and when; no row: nobody has.
SELECT max_deliveries, on_retry, dead_kept_days, note, changed_at FROM cron_queues
WHERE namespace = :namespace AND queue = :queue;

-- name: SetQueue
INSERT INTO cron_queues (namespace, queue, max_deliveries, on_retry, dead_kept_days, changed_by, note)
VALUES (:namespace, :queue, :max_deliveries, :on_retry, :dead_kept_days, :actor, :note)
ON CONFLICT (namespace, queue) DO UPDATE
SET max_deliveries = excluded.max_deliveries, on_retry = excluded.on_retry, dead_kept_days = excluded.dead_kept_days,
    changed_at = now(), changed_by = excluded.changed_by, note = excluded.note;

-- name: ForgetDeadLetters
DELETE FROM cron_dead_letters d
WHERE d.died_at < now() - interval '1 day' * coalesce(
    (SELECT q.dead_kept_days FROM cron_queues q WHERE q.namespace = d.namespace AND q.queue = d.queue), 30
);

-- name: ForgetLanes
-- Deletes lanes that got no message for an hour. The next message makes its lane anew.
DELETE FROM cron_queue_lanes WHERE id IN (
    SELECT l.id FROM cron_queue_lanes l WHERE l.ready_at IS NULL AND l.changed_at < now() - interval '1 hour'
    FOR UPDATE SKIP LOCKED
);

-- name: ForgetListeners
DELETE FROM cron_queue_listeners WHERE (namespace, queue) IN (
    SELECT namespace, queue FROM cron_queue_listeners WHERE until_at < now() FOR UPDATE SKIP LOCKED
);

-- name: GetQueueFigures
-- Of the `:queues` that hold most. What is counted is counted up to `:most`.
SELECT n.namespace, n.queue, f.depth,
       coalesce(extract(epoch FROM clock_timestamp() - f.oldest_at) * 1000, 0)::bigint AS oldest_ms, f.dead
FROM cron_queue_names() n
CROSS JOIN LATERAL (
    SELECT (SELECT count(*) FROM (SELECT FROM cron_queue m
                                  WHERE m.namespace = n.namespace AND m.queue = n.queue AND m.ended_at IS NULL
                                  LIMIT :most::bigint) c) AS depth,
           (SELECT m.enqueued_at FROM cron_queue m
            WHERE m.namespace = n.namespace AND m.queue = n.queue AND m.ended_at IS NULL
            ORDER BY m.id LIMIT 1) AS oldest_at,
           (SELECT count(*) FROM (SELECT FROM cron_dead_letters d
                                  WHERE d.namespace = n.namespace AND d.queue = n.queue LIMIT :most) c) AS dead
) f
ORDER BY f.depth DESC, n.namespace, n.queue
LIMIT :queues::bigint;
