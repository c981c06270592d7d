-- How the cluster stood, and what happened to it.

-- name: ListLives
-- What lived at some time from `:since` to `:until`: the `:limit` lives that ended latest, and all that go on. Of these
-- `until_at` is null. A runner goes on if it was seen in the last `:lost_after_ms`.
SELECT kind, member, from_at, until_at, departed, address, version, deployments
FROM (SELECT * FROM cron_lives WHERE until_at >= :since::timestamptz AND from_at <= :until::timestamptz
      ORDER BY until_at DESC LIMIT :limit) ended
UNION ALL
SELECT 'controller', id, held_since, CASE WHEN lease_expires_at <= now() THEN lease_expires_at END, draining,
       grpc_address, version, '{}'
FROM controllers
WHERE held_since <= :until AND lease_expires_at >= :since
UNION ALL
SELECT 'runner', id, held_since,
       CASE WHEN left_at IS NOT NULL OR last_seen_at < now() - :lost_after_ms::bigint * interval '1 millisecond'
            THEN coalesce(left_at, last_seen_at) END,
       left_at IS NOT NULL, hostname, version, deployments
FROM runners
WHERE held_since <= :until AND coalesce(left_at, last_seen_at) >= :since;

-- name: GetFirstLife
-- Since when lives are known: null, none is.
SELECT least((SELECT from_at FROM cron_lives ORDER BY until_at LIMIT 1), (SELECT min(held_since) FROM controllers));

-- name: ForgetLives
-- What ended more than `:history_ms` ago; at most 10,000 at a time.
DELETE FROM cron_lives WHERE id IN (
    SELECT id
    FROM cron_lives WHERE until_at < now() - :history_ms::bigint * interval '1 millisecond'
    ORDER BY until_at LIMIT 10000);

-- name: ListRunningAt
-- What ran at an instant, the newest first. It is looked for among ids from after `:above_id` up to `:until_id`.
-- `:namespaces` null: all.
SELECT e.*
FROM cron_execution_details e
WHERE e.id > :above_id AND e.id <= :until_id AND e.claimed_at <= :at::timestamptz
  AND (e.ended_at IS NULL OR e.ended_at > :at)
  AND (:namespaces?::text[] IS NULL
       OR EXISTS (SELECT FROM cron_jobs j WHERE j.id = e.job_id AND j.namespace = ANY(:namespaces) OFFSET 0))
ORDER BY e.id DESC
LIMIT :limit;

-- name: ListLateAt
-- What had been due from `:since` to `:at`, and began more than `:late_ms` late, or still waited then: the latest
-- run_at first. It is looked for among the `:looked` ids after `:above_id`. With it comes what ran of its job before.
SELECT e.id, j.key AS job, j.slot, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at,
       coalesce(e.outcome, '') AS outcome, e.controller_id, e.runner_id, e.trigger, coalesce(b.id, 0) AS before_id,
       b.ended_at AS before_ended_at
FROM (SELECT * FROM cron_executions WHERE id > :above_id ORDER BY id LIMIT :looked) e
CROSS JOIN LATERAL (SELECT key, slot, namespace FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
CROSS JOIN LATERAL (SELECT key FROM deployments WHERE id = e.deployment_id OFFSET 0) d
LEFT JOIN LATERAL (
    SELECT id, ended_at FROM cron_executions
    WHERE job_id = e.job_id AND tick < e.tick AND id < e.id ORDER BY tick DESC, attempt DESC LIMIT 1) b ON true
WHERE e.run_at > :since::timestamptz AND e.run_at <= :at::timestamptz
  AND coalesce(e.started_at, e.claimed_at) - e.run_at > :late_ms::bigint * interval '1 millisecond'
  AND (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
ORDER BY e.run_at DESC, e.id DESC
LIMIT :limit;

-- name: ListTroubles
-- Runs that ended without success from `:since` to `:until`: of each of `:outcomes` the `:limit` newest, with what came
-- before and after of their jobs. They are looked for among ids above `:above_id`.
SELECT e.id, e.job, e.tick, e.ended_at, e.outcome, coalesce(e.error_type, '') AS error_type,
       coalesce(e.error_message, '') AS error_message, coalesce(b.outcome, '') AS before_outcome,
       CASE WHEN a.outcome = 'completed' THEN a.id ELSE 0 END AS recovered_id,
       CASE WHEN a.outcome = 'completed' THEN a.ended_at END AS recovered_at
FROM unnest(:outcomes::text[]) AS o (outcome)
CROSS JOIN LATERAL (
    SELECT x.id, x.job_id, j.key AS job, x.tick, x.attempt, x.ended_at, x.outcome, x.error_type, x.error_message
    FROM cron_executions x
    CROSS JOIN LATERAL (SELECT key, namespace FROM cron_jobs WHERE id = x.job_id OFFSET 0) j
    WHERE x.outcome <> 'completed' AND x.outcome = o.outcome AND x.id > :above_id
      AND x.ended_at >= :since::timestamptz AND x.ended_at <= :until::timestamptz
      AND (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
    ORDER BY x.id DESC
    LIMIT :limit
) e
LEFT JOIN LATERAL (
    SELECT outcome FROM cron_executions
    WHERE job_id = e.job_id AND (tick, attempt) < (e.tick, e.attempt) ORDER BY tick DESC, attempt DESC LIMIT 1
) b ON true
LEFT JOIN LATERAL (
    SELECT id, outcome, ended_at FROM cron_executions
    WHERE job_id = e.job_id AND (tick, attempt) > (e.tick, e.attempt) ORDER BY tick, attempt LIMIT 1
) a ON true
ORDER BY e.id DESC;

-- name: ListDeeds
-- What people did from `:since` to `:until`, the newest first: of the `:looked` newest actions. One row for what one of
-- them did to many in one transaction, as calls in bulk do. `subjects`: the first three of these. `looked_to`: the
-- oldest of those that were looked at, if there may be others.
WITH seen AS MATERIALIZED (
    SELECT id, at, job_id, deployment_id, execution_id, template, action, actor, note FROM cron_actions
    WHERE at >= :since::timestamptz AND at <= :until::timestamptz
    ORDER BY at DESC
    LIMIT :looked::bigint
)
SELECT max(s.id) AS number, s.at, s.action, s.actor, s.note, count(*) AS times,
       (array_agg(coalesce(j.key, d.key, s.template, '') ORDER BY s.id))[1:3] AS subjects,
       coalesce(min(j.key), '') AS job, coalesce(max(s.execution_id), 0) AS execution_id,
       (SELECT CASE WHEN count(*) = :looked THEN min(at) END FROM seen) AS looked_to
FROM seen s
LEFT JOIN LATERAL (SELECT key, namespace FROM cron_jobs WHERE id = s.job_id) j ON true
LEFT JOIN LATERAL (SELECT key, namespace FROM deployments WHERE id = s.deployment_id) d ON true
WHERE :namespaces?::text[] IS NULL
   OR coalesce(j.namespace, d.namespace, split_part(s.template, '/', 1)) = ANY(:namespaces)
GROUP BY s.at, s.action, s.actor, s.note
ORDER BY number DESC;
