-- Ends that have more to write than their own two rows (EndCronJob). They take a transaction: EndAnyRun comes first,
-- and its answer says which of the others follow.
-- See cron_jobs.sql for how statements over many rows are written.

-- name: GetPartition
-- The name of the partition that has all executions of a span of ticks, if it may be named. Only those of today and of
-- yesterday are: retention takes neither away.
SELECT name FROM cron_partitions
WHERE from_at <= :from_at AND until_at >= :until_at AND has_table_privilege(name, 'SELECT, UPDATE')
  AND :from_at BETWEEN now() - interval '2 days' AND now() + interval '1 day';

-- name: EndAnyRun
-- Ends unfinished executions whose claim is the reported one, whatever else their end has to write. The statements
-- below write the rest in the same transaction, as the answer says for each row. The job's row must have the revision
-- by which the request was made. Else nothing is written for it (`stale`): the caller has to compute anew, from the
-- present row, which ticks passed during the run.
-- An execution that held its job frees it and sets its next tick (`decides`). There are two exceptions, where the row's
-- own next tick stays: several may run by now; or the next run would move to before the present span. But the row's own
-- next tick can't stay if it is the tick that ran. (Then a clock was set back, and an ended pause is in force again.)
-- One of several runs is no longer counted; the last of them sets the next tick if only one may run by now. A run
-- beside the job's own leaves the job as it is.
-- A cancelled run is neither a success nor a failure: somebody, or the job's own overlap policy, decided that it should
-- not go on. A tick counts once: not again if it had counted before it was retried by hand (`counted_before`).
-- All are parallel arrays, `:job_ids` ascending. `:claimed_ats`: the claims' start_time. `:anchors`: new anchors of the
-- schedules. `:missed`: how many of the passed ticks were missed. If the partition of the executions is known, the
-- caller names it (controller/store/ending.py). A row that is not found there (`elsewhere`) may be in another one.
-- Locks jobs, then executions, then limits, each in order of their ids; so does everything else that waits for them.
WITH held AS MATERIALIZED (
    SELECT r.*, j.*, j.own_revision = r.revision AS goes
    FROM unnest(:execution_ids::bigint[], :job_ids::bigint[], :claimed_ats::timestamptz[], :outcomes::text[],
                :started_ats::timestamptz[], :ended_ats::timestamptz[], :error_types[?]::text[],
                :error_messages[?]::text[], :outputs[?]::text[], :revisions::integer[], :next_ticks[?]::timestamptz[],
                :next_run_ats[?]::timestamptz[], :retry_ats[?]::timestamptz[], :anchors[?]::timestamptz[],
                :stacks[?]::text[], :cpu_us[?]::bigint[], :memory_peak_bytes[?]::bigint[],
                :memory_shared[?]::boolean[], :metrics[?]::text[], :missed::bigint[])
        WITH ORDINALITY
        AS r (execution_id, job_id, claimed_at, outcome, started_at, ended_at, error_type, error_message, output,
              revision, next_tick, next_execution, retry_at, anchor, stack, cpu_us, memory_peak_bytes, memory_shared,
              metrics, missed, position)
    LEFT JOIN LATERAL (
        SELECT revision AS own_revision, next_tick AS own_tick, next_execution AS own_execution, execution_id AS holder,
               last_tick, running, concurrency, NOT cron_full(state, running, concurrency) AS free, pause_after,
               cron_active(removed_at, cancelled_at, orphaned_at, paused_at, paused_until) AS active,
               CASE WHEN r.anchor IS NOT NULL THEN (
                    SELECT from_at FROM cron_schedules WHERE job_id = r.job_id AND until_at IS NULL) END AS opened_at,
               EXISTS (SELECT FROM cron_followers WHERE after = key) AS followed
        FROM cron_jobs WHERE id = r.job_id
        FOR NO KEY UPDATE
    ) j ON true
), ended AS ( -- locks as it goes, in order of the subquery: the only join that there can be here is a loop over that
    UPDATE cron_executions e
    SET outcome = h.outcome, started_at = greatest(e.claimed_at, least(h.started_at, now())),
        ended_at = greatest(e.claimed_at, least(h.started_at, now()), least(h.ended_at, now())),
        error_type = h.error_type, error_message = h.error_message, output = h.output,
        -- No retry if somebody wanted it cancelled, however it ended, or if a later tick has superseded it.
        retry_at = CASE WHEN e.cancel_requested_at IS NULL AND (e.of_schedule AND h.last_tick > e.tick) IS NOT TRUE
                        THEN h.retry_at END,
        stack = h.stack, cpu_us = h.cpu_us, memory_peak_bytes = h.memory_peak_bytes, memory_shared = h.memory_shared,
        metrics = h.metrics
    FROM (SELECT * FROM held WHERE goes ORDER BY execution_id) h
    WHERE e.id = ANY (ARRAY[h.execution_id]) AND (e.job_id = h.job_id) IS TRUE AND e.claimed_at = h.claimed_at
          AND e.ended_at IS NULL
    RETURNING h.position, h.job_id, e.tick, e.run_at, e.started_at, e.ended_at, e.outcome, e.of_schedule,
              e.counted_before, e.counted, e.holds_job AND h.holder = e.id AS holds,
              e.retry_at IS NOT NULL AND h.active AS retried,
              CASE WHEN e.counted THEN h.running = 1 ELSE e.holds_job AND h.holder = e.id END AND h.concurrency = 0
                  AND (h.active OR h.own_tick = e.tick) AND coalesce(h.next_tick > h.opened_at, true) AS decides,
              h.next_tick, h.next_execution, h.missed, e.places
), freed AS (
    UPDATE cron_jobs j
    SET state = 'idle', start_time = NULL, execution_id = NULL, running = greatest(j.running - s.leaving, 0),
        last_run_at = s.run_at, last_started_at = s.started_at, last_ended_at = s.ended_at, last_outcome = s.outcome,
        last_success = greatest(j.last_success, s.succeeded),
        failures = CASE WHEN s.succeeded IS NULL THEN j.failures ELSE 0 END + s.failed,
        missed = j.missed + CASE WHEN s.decides THEN s.missed ELSE 0 END,
        next_tick = CASE WHEN s.decides THEN s.next_tick ELSE j.next_tick END,
        next_execution = CASE WHEN s.decides THEN s.next_execution ELSE j.next_execution END
    FROM ( -- one row for each job: of several that ended, the latest says how it stands
        SELECT DISTINCT ON (job_id) *, count(*) FILTER (WHERE counted) OVER of_job AS leaving,
               count(*) FILTER (WHERE failure AND (succeeded IS NULL OR tick > succeeded)) OVER of_job AS failed
        FROM ( -- only a tick's last attempt tells whether the tick was a success
            SELECT *, of_schedule AND NOT retried AND NOT counted_before AND outcome NOT IN ('completed', 'cancelled')
                      AS failure,
                   max(tick) FILTER (WHERE of_schedule AND outcome = 'completed') OVER (PARTITION BY job_id)
                      AS succeeded
            FROM ended WHERE holds OR counted
        ) e
        WINDOW of_job AS (PARTITION BY job_id)
        ORDER BY job_id, ended_at DESC
    ) s
    WHERE j.id = s.job_id
    RETURNING j.id, j.next_tick, j.next_execution, NOT cron_full(j.state, j.running, j.concurrency) AS free
)
SELECT h.execution_id, h.job_id, e.position IS NOT NULL AS ended,
       CASE WHEN f.id IS NULL THEN CASE WHEN h.free THEN h.own_tick END WHEN f.free THEN f.next_tick END AS next_tick,
       CASE WHEN f.id IS NULL THEN CASE WHEN h.free THEN h.own_execution END WHEN f.free THEN f.next_execution END
           AS next_execution,
       coalesce(h.own_revision, 0) AS revision, (h.own_revision <> h.revision) IS TRUE AS stale,
       (h.own_revision = h.revision AND e.position IS NULL) IS TRUE AS elsewhere, e.decides, e.retried, e.tick,
       e.of_schedule AND e.outcome <> 'completed' AND h.pause_after > 0 AND (e.holds OR e.counted) AS troubled,
       h.followed AND e.outcome = 'completed' AS followed, e.places
FROM held h
FULL JOIN ended e ON e.position = h.position
FULL JOIN freed f ON f.id = h.job_id
ORDER BY h.position;

-- name: AddRetries
-- Adds retries of failed executions, whatever the schedule is by now. Parallel arrays; `:ticks`: name the partitions of
-- the executions.
INSERT INTO cron_activations (job_id, slot, trigger, tick, attempt, run_at, payload, beside, of_schedule,
                              counted_before)
SELECT e.job_id, j.slot, 'retry', e.tick, e.attempt + 1, e.retry_at, e.payload, NOT (e.holds_job OR e.counted),
       e.of_schedule, e.counted_before
FROM unnest(:execution_ids::bigint[], :ticks::timestamptz[]) r (execution_id, tick)
CROSS JOIN LATERAL (SELECT * FROM cron_executions WHERE id = r.execution_id AND tick = r.tick OFFSET 0) e
CROSS JOIN LATERAL (SELECT slot FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
RETURNING id, job_id, tick;

-- name: FollowTicks
-- docs/decisions/0046: a table, not a flag on the job that is followed
-- Adds the activations of followers, for ticks that have completed: trigger "after". A follower runs once for each
-- tick.
-- Parallel arrays. Answers with the activations of each execution.
WITH following AS MATERIALIZED (
    SELECT nextval('cron_activation_ids') AS id, f.job_id, f.slot, e.tick, e.execution_id
    FROM unnest(:execution_ids::bigint[], :job_ids::bigint[], :ticks::timestamptz[]) e (execution_id, job_id, tick)
    CROSS JOIN LATERAL (SELECT key FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
    CROSS JOIN LATERAL (SELECT job_id FROM cron_followers WHERE after = j.key OFFSET 0) c
    CROSS JOIN LATERAL (
        SELECT id AS job_id, slot, cancelled_at, orphaned_at FROM cron_jobs WHERE id = c.job_id OFFSET 0
    ) f
    WHERE f.cancelled_at IS NULL AND f.orphaned_at IS NULL AND cron_attempts(f.job_id, e.tick) = 0
), followed AS (
    INSERT INTO cron_activations (id, job_id, slot, trigger, tick, attempt, run_at, of_schedule)
    SELECT id, job_id, slot, 'after', tick, 1, now(), true FROM following
    ON CONFLICT (job_id, tick) WHERE trigger = 'after' DO NOTHING
)
SELECT execution_id, array_agg(id) AS activation_ids FROM following GROUP BY execution_id;

-- name: MoveAnchors
-- The schedules count from these anchors now; the former spans end at `:closes_ats` (null: they go on). Ticks that were
-- decided ahead belong to the span that ends, and stay decided. Parallel arrays.
WITH moved AS (
    UPDATE cron_jobs j
    SET anchor = m.anchor, revision = j.revision + 1,
        ahead_from = CASE WHEN m.closes_at IS NULL THEN j.ahead_from END,
        ahead_until = CASE WHEN m.closes_at IS NULL THEN j.ahead_until END
    FROM unnest(:job_ids::bigint[], :anchors::timestamptz[], :closes_ats[?]::timestamptz[])
        m (job_id, anchor, closes_at)
    WHERE j.id = m.job_id
    RETURNING j.id, j.revision, j.anchor, m.closes_at
), closed AS (
    UPDATE cron_schedules c SET until_at = greatest(c.from_at, m.closes_at)
    FROM moved m
    WHERE m.closes_at IS NOT NULL AND c.job_id = m.id AND c.until_at IS NULL
    RETURNING c.job_id, m.revision, c.schedule, m.anchor, c.policy, c.until_at
), opened AS (
    INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at) SELECT * FROM closed
)
SELECT id, revision FROM moved;

-- name: PauseFailing
-- Pauses those of the jobs that have had no success for too long: an end without success has just been counted, or a
-- tick whose retry was superseded before it (StartActivations).
UPDATE cron_jobs
SET next_tick = NULL, next_execution = NULL, revision = revision + 1, paused_at = now(), paused_tick = next_tick,
    paused_until = NULL, paused_by = 'cronring', paused_note = 'ticks in a row without success: ' || failures
WHERE id = ANY(:job_ids::bigint[]) AND pause_after BETWEEN 1 AND failures
  AND cron_active(removed_at, cancelled_at, orphaned_at, paused_at, paused_until)
  AND (next_tick IS NOT NULL OR schedule = 'manual')
RETURNING id, revision;
