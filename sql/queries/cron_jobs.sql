-- docs/decisions/0002: why
-- How statements over many rows are written here. They are planned once for a connection, for arrays of any length and
-- tables of any size (controller/store/pool.py says how). So their shape decides how they run:
--
-- - LATERAL with a row lock is one index probe for each wanted row. FULL JOIN, where one side holds the other's rows
--   anyway, can only be a hash or a merge join, never a loop over both.
-- - A probe by id must not imply the predicate of a partial index. While the table is empty, or ANALYZE saw nothing in
--   that index, it looks as cheap as the primary key. A plan that reads all of it for every row would then stay. So
--   statements say `ended_at IS NULL` instead of `outcome IS NULL`, and a removed job has no next tick.
-- - A comparison implies that its column is not null: hence coalesce(next_execution, 'infinity') in claims.
-- - A join that updates cron_executions must not be a merge or hash join: `= ANY (ARRAY[...])` allows neither.
-- - A partition that ANALYZE found empty seems to cost nothing, by any index. So a statement that names a tick for the
--   sake of its partition also names job and id: then both unique indexes find the row at once. (By the tick alone, 500
--   ends of one tick took three seconds.)
-- - A statement that locks or changes rows must not prune partitions at planning, nor after it has locked a row:
--   PostgreSQL 18 crashes then, or finds nothing (docs/decisions/0001; tests/plans/test_pruning.py reads all plans). So
--   bounds are (SELECT $1::timestamptz). What must be known of a tick beside a lock, a function of ours looks up.

-- name: GetCronJobs
-- PostgreSQL's now, and the jobs of the slots that are due before it plus the window, executing ones among them.
-- One row of nulls when there are none.
SELECT n.database_now, due.*
FROM (SELECT now() AS database_now) n
LEFT JOIN (
    SELECT * FROM cron_scheduled_jobs
    WHERE slot = ANY(:slots::integer[])
      AND next_execution <= now() + :window_ms::bigint * interval '1 millisecond'
) due ON true;

-- name: GetOverdueJobs
-- As GetCronJobs, jobs that may run (once more) and are overdue by `:delay_ms`, in order of ids. Without OFFSET 0, a
-- plan might read the primary key until it has found enough.
SELECT n.database_now, due.*
FROM (SELECT now() AS database_now) n
LEFT JOIN (
    SELECT found.*
    FROM (
        SELECT * FROM cron_scheduled_jobs
        WHERE slot = ANY(:slots::integer[])
          AND next_execution <= now() - :delay_ms::bigint * interval '1 millisecond' AND NOT executing AND active
        OFFSET 0
    ) found
    ORDER BY found.id
    LIMIT :limit::bigint
) due ON true
ORDER BY due.id;

-- name: StartCronJobs
-- docs/decisions/0068: what every run needs, and no more.
-- Claims, in one statement, those of the wanted jobs that may run (once more) and are due in PostgreSQL's time. The
-- caller's lease must be valid. It inserts their executions. Answers with every attempted row.
-- A job of which several may run at once stays idle: the run is counted, and the job moves on to its next tick here. A
-- claim by an older revision may not know that, and would leave the job without a next tick.
-- All but `:controller_id`, `:hard_grace_ms` (after the timeout) and `:placed` are parallel arrays, `:job_ids`
-- ascending. The caller expects `:expected_ticks` in the rows, and runs `:ticks`. `:deployments` are keys of what the
-- runners host.
-- A job under a limit is left as it is. The answer says since when it waits; a level of priority is worth a second. The
-- caller asks again in a transaction, which locks it, finds places for it, and claims it then (`:placed`). `:places`
-- are arrays as texts.
-- A claim that was computed from a policy must be of the row's own revision. Without a policy, any revision will do if
-- the claim runs the expected tick.
-- SKIP LOCKED: a row that another controller is just claiming is not ours, and waiting for it would only make us late.
-- No claim waits for a job, so claims don't deadlock. What the answer says of a row that was not claimed is as old as
-- the statement.
WITH open AS MATERIALIZED (
    SELECT w.*, j.*, CASE WHEN j.id IS NOT NULL AND (j.waits_from IS NULL OR :placed::boolean)
                          THEN nextval('cron_execution_ids') END AS execution_id
    FROM unnest(:job_ids::bigint[], :expected_ticks::timestamptz[], :ticks::timestamptz[], :run_ats::timestamptz[],
                :runner_ids::text[], :deployments::text[], :triggers::text[], :missed::bigint[],
                :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[], :revisions::integer[],
                :places[?]::text[])
        AS w (job_id, expected_tick, run_tick, run_at, runner_id, deployment, trigger, missed, next_tick,
              next_execution, revision, places)
    LEFT JOIN LATERAL (
        SELECT id, deployment_id, timeout_ms, concurrency, running, next_tick AS own_tick,
               next_execution AS own_execution, revision AS own_revision, missed AS missed_before,
               last_tick AS previous_tick, last_success AS previous_success, executions + 1 AS number,
               CASE WHEN limits IS NOT NULL
                    THEN next_execution - cron_priority(policy) * interval '1 second' END AS waits_from
        FROM cron_jobs
        WHERE id = w.job_id AND NOT cron_full(state, running, concurrency) AND next_tick = w.expected_tick
          AND coalesce(next_execution, 'infinity') <= now() AND w.run_at <= now()
          AND (last_tick IS NULL OR last_tick < w.run_tick)
          AND (revision = w.revision OR policy = '' AND w.run_tick = w.expected_tick)
          AND EXISTS (SELECT FROM controllers WHERE id = :controller_id AND lease_expires_at > now())
          AND (SELECT min_replicas > 0 AND key = w.deployment FROM deployments WHERE id = deployment_id)
        FOR NO KEY UPDATE SKIP LOCKED
    ) j ON true
), claimed AS (
    UPDATE cron_jobs j
    SET last_tick = o.run_tick, missed = 0, executions = o.number,
        state = CASE WHEN j.concurrency = 0 THEN 'executing' ELSE 'idle' END,
        start_time = CASE WHEN j.concurrency = 0 THEN now() END,
        execution_id = CASE WHEN j.concurrency = 0 THEN o.execution_id END,
        running = j.running + (j.concurrency > 0)::integer,
        next_tick = CASE WHEN j.concurrency = 0 THEN j.next_tick ELSE o.next_tick END,
        next_execution = CASE WHEN j.concurrency = 0 THEN j.next_execution ELSE o.next_execution END
    FROM (SELECT * FROM open WHERE execution_id IS NOT NULL) o
    WHERE j.id = o.id
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                                 hard_deadline, trigger, missed, previous_tick, previous_success, holds_job, counted,
                                 number, places)
    SELECT execution_id, id, deployment_id, run_tick, run_at, now(), :controller_id, runner_id,
           now() + (cron_timeout(timeout_ms, (SELECT timeout_ms FROM cron_defaults)) + :hard_grace_ms::bigint)
                   * interval '1 millisecond', trigger, missed_before + missed,
           previous_tick, previous_success, concurrency = 0, concurrency > 0, number, places::bigint[]
    FROM open WHERE execution_id IS NOT NULL
)
SELECT o.job_id, o.execution_id IS NOT NULL AS updated,
       o.execution_id IS NOT NULL OR coalesce(d.min_replicas > 0, false) AS active,
       o.execution_id, now() AS claimed_at,
       CASE WHEN o.execution_id IS NOT NULL THEN o.running + 1 >= o.concurrency
            ELSE coalesce(cron_full(j.state, j.running, j.concurrency), false) END AS executing,
       CASE WHEN o.execution_id IS NULL THEN j.next_tick WHEN o.concurrency = 0 THEN o.own_tick ELSE o.next_tick END
           AS next_tick,
       CASE WHEN o.execution_id IS NULL THEN j.next_execution WHEN o.concurrency = 0 THEN o.own_execution
            ELSE o.next_execution END AS next_execution,
       coalesce(o.own_revision, j.revision, 0) AS revision, o.previous_tick, o.previous_success,
       o.missed_before + o.missed AS missed, NULL::bigint AS full_limit, o.waits_from
FROM open o
-- Looked up only for rows that were not claimed: a probe for null costs nothing.
LEFT JOIN cron_jobs j ON j.id = CASE WHEN o.execution_id IS NULL THEN o.job_id END
LEFT JOIN deployments d ON d.id = j.deployment_id;

-- name: EndCronJob
-- docs/decisions/0118: what every run needs, and no more.
-- Ends, in one statement, executions that have completed and hold their jobs, if nothing else is to be written. The
-- job's row tells whether that is so; it must have the revision by which the request was made. Answers with the ids of
-- those that it ended. The others stay as they are: EndAnyRun ends them, in a transaction.
-- The job comes first: the update locks its row. An execution that holds its job is unfinished, so the job's locked row
-- proves that it has not ended yet.
-- Jobs are changed in the order of the arrays: connections have no joins but loops (controller/store/pool.py).
-- The execution's columns in the conditions never change. They are checked first, so that no job is freed whose
-- execution is not in this partition.
-- Locks jobs, then executions, each in order of their ids; so does everything else that waits for them.
-- All are parallel arrays, `:job_ids` ascending; a job occurs once. `:claimed_ats`: the claims' start_time.
-- If the partition of the executions is known, the caller names it instead of cron_executions
-- (controller/store/ending.py).
WITH freed AS (
    UPDATE cron_jobs j
    SET state = 'idle', start_time = NULL, execution_id = NULL, last_run_at = e.run_at,
        last_started_at = greatest(r.claimed_at, least(r.started_at, now())),
        last_ended_at = greatest(r.claimed_at, least(r.started_at, now()), least(r.ended_at, now())),
        last_outcome = 'completed', last_success = greatest(j.last_success, r.tick), failures = 0,
        next_tick = r.next_tick, next_execution = r.next_execution
    FROM unnest(:execution_ids::bigint[], :job_ids::bigint[], :claimed_ats::timestamptz[], :started_ats::timestamptz[],
                :ended_ats::timestamptz[], :outputs[?]::text[], :revisions::integer[], :ticks::timestamptz[],
                :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[], :cpu_us[?]::bigint[],
                :memory_peak_bytes[?]::bigint[], :memory_shared[?]::boolean[], :metrics[?]::text[])
        AS r (execution_id, job_id, claimed_at, started_at, ended_at, output, revision, tick, next_tick, next_execution,
              cpu_us, memory_peak_bytes, memory_shared, metrics)
    CROSS JOIN LATERAL (
        SELECT e.run_at FROM cron_executions e
        WHERE e.id = r.execution_id AND (e.tick = r.tick) IS TRUE AND e.claimed_at = r.claimed_at
              AND e.ended_at IS NULL AND e.of_schedule
        OFFSET 0
    ) e
    WHERE j.id = r.job_id AND j.execution_id = r.execution_id AND j.revision = r.revision AND j.concurrency = 0
          AND j.running = 0 AND j.limits IS NULL
          AND cron_active(j.removed_at, j.cancelled_at, j.orphaned_at, j.paused_at, j.paused_until)
          AND NOT ((SELECT EXISTS (SELECT FROM cron_followers)) -- once: mostly there are none
                   AND EXISTS (SELECT FROM cron_followers WHERE after = j.key))
    RETURNING r.execution_id, r.tick, j.last_started_at, j.last_ended_at, r.output, r.cpu_us, r.memory_peak_bytes,
              r.memory_shared, r.metrics
)
UPDATE cron_executions e
SET outcome = 'completed', started_at = f.last_started_at, ended_at = f.last_ended_at, output = f.output,
    cpu_us = f.cpu_us, memory_peak_bytes = f.memory_peak_bytes, memory_shared = f.memory_shared, metrics = f.metrics
FROM (SELECT * FROM freed ORDER BY execution_id) f -- locks as it goes, in this order: no join but a loop can be here
WHERE e.id = ANY (ARRAY[f.execution_id]) AND (e.tick = f.tick) IS TRUE -- so written, no index of ticks serves
RETURNING e.id;

-- name: SkipTicks
-- Records that due ticks of jobs are not run, and moves the jobs to their next tick, if the caller's lease is valid.
-- Answers with the rows of all attempted jobs, and whether this moved them. What it moved has the next tick that was
-- asked for; else the rows are as old as the statement.
-- A range that continues the job's latest one, for the same reason, replaces it. So a job that is outside its window
-- for a night has one range. A range continues another if nothing ran in between and the span is the same, as books
-- have no holes. (It is a new row with a new id, as watchers go by ids.)
-- If several may run, ticks go on beside a run that holds the job from the time when only one might. If one of them has
-- ended in the meantime, there is no overlap to record any more. If only one may run, the end of its run decides about
-- ticks that pass meanwhile. So does the end of the last of several that began when several might.
-- All but `:controller_id` are parallel arrays, `:job_ids` ascending. The caller expects `:expected_ticks` in the rows.
-- `:reasons` to `:tick_counts` are each job's first range, `:further_...` the other ones.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest(:job_ids::bigint[], :expected_ticks::timestamptz[], :revisions::integer[],
                         :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[], :reasons::text[],
                         :first_ticks::timestamptz[], :last_ticks::timestamptz[], :tick_counts::bigint[],
                         :missed::bigint[]) WITH ORDINALITY
        AS w (job_id, expected_tick, revision, next_tick, next_execution, reason, first_tick, last_tick, ticks,
              missed, position)
), idle AS (
    SELECT j.id, w.next_tick, w.next_execution, w.missed, w.reason, l.id AS latest_id, w.last_tick,
           coalesce(l.first_tick, w.first_tick) AS first_tick, coalesce(l.ticks, 0) + w.ticks AS ticks
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT id, last_tick FROM cron_jobs
        WHERE id = w.job_id AND next_tick = w.expected_tick AND revision = w.revision
          AND CASE WHEN concurrency = 0 THEN NOT cron_full(state, running, concurrency)
                   ELSE w.reason <> 'overlap' OR cron_full(state, running, concurrency) END
          AND EXISTS (SELECT FROM controllers WHERE id = :controller_id AND lease_expires_at > now())
        FOR NO KEY UPDATE SKIP LOCKED
    ) j
    LEFT JOIN LATERAL (
        SELECT s.id, s.reason, s.first_tick, s.last_tick, s.ticks FROM cron_skips s
        WHERE s.job_id = j.id ORDER BY s.first_tick DESC LIMIT 1
    ) l ON l.reason = w.reason AND l.last_tick < w.first_tick AND (j.last_tick IS NULL OR j.last_tick < l.last_tick)
       AND l.first_tick > (SELECT c.from_at FROM cron_schedules c WHERE c.job_id = j.id AND c.until_at IS NULL)
), moved AS (
    UPDATE cron_jobs j
    SET next_tick = i.next_tick, next_execution = i.next_execution, missed = j.missed + i.missed
    FROM idle i
    WHERE j.id = i.id
    RETURNING j.id, i.reason, i.first_tick, i.last_tick, i.ticks, i.latest_id
), replaced AS (
    DELETE FROM cron_skips s USING (SELECT latest_id FROM moved WHERE latest_id IS NOT NULL) m WHERE s.id = m.latest_id
), skips AS (
    INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
    SELECT id, reason, first_tick, last_tick, ticks, :controller_id FROM moved
    UNION ALL
    SELECT s.*, :controller_id
    FROM unnest(:further_job_ids::bigint[], :further_reasons::text[], :further_first_ticks::timestamptz[],
                :further_last_ticks::timestamptz[], :further_tick_counts::bigint[])
        AS s (job_id, reason, first_tick, last_tick, ticks)
    WHERE CASE WHEN s.job_id IN (SELECT id FROM moved) THEN true END
)
SELECT j.*, a.moved
FROM (
    SELECT w.job_id, w.position, m.id IS NOT NULL AS moved
    FROM wanted w FULL JOIN moved m ON m.id = w.job_id
) a
CROSS JOIN LATERAL (SELECT * FROM cron_scheduled_jobs WHERE id = a.job_id OFFSET 0) j
ORDER BY a.position;

-- name: LockCronJobs
-- The jobs of a module that are not removed, locked in order of their ids until the transaction ends.
-- Every key of the module lies between `:low_key` and `:high_key`.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick, policy, verb, source,
       paused_at IS NOT NULL AND coalesce(paused_until > greatest(clock_timestamp(), last_tick), true) AS paused,
       paused_tick,
       (SELECT coalesce(s.until_at, s.from_at) FROM cron_schedules s WHERE s.job_id = cron_jobs.id
        ORDER BY s.revision DESC LIMIT 1) AS opened_at,
       cancelled_at IS NOT NULL AS cancelled, paused_until, ahead_from, ahead_until,
       orphaned_at IS NOT NULL AS orphaned, orphaned_tick, next_execution
FROM cron_jobs
WHERE key > '' AND key > :low_key AND key < :high_key AND namespace = :namespace AND module = :module
  AND removed_at IS NULL
ORDER BY id
FOR NO KEY UPDATE;

-- name: GetModuleJobs
-- The jobs of a module that are not removed, by key, those due by `:due_until` or all. Others as in LockCronJobs.
SELECT * FROM cron_scheduled_jobs
WHERE key > '' AND key > :low_key AND key < :high_key AND namespace = :namespace AND module = :module
  AND removed_at IS NULL AND (:due_until?::timestamptz IS NULL OR next_execution <= :due_until)
ORDER BY key;

-- name: CreateCronJobs
-- Inserts jobs, and opens the books of their schedules.
-- From `:keys` on, parallel arrays. `:concurrencies`: how many may run at once (0: one). `:pause_afters`: failures in a
-- row that pause it (0: none do).
WITH created AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, policy, concurrency, pause_after, payload,
                           created_at)
    SELECT a.key, :namespace, :module, a.verb, a.slot, :deployment_id, a.schedule, a.anchor, a.timeout_ms,
           a.on_disconnect, a.next_tick, a.next_execution, a.policy, a.concurrency, a.pause_after, a.payload, :now
    FROM unnest(:keys::text[], :verbs::text[], :slots::integer[], :schedules::text[], :anchors::timestamptz[],
                :timeouts_ms::bigint[], :on_disconnects::text[], :next_ticks[?]::timestamptz[],
                :next_run_ats[?]::timestamptz[], :policies::text[], :concurrencies::integer[], :pause_afters::integer[],
                :payloads::text[])
        AS a (key, verb, slot, schedule, anchor, timeout_ms, on_disconnect, next_tick, next_execution, policy,
              concurrency, pause_after, payload)
    RETURNING id, revision, schedule, anchor, policy
), following AS (
    INSERT INTO cron_followers (job_id, after) SELECT id, cron_after(policy) FROM created
    WHERE cron_after(policy) IS NOT NULL
)
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
SELECT id, revision, schedule, anchor, policy, :now FROM created;

-- name: CarryCronJobsOver
-- Moves jobs to a new deployment. Where the schedule or the policy changes, the revision grows, and new books open.
-- All but `:deployment_id` are parallel arrays. Timeouts, `:on_disconnects` and `:payloads` that are null stay as they
-- are. `:closes_ats`: where old books end. These, and all from `:schedules` on, count only where `:rescheduled`. Those
-- of policies are as in CreateCronJobs. `:ahead_froms` and `:ahead_untils`: the first and the last tick decided ahead.
WITH carried AS (
    UPDATE cron_jobs j
    SET deployment_id = :deployment_id, timeout_ms = coalesce(c.timeout_ms, j.timeout_ms),
        on_disconnect = coalesce(c.on_disconnect, j.on_disconnect), payload = coalesce(c.payload, j.payload),
        revision = j.revision + c.rescheduled::integer,
        schedule = CASE WHEN c.rescheduled THEN c.schedule ELSE j.schedule END,
        anchor = CASE WHEN c.rescheduled THEN c.anchor ELSE j.anchor END,
        next_tick = CASE WHEN c.rescheduled THEN c.next_tick ELSE j.next_tick END,
        next_execution = CASE WHEN c.rescheduled THEN c.next_execution ELSE j.next_execution END,
        policy = CASE WHEN c.rescheduled THEN c.policy ELSE j.policy END,
        concurrency = CASE WHEN c.rescheduled THEN c.concurrency ELSE j.concurrency END,
        pause_after = CASE WHEN c.rescheduled THEN c.pause_after ELSE j.pause_after END,
        paused_tick = CASE WHEN c.rescheduled THEN c.paused_tick ELSE j.paused_tick END,
        ahead_from = CASE WHEN c.rescheduled THEN c.ahead_from ELSE j.ahead_from END,
        ahead_until = CASE WHEN c.rescheduled THEN c.ahead_until ELSE j.ahead_until END,
        orphaned_tick = CASE WHEN c.rescheduled THEN c.orphaned_tick ELSE j.orphaned_tick END
    FROM unnest(:job_ids::bigint[], :timeouts_ms[?]::bigint[], :on_disconnects[?]::text[], :payloads[?]::text[],
                :rescheduled::boolean[], :schedules::text[], :anchors::timestamptz[], :next_ticks[?]::timestamptz[],
                :next_run_ats[?]::timestamptz[], :policies::text[], :concurrencies::integer[], :pause_afters::integer[],
                :paused_ticks[?]::timestamptz[], :ahead_froms[?]::timestamptz[], :ahead_untils[?]::timestamptz[],
                :orphaned_ticks[?]::timestamptz[], :closes_ats[?]::timestamptz[])
        AS c (job_id, timeout_ms, on_disconnect, payload, rescheduled, schedule, anchor, next_tick, next_execution,
              policy, concurrency, pause_after, paused_tick, ahead_from, ahead_until, orphaned_tick, closes_at)
    WHERE j.id = c.job_id
    RETURNING j.id, j.revision, j.schedule, j.anchor, j.policy, c.rescheduled, c.closes_at
), closed AS (
    UPDATE cron_schedules s SET until_at = greatest(s.from_at, c.closes_at)
    FROM carried c
    WHERE c.rescheduled AND s.job_id = c.id AND s.until_at IS NULL
    RETURNING c.id, c.revision, c.schedule, c.anchor, c.policy, s.until_at
), following AS (
    INSERT INTO cron_followers (job_id, after) SELECT id, cron_after(policy) FROM carried
    WHERE rescheduled AND cron_after(policy) IS NOT NULL
    ON CONFLICT (job_id) DO UPDATE SET after = excluded.after
), unfollowing AS (
    DELETE FROM cron_followers f USING carried c
    WHERE c.rescheduled AND f.job_id = c.id AND cron_after(c.policy) IS NULL
)
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at) SELECT * FROM closed;

-- name: RemoveCronJobs
-- Removes jobs, closes their books, and forgets what waits beside their schedules. What runs finishes.
-- `:closes_ats`: where each one's books end.
WITH removed AS (
    UPDATE cron_jobs j
    SET removed_at = :now, revision = revision + 1, next_tick = NULL, next_execution = NULL, orphaned_tick = NULL
    FROM unnest(:job_ids::bigint[], :closes_ats::timestamptz[]) AS r (job_id, closes_at)
    WHERE j.id = r.job_id
    RETURNING j.id, r.closes_at
), forgotten AS (
    DELETE FROM cron_activations a USING removed WHERE a.job_id = ANY (ARRAY[removed.id])
), unfollowing AS (
    DELETE FROM cron_followers f USING removed WHERE f.job_id = removed.id
), unlisted AS (
    DELETE FROM cron_interval_jobs i USING removed WHERE i.job_id = removed.id
)
UPDATE cron_schedules s SET until_at = greatest(s.from_at, removed.closes_at)
FROM removed
WHERE s.job_id = removed.id AND s.until_at IS NULL;

-- name: OrphanCronJobs
-- Orphans jobs that lose their verb: their next tick moves to orphaned_tick, where it is not claimed. Present runs
-- finish.
-- `:orphaned_ticks`: the first tick of each that nobody has decided.
UPDATE cron_jobs j
SET orphaned_at = :now, orphaned_tick = o.tick, next_tick = NULL, next_execution = NULL, revision = j.revision + 1,
    changed_at = :now
FROM unnest(:job_ids::bigint[], :orphaned_ticks[?]::timestamptz[]) AS o (job_id, tick)
WHERE j.id = o.job_id;

-- name: BringCronJobsBack
-- Brings orphaned jobs back whose verb a deployment has again.
UPDATE cron_jobs j
SET orphaned_at = NULL, orphaned_tick = NULL, deployment_id = :deployment_id, next_tick = b.next_tick,
    next_execution = b.next_execution, revision = j.revision + 1, changed_at = :now
FROM unnest(:job_ids::bigint[], :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[])
    AS b (job_id, next_tick, next_execution)
WHERE j.id = b.job_id;

-- name: AddSkips
-- Parallel arrays. `:controller_id`: who decided.
INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
SELECT s.job_id, s.reason, s.first_tick, s.last_tick, s.ticks, :controller_id
FROM unnest(:job_ids::bigint[], :reasons::text[], :first_ticks::timestamptz[], :last_ticks::timestamptz[],
            :tick_counts::bigint[])
    AS s (job_id, reason, first_tick, last_tick, ticks);
