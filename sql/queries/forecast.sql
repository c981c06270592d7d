-- What is coming, and what has just been.

-- name: GetJobGroups
-- Jobs that tick, by schedule and policy: the `:limit` largest groups, each with how long a run of each job takes, and
-- how many jobs there are in all. Intervals count from their anchors; patterns do not. `:namespaces` null: all.
-- `parts`: of each, by deployment and verb; those for queues are in none. A part has up to three of its keys.
SELECT g.schedule, g.anchor, g.policy, g.jobs, g.unmeasured, g.running_us, g.keys, g.parts,
       sum(g.jobs) OVER ()::bigint AS all_jobs
FROM (
    SELECT schedule, anchor, policy, sum(jobs)::bigint AS jobs, sum(unmeasured)::bigint AS unmeasured,
           sum(running_us)::bigint AS running_us, min(keys) AS keys,
           coalesce(jsonb_agg(jsonb_build_array(deployment, verb, jobs, running_us))
                    FILTER (WHERE NOT queued), '[]')::text AS parts
    FROM (
        SELECT j.schedule, CASE WHEN j.schedule LIKE 'every %' THEN j.anchor ELSE 'epoch' END AS anchor, j.policy,
               d.key AS deployment, j.verb, d.module LIKE '@%' AS queued,
               count(*) AS jobs, count(*) FILTER (WHERE f.runs IS NULL) AS unmeasured,
               coalesce(sum(f.duration_us / f.runs), 0)::bigint AS running_us, (array_agg(j.key))[1:3] AS keys
        FROM cron_jobs j
        JOIN deployments d ON d.id = j.deployment_id
        LEFT JOIN LATERAL (
            SELECT duration_us, nullif((SELECT sum(n) FROM unnest(outcomes) n), 0) AS runs
            FROM cron_figures WHERE job_id = j.id OFFSET 0
        ) f ON true
        WHERE j.removed_at IS NULL AND j.key > '' AND (j.next_tick IS NOT NULL OR j.state = 'executing')
          AND (:namespaces?::text[] IS NULL OR j.namespace = ANY(:namespaces))
        GROUP BY 1, 2, 3, 4, 5, 6
    ) part
    GROUP BY 1, 2, 3
) g
ORDER BY g.jobs DESC, g.schedule
LIMIT :limit;

-- name: GetAsyncVerbs
-- Of active versions, all async verbs. A lookup for each job would take quadratic time in a large module.
SELECT key, async_verbs FROM deployments WHERE min_replicas > 0 AND async_verbs <> '{}';

-- name: GetPlaces
-- How many runs of a deployment its live runners hold at once, of sync and of async verbs. 0: one of them doesn't tell.
-- `at_most`: what the limits of its module and its namespace allow; null: there is none.
SELECT p.deployment, p.sync_places, p.async_places,
       (SELECT min(l.max_concurrent) FROM deployments d JOIN cron_limits l ON l.namespace = d.namespace
        WHERE d.key = p.deployment AND l.module IN (d.module, '') AND l.label = '') AS at_most
FROM (
    SELECT h.deployment, sum(r.sync_places) * (min(r.sync_places) > 0)::integer AS sync_places,
           sum(r.async_places) * (min(r.async_places) > 0)::integer AS async_places
    FROM runners r CROSS JOIN LATERAL unnest(r.deployments) h (deployment)
    WHERE r.left_at IS NULL AND r.last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond'
    GROUP BY 1
) p;

-- name: GetRecentFigures
-- Of the `:looked` latest runs above `:above_id`, those claimed since `:since`: how they ended, and how late those of
-- `:late_since` began. Ticks that were skipped since, too, by reason. `:namespaces` null: all.
WITH recent AS MATERIALIZED (
    SELECT coalesce(e.outcome, 'running') AS outcome, e.run_at,
           CASE WHEN e.started_at >= :late_since::timestamptz THEN e.started_at END AS started_at
    FROM (SELECT * FROM cron_executions WHERE id > :above_id ORDER BY id DESC LIMIT :looked::bigint) e
    WHERE e.claimed_at >= :since::timestamptz AND (:namespaces?::text[] IS NULL
        OR EXISTS (SELECT FROM cron_jobs j WHERE j.id = e.job_id AND j.namespace = ANY(:namespaces) OFFSET 0))
), skipped AS MATERIALIZED (
    -- A pause that ends by itself skips what is to come as well.
    SELECT s.reason, CASE WHEN s.last_tick <= now() THEN s.ticks ELSE coalesce(
               s.ticks * greatest(date_part('epoch', now() - s.first_tick), 0)
               / nullif(date_part('epoch', s.last_tick - s.first_tick), 0), 0)::bigint END AS ticks
    FROM (SELECT * FROM cron_skips ORDER BY id DESC LIMIT :looked) s
    WHERE s.decided_at >= :since AND (:namespaces IS NULL
        OR EXISTS (SELECT FROM cron_jobs j WHERE j.id = s.job_id AND j.namespace = ANY(:namespaces) OFFSET 0))
)
SELECT (SELECT coalesce(jsonb_object_agg(outcome, runs), '{}')::text
        FROM (SELECT outcome, count(*) AS runs FROM recent GROUP BY outcome) o) AS outcomes,
       (SELECT coalesce(jsonb_object_agg(reason, ticks), '{}')::text
        FROM (SELECT reason, sum(ticks) AS ticks FROM skipped GROUP BY reason) s) AS skipped,
       (SELECT (date_part('epoch', percentile_disc(0.5) WITHIN GROUP (ORDER BY started_at - run_at)) * 1e6)::bigint
        FROM recent WHERE started_at IS NOT NULL) AS p50_us,
       (SELECT (date_part('epoch', percentile_disc(0.99) WITHIN GROUP (ORDER BY started_at - run_at)) * 1e6)::bigint
        FROM recent WHERE started_at IS NOT NULL) AS p99_us;
