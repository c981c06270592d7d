-- Runs that wait beside the schedule. See cron_jobs.sql for how statements over many rows are written. This table is
-- empty for most of the time: once that is vacuumed, it has no pages, and reading all of it for each row looks as cheap
-- as a probe. What it is joined by must be no order, then (`= ANY (ARRAY[...])`): no path but the index that is meant
-- is left.

-- name: GetActivations
-- PostgreSQL's now, and what waits in the slots with run_at before it plus the window, and may run by then. While a
-- pause lasts, that is only manual runs, and retries that somebody asked for. All of an orphaned job wait for its verb.
-- One row of nulls when there is nothing.
SELECT n.database_now, waiting.*
FROM (SELECT now() AS database_now) n
LEFT JOIN (
    SELECT a.id AS activation_id, a.tick, a.until_tick, a.attempt, a.trigger, p.run_at,
           coalesce(a.payload, '') AS activation_payload, a.beside, j.*
    FROM cron_activations a
    JOIN cron_scheduled_jobs j ON j.id = ANY (ARRAY[a.job_id])
    CROSS JOIN LATERAL (
        SELECT CASE WHEN NOT cron_paused(j.paused_at, j.paused_until) OR a.trigger = 'manual'
                         OR a.trigger = 'retry' AND a.requested_by > '' THEN a.run_at
                    WHEN j.paused_until IS NOT NULL THEN greatest(a.run_at, j.paused_until) END AS run_at
    ) p
    WHERE a.slot = ANY(:slots::integer[])
      AND a.run_at <= now() + :window_ms::bigint * interval '1 millisecond'
      AND j.removed_at IS NULL AND j.orphaned_at IS NULL
      AND p.run_at <= now() + :window_ms::bigint * interval '1 millisecond'
) waiting ON true;

-- name: GetFollowers
-- PostgreSQL's now, and those of these activations that may run, or will when a pause ends within two minutes: what
-- waits longer, refetches find. One row of nulls when there is none.
SELECT n.database_now, waiting.*
FROM (SELECT now() AS database_now) n
LEFT JOIN (
    SELECT a.id AS activation_id, a.tick, a.until_tick, a.attempt, a.trigger,
           CASE WHEN cron_paused(j.paused_at, j.paused_until) THEN greatest(a.run_at, j.paused_until)
                ELSE a.run_at END AS run_at,
           coalesce(a.payload, '') AS activation_payload, a.beside, j.*
    FROM unnest(:activation_ids::bigint[]) asked (id)
    CROSS JOIN LATERAL (SELECT * FROM cron_activations WHERE id = asked.id OFFSET 0) a
    CROSS JOIN LATERAL (SELECT * FROM cron_scheduled_jobs WHERE id = a.job_id OFFSET 0) j
    WHERE j.orphaned_at IS NULL
      AND (NOT cron_paused(j.paused_at, j.paused_until) OR j.paused_until <= now() + interval '2 minutes')
) waiting ON true;

-- name: StartActivations
-- Claims, in one statement, those activations that are due and whose job may run now, if the caller's lease is valid, and
-- inserts their executions. A claimed one is gone, but for a backfill that has a next tick: that moves on. So does a
-- backfill past a tick that completed before. A retry that its schedule's next tick has superseded goes, and its tick counts
-- as one without success (the next end that is none either pauses the job, see EndCronJob); and what is left of a job
-- that was removed goes; and so does what follows a tick that has been run for, or whose job was cancelled meanwhile.
-- Answers with every attempted one, in the order asked.
-- All but `:controller_id` and `:hard_grace_ms` (after the timeout) are parallel arrays. `:expected_ticks` stand in the
-- activations, `:deployments` are keys of what the runners host, `:next_ticks` are of backfills.
-- SKIP LOCKED as in StartCronJobs. The job's row is locked even for a run beside it, so that of two for one tick the
-- other sees the attempt of the first; where it doesn't, by an older snapshot, ON CONFLICT makes it try again.
WITH wanted AS MATERIALIZED (
    SELECT *
    FROM unnest(:activation_ids::bigint[], :expected_ticks::timestamptz[], :runner_ids::text[], :deployments::text[],
                :next_ticks[?]::timestamptz[]) WITH ORDINALITY
        AS w (activation_id, tick, runner_id, deployment, next_tick, position)
), judged AS (
    SELECT w.position, w.activation_id, w.runner_id, w.next_tick, a.job_id, a.trigger, a.tick, a.run_at, a.payload,
           a.beside, a.of_schedule, a.settled, j.executions, j.deployment_id, j.timeout_ms, j.state, j.running, j.concurrency,
           j.module_limit, j.namespace_limit,
           a.run_at - (cron_priority(j.policy) - CASE WHEN a.trigger = 'backfill' THEN 10 ELSE 0 END) * interval '1 second' AS place_at,
           greatest(a.attempt, t.attempts + 1) AS attempt,
           CASE a.trigger WHEN 'retry' THEN t.missed ELSE 0 END AS missed,
           coalesce(t.previous_tick, CASE WHEN j.last_tick < a.tick THEN j.last_tick END) AS previous_tick,
           coalesce(t.previous_success, CASE WHEN j.last_success < a.tick THEN j.last_success END) AS previous_success,
           j.removed_at IS NOT NULL OR s.superseded OR a.trigger = 'after' AND (t.attempts > 0 OR j.cancelled_at IS NOT NULL)
               AS over,
           j.removed_at IS NULL AND s.superseded AND NOT a.settled AND coalesce(j.last_success < a.tick, true) AS failed,
           a.trigger = 'backfill' AND NOT a.again AND t.completed AS passed,
           (NOT cron_paused(j.paused_at, j.paused_until) OR a.trigger = 'manual' OR a.trigger = 'retry' AND a.requested_by > '')
               AND j.orphaned_at IS NULL AND NOT t.running
               -- A tick that its schedule has yet to claim is the schedule's.
               AND (a.trigger <> 'backfill' OR j.next_tick IS NULL OR a.tick < j.next_tick
                    OR coalesce(a.tick <= j.last_tick, false))
               -- Beside the job's own runs, ten at once: each waits for the tenth before it, which had waited as well.
               AND NOT (a.trigger = 'backfill' AND a.beside AND cron_tenth_runs(a.job_id, a.tick))
               AND (SELECT min_replicas > 0 AND key = w.deployment FROM deployments WHERE id = j.deployment_id) AS may
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT * FROM cron_activations
        WHERE id = w.activation_id AND tick = w.tick AND run_at <= now()
          AND EXISTS (SELECT FROM controllers WHERE id = :controller_id AND lease_expires_at > now())
        FOR UPDATE SKIP LOCKED
    ) a
    CROSS JOIN LATERAL (
        SELECT * FROM cron_jobs WHERE id = a.job_id FOR NO KEY UPDATE SKIP LOCKED
    ) j
    CROSS JOIN LATERAL cron_tick(a.job_id, a.tick) t
    CROSS JOIN LATERAL ( -- a retry that somebody asked for is superseded by nothing
        SELECT a.of_schedule AND a.requested_by = '' AND coalesce(j.last_tick > a.tick, false) AS superseded
    ) s
), roomy AS MATERIALIZED ( -- as many of each job as it has room for, in the order asked
    SELECT p.*, p.may AND (p.beside OR p.state = 'idle' AND p.place <= greatest(p.concurrency, 1) - p.running) AS fits
    FROM (
        SELECT g.*, count(*) FILTER (WHERE may AND NOT beside AND NOT over AND NOT passed)
                   OVER (PARTITION BY job_id ORDER BY position) AS place
        FROM judged g
    ) p
), limited AS MATERIALIZED (
    SELECT position, module_limit, namespace_limit, place_at FROM roomy
    WHERE coalesce(module_limit, namespace_limit) IS NOT NULL AND fits AND NOT over AND NOT passed
), limits AS MATERIALIZED ( -- as in StartCronJobs
    SELECT l.id, l.free
    FROM (
        SELECT DISTINCT v.id FROM limited CROSS JOIN LATERAL (VALUES (module_limit), (namespace_limit)) v (id)
        WHERE v.id IS NOT NULL ORDER BY v.id
    ) g
    CROSS JOIN LATERAL (
        SELECT id, coalesce(max_concurrent - running, 2147483647) AS free FROM cron_limits WHERE id = g.id
        FOR NO KEY UPDATE
    ) l
), placed AS MATERIALIZED (
    SELECT position,
           CASE WHEN NOT in_module THEN module_limit WHEN namespace_limit IS NOT NULL AND nth > free THEN namespace_limit END
               AS full_limit
    FROM (
        SELECT m.*, count(*) FILTER (WHERE in_module) OVER (PARTITION BY namespace_limit ORDER BY place_at, position) AS nth
        FROM (
            SELECT d.*, coalesce(n.free, 0) AS free,
                   d.module_limit IS NULL
                       OR count(*) OVER (PARTITION BY d.module_limit ORDER BY d.place_at, d.position) <= coalesce(m.free, 0)
                       AS in_module
            FROM limited d LEFT JOIN limits m ON m.id = d.module_limit LEFT JOIN limits n ON n.id = d.namespace_limit
        ) m
    ) p
), chosen AS MATERIALIZED (
    SELECT n.*, n.executions + count(n.execution_id) FILTER (WHERE NOT n.over AND NOT n.passed)
                                   OVER (PARTITION BY n.job_id ORDER BY n.position) AS number
    FROM (
        SELECT r.*, CASE WHEN r.fits AND CASE WHEN coalesce(r.module_limit, r.namespace_limit) IS NULL THEN true
                                              ELSE r.position NOT IN (SELECT position FROM placed WHERE full_limit IS NOT NULL) END
                    THEN nextval('cron_execution_ids') END AS execution_id
        FROM roomy r
    ) n
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                                 hard_deadline, attempt, trigger, missed, previous_tick, previous_success, payload,
                                 holds_job, counted, of_schedule, settled, number)
    SELECT execution_id, job_id, deployment_id, tick, run_at, now(), :controller_id, runner_id,
           now() + (timeout_ms + :hard_grace_ms::bigint) * interval '1 millisecond', attempt, trigger, missed,
           previous_tick, previous_success, payload, NOT beside AND concurrency = 0, NOT beside AND concurrency > 0, of_schedule,
           settled, number
    FROM chosen WHERE execution_id IS NOT NULL AND NOT over AND NOT passed
    ON CONFLICT (job_id, tick, attempt) DO NOTHING
    RETURNING id
), decided AS MATERIALIZED ( -- `moves`: to the next tick of a backfill, or away
    SELECT s.*, s.started OR s.over OR s.passed AS moves, CASE WHEN NOT s.over THEN s.next_tick END AS goes_on
    FROM (
        SELECT c.*, CASE WHEN c.execution_id IN (SELECT id FROM inserted) THEN true ELSE false END AS started
        FROM chosen c
    ) s
), held AS (
    UPDATE cron_jobs j
    SET state = CASE WHEN s.holds THEN 'executing' ELSE j.state END,
        start_time = CASE WHEN s.holds THEN now() ELSE j.start_time END,
        execution_id = CASE WHEN s.holds THEN s.execution_id ELSE j.execution_id END,
        running = j.running + s.counted, failures = j.failures + s.failed,
        executions = coalesce(s.number, j.executions)
    FROM (
        SELECT job_id, count(*) FILTER (WHERE held AND concurrency > 0) AS counted,
               coalesce(bool_or(held AND concurrency = 0), false) AS holds,
               max(execution_id) FILTER (WHERE held) AS execution_id, count(*) FILTER (WHERE failed) AS failed,
               max(number) FILTER (WHERE started) AS number
        FROM (SELECT *, started AND NOT beside AS held FROM decided) d
        WHERE started OR failed
        GROUP BY job_id
    ) s
    WHERE j.id = s.job_id
    RETURNING j.id, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing
), taken AS (
    UPDATE cron_limits l SET running = l.running + t.places
    FROM (
        SELECT v.id, count(*) AS places FROM decided CROSS JOIN LATERAL (VALUES (module_limit), (namespace_limit)) v (id)
        WHERE started AND v.id IS NOT NULL GROUP BY v.id
    ) t
    WHERE l.id = t.id
), moved AS (
    UPDATE cron_activations a SET tick = d.goes_on, run_at = now(), attempt = 1
    FROM (SELECT activation_id, goes_on FROM decided WHERE moves AND goes_on IS NOT NULL) d
    WHERE a.id = ANY (ARRAY[d.activation_id])
), gone AS (
    DELETE FROM cron_activations a
    USING (SELECT activation_id FROM decided WHERE moves AND goes_on IS NULL) d
    WHERE a.id = ANY (ARRAY[d.activation_id])
)
SELECT now() AS database_now, r.activation_id, r.started,
       a.id IS NULL OR r.moves AND NOT r.started AND r.goes_on IS NULL AS gone,
       CASE WHEN r.moves THEN r.goes_on WHEN a.trigger = 'backfill' THEN a.tick END AS next_tick,
       CASE WHEN NOT r.started THEN r.full_limit END AS full_limit,
       r.execution_id, r.tick, r.run_at, now() AS claimed_at, r.attempt, r.trigger, d.key AS deployment, r.runner_id,
       r.missed, r.previous_tick, r.previous_success, coalesce(r.payload, j.payload) AS payload,
       NOT r.beside AND r.concurrency = 0 AS holds_job, r.of_schedule,
       j.id, j.key, j.slot, d.key AS job_deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, coalesce(r.executing, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1))
           AS executing, j.next_tick, j.next_execution, j.policy, j.payload AS job_payload
FROM (
    SELECT w.activation_id, w.position, coalesce(c.started, false) AS started, coalesce(c.moves, false) AS moves,
           c.goes_on, c.execution_id, c.job_id, c.tick, c.run_at, c.attempt, c.trigger, c.runner_id, c.missed,
           c.previous_tick, c.previous_success, c.payload, c.beside, c.of_schedule, c.concurrency, h.executing,
           p.full_limit
    FROM wanted w
    FULL JOIN decided c ON c.position = w.position
    FULL JOIN held h ON h.id = c.job_id
    FULL JOIN placed p ON p.position = w.position
) r
LEFT JOIN LATERAL (SELECT id, trigger, tick FROM cron_activations WHERE id = ANY (ARRAY[r.activation_id])) a ON true
LEFT JOIN cron_jobs j ON j.id = r.job_id
LEFT JOIN deployments d ON d.id = j.deployment_id
ORDER BY r.position;

-- name: CreateActivation
-- `:until_tick` is the last one of a backfill. `:payload` null: the job's own.
INSERT INTO cron_activations (job_id, slot, attempt, run_at, requested_by, trigger, tick, until_tick, payload, beside,
                              again)
SELECT id, slot, 1, :run_at, :actor, :trigger, :tick, :until_tick?, :payload?, :beside, :again
FROM cron_jobs WHERE id = :job_id
RETURNING id;

-- name: ListActivations
-- What waits for a job, the next one first. `:activation_id` null: all.
SELECT a.id AS activation_id, a.tick, a.until_tick, a.attempt, a.trigger, a.run_at,
       coalesce(a.payload, '') AS activation_payload, a.beside, j.*
FROM cron_activations a
JOIN cron_scheduled_jobs j ON j.id = a.job_id
WHERE a.job_id = :job_id AND (:activation_id?::bigint IS NULL OR a.id = :activation_id)
ORDER BY a.run_at, a.id;

-- name: DeleteActivation
DELETE FROM cron_activations WHERE id = :activation_id AND job_id = :job_id RETURNING id;
