-- Runs that wait beside the schedule. See cron_jobs.sql for how statements over many rows are written. This table is
-- empty most of the time. A vacuumed empty table has no pages, so to the planner a full scan for each row looks as
-- cheap as a probe. So joins compare by `= ANY (ARRAY[...])`, which allows no merge or hash join: only the intended
-- index is left.

-- name: GetActivations
-- PostgreSQL's now, and what waits in the slots, with run_at before now plus the window, and may run by then. During a
-- pause, only manual runs may, and retries that somebody asked for. Those of an orphaned job wait for its verb.
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
-- PostgreSQL's now, and those of these activations that may run, or whose pause ends within two minutes. Refetches find
-- those that wait longer. One row of nulls when there is none.
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
-- Claims, in one statement, those activations that are due and whose job may run now, if the caller's lease is valid.
-- It inserts their executions. A claimed activation is deleted; a backfill with a next tick moves on to that tick.
-- Answers with every attempted one, in the order asked. Some must not run at all, and are left as they are. The caller
-- asks again in a transaction, where they are locked, and drops them or moves them on. Their `verdict` is:
--   "superseded": a retry that its schedule's next tick has superseded. Its tick counts as one without success.
--   "over": its tick has counted before, or completed; or its job was removed. Of a follower: the tick has had its run,
--   or its job was cancelled meanwhile.
--   "passed": a backfill's tick that completed before.
-- All but `:controller_id`, `:hard_grace_ms` (after the timeout) and `:placed` (see StartCronJobs) are parallel arrays.
-- `:expected_ticks` stand in the activations, `:deployments` are keys of what the runners host, `:next_ticks` are of
-- backfills.
-- SKIP LOCKED as in StartCronJobs. The job's row is locked even for a run beside it. So if two claims are for one tick,
-- the second sees the attempt of the first. If its snapshot is too old for that, ON CONFLICT makes it try again.
WITH judged AS MATERIALIZED (
    SELECT w.*, a.*, j.*, greatest(a.own_attempt, t.attempts + 1) AS attempt,
           CASE a.trigger WHEN 'retry' THEN t.missed ELSE 0 END AS missed,
           coalesce(t.previous_tick, CASE WHEN j.last_tick < a.tick THEN j.last_tick END) AS previous_tick,
           coalesce(t.previous_success, CASE WHEN j.last_success < a.tick THEN j.last_success END) AS previous_success,
           CASE WHEN j.removed OR a.trigger = 'after' AND (t.attempts > 0 OR j.cancelled) THEN 'over'
                -- A retry that somebody asked for is superseded by nothing.
                WHEN a.of_schedule AND a.requested_by = '' AND j.last_tick > a.tick
                THEN CASE WHEN a.counted_before OR j.last_success >= a.tick THEN 'over' ELSE 'superseded' END
                WHEN a.trigger = 'backfill' AND NOT a.again AND t.completed THEN 'passed'
                WHEN (NOT j.paused OR a.trigger = 'manual' OR a.trigger = 'retry' AND a.requested_by > '')
                     AND j.hosted AND NOT j.orphaned AND NOT t.running
                     -- A backfill leaves ticks to the schedule that the schedule has yet to claim.
                     AND (a.trigger <> 'backfill' OR j.next_tick IS NULL OR a.tick < j.next_tick
                          OR coalesce(a.tick <= j.last_tick, false))
                     -- A backfill beside the job's runs has ten at once: each waits for the tenth before it.
                     AND NOT (a.trigger = 'backfill' AND a.beside AND cron_tenth_runs(a.job_id, a.tick)) THEN 'runs'
           END AS verdict
    FROM unnest(:activation_ids::bigint[], :expected_ticks::timestamptz[], :runner_ids::text[], :deployments::text[],
                :next_ticks[?]::timestamptz[], :places[?]::text[]) WITH ORDINALITY
        AS w (activation_id, expected_tick, runner_id, deployment, goes_on, places, position)
    LEFT JOIN LATERAL (
        SELECT job_id, tick, run_at, trigger, payload, beside, again, of_schedule, counted_before, requested_by,
               attempt AS own_attempt
        FROM cron_activations WHERE id = w.activation_id AND tick = w.expected_tick AND run_at <= now()
          AND EXISTS (SELECT FROM controllers WHERE id = :controller_id AND lease_expires_at > now())
        FOR UPDATE SKIP LOCKED
    ) a ON true
    LEFT JOIN LATERAL (
        SELECT id, deployment_id, timeout_ms, executions, concurrency, next_tick, last_tick, last_success,
               removed_at IS NOT NULL AS removed, cancelled_at IS NOT NULL AS cancelled,
               orphaned_at IS NOT NULL AS orphaned, cron_paused(paused_at, paused_until) AS paused,
               CASE state WHEN 'idle' THEN greatest(concurrency, 1) - running ELSE 0 END AS room,
               (SELECT min_replicas > 0 AND key = w.deployment FROM deployments WHERE id = deployment_id) AS hosted,
               -- Under a limit: since when it waits. A level of priority is worth a second, and backfills come last.
               CASE WHEN limits IS NOT NULL THEN a.run_at - interval '1 second'
                    * (cron_priority(policy) - CASE a.trigger WHEN 'backfill' THEN 10 ELSE 0 END) END AS waits_from
        FROM cron_jobs WHERE id = a.job_id FOR NO KEY UPDATE SKIP LOCKED
    ) j ON true
    LEFT JOIN LATERAL cron_tick(a.job_id, a.tick) t ON true
), chosen AS MATERIALIZED ( -- as many of each job as it has room for, in the order asked
    SELECT *, CASE WHEN fits AND (waits_from IS NULL OR :placed::boolean) THEN nextval('cron_execution_ids') END
           AS execution_id
    FROM (
        SELECT *, verdict = 'runs' AND (beside OR count(*) FILTER (WHERE verdict = 'runs' AND NOT beside)
                                                  OVER (PARTITION BY job_id ORDER BY position) <= room) AS fits
        FROM judged
    ) r
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                                 hard_deadline, attempt, trigger, missed, previous_tick, previous_success, payload,
                                 holds_job, counted, of_schedule, counted_before, number, places)
    SELECT execution_id, job_id, deployment_id, tick, run_at, now(), :controller_id, runner_id,
           now() + (cron_timeout(timeout_ms, (SELECT timeout_ms FROM cron_defaults)) + :hard_grace_ms::bigint)
                   * interval '1 millisecond', attempt, trigger, missed,
           previous_tick, previous_success, payload, NOT beside AND concurrency = 0, NOT beside AND concurrency > 0,
           of_schedule, counted_before, executions + row_number() OVER (PARTITION BY job_id ORDER BY position),
           places::bigint[]
    FROM chosen WHERE execution_id IS NOT NULL ON CONFLICT (job_id, tick, attempt) DO NOTHING
    RETURNING id, job_id, holds_job, counted, number
), held AS (
    UPDATE cron_jobs j
    SET state = CASE WHEN i.holder IS NULL THEN j.state ELSE 'executing' END, running = j.running + i.counted,
        start_time = CASE WHEN i.holder IS NULL THEN j.start_time ELSE now() END,
        execution_id = coalesce(i.holder, j.execution_id), executions = i.number
    FROM (SELECT job_id, max(id) FILTER (WHERE holds_job) AS holder, count(*) FILTER (WHERE counted) AS counted,
                 max(number) AS number FROM inserted GROUP BY job_id) i WHERE j.id = i.job_id
), moved AS (
    UPDATE cron_activations a SET tick = c.goes_on, run_at = now(), attempt = 1
    FROM (SELECT * FROM chosen WHERE CASE WHEN execution_id IN (SELECT id FROM inserted) THEN goes_on IS NOT NULL END) c
    WHERE a.id = ANY (ARRAY[c.activation_id])
), gone AS (
    DELETE FROM cron_activations a
    USING (SELECT * FROM chosen WHERE CASE WHEN execution_id IN (SELECT id FROM inserted) THEN goes_on IS NULL END) c
    WHERE a.id = ANY (ARRAY[c.activation_id])
)
SELECT now() AS database_now, c.activation_id, i.id AS execution_id, a.id IS NULL AS gone,
       CASE WHEN i.id IS NOT NULL THEN c.goes_on WHEN a.trigger = 'backfill' THEN a.tick END AS next_tick,
       c.verdict, c.job_id, CASE WHEN c.fits THEN c.waits_from END AS waits_from
FROM chosen c FULL JOIN inserted i ON i.id = c.execution_id
LEFT JOIN LATERAL (SELECT id, trigger, tick FROM cron_activations WHERE id = ANY (ARRAY[c.activation_id])) a ON true
ORDER BY c.position;

-- name: DropActivations
-- Drops activations whose verdict says so, in the transaction of StartActivations. `:failed_job_ids` and `:failures`
-- are parallel arrays: ticks that count as ones without success. The next end without success may pause the job
-- (PauseFailing).
WITH gone AS (
    DELETE FROM cron_activations WHERE id = ANY(:activation_ids::bigint[])
)
UPDATE cron_jobs j SET failures = j.failures + f.failures
FROM unnest(:failed_job_ids::bigint[], :failures::integer[]) f (job_id, failures)
WHERE j.id = f.job_id;

-- name: AdvanceBackfills
-- Moves backfills past ticks that completed before ("passed"), in the transaction of StartActivations. Parallel arrays.
UPDATE cron_activations a SET tick = n.tick, run_at = now(), attempt = 1
FROM unnest(:activation_ids::bigint[], :next_ticks::timestamptz[]) n (id, tick)
WHERE a.id = ANY (ARRAY[n.id]);

-- name: CreateBackfill
INSERT INTO cron_activations (job_id, slot, attempt, run_at, requested_by, trigger, tick, until_tick, beside, again)
SELECT id, slot, 1, :run_at, :actor, 'backfill', :tick, :until_tick, :beside, :again
FROM cron_jobs WHERE id = :job_id
RETURNING id;

-- name: ListActivations
-- What waits for a job, the next one first. `:activation_id` null: of any id. `:after_run_at` null: from the first one.
-- `:limit` null: all.
SELECT a.id AS activation_id, a.tick, a.until_tick, a.attempt, a.trigger, a.run_at,
       coalesce(a.payload, '') AS activation_payload, a.beside, j.*
FROM cron_activations a
JOIN cron_scheduled_jobs j ON j.id = a.job_id
WHERE a.job_id = :job_id AND (:activation_id?::bigint IS NULL OR a.id = :activation_id)
  AND (:after_run_at?::timestamptz IS NULL OR (a.run_at, a.id) > (:after_run_at, :after_id))
ORDER BY a.run_at, a.id
LIMIT :limit?::bigint;

-- name: DeleteActivation
DELETE FROM cron_activations WHERE id = :activation_id AND job_id = :job_id
RETURNING id, trigger, tick, until_tick, attempt, coalesce(payload, '') AS payload;
