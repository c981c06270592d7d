-- What few ends have to write beside their own two rows (EndCronJob): in its transaction, for those that it names.
-- Their jobs are locked. See cron_jobs.sql for how statements over many rows are written.

-- name: GetPartition
-- The name of the partition that has all executions of a span of ticks, if it may be named. Only those of today and of
-- yesterday are: retention takes neither away.
SELECT name FROM cron_partitions
WHERE from_at <= :from_at AND until_at >= :until_at AND has_table_privilege(name, 'SELECT, UPDATE')
  AND :from_at BETWEEN now() - interval '2 days' AND now() + interval '1 day';

-- name: AddRetries
-- What failed waits beside the schedule to be tried again, whatever the schedule is by now. Parallel arrays; `:ticks`:
-- where the executions' rows are.
INSERT INTO cron_activations (job_id, slot, trigger, tick, attempt, run_at, payload, beside, of_schedule, settled)
SELECT e.job_id, j.slot, 'retry', e.tick, e.attempt + 1, e.retry_at, e.payload, NOT (e.holds_job OR e.counted),
       e.of_schedule, e.settled
FROM unnest(:execution_ids::bigint[], :ticks::timestamptz[]) r (execution_id, tick)
CROSS JOIN LATERAL (SELECT * FROM cron_executions WHERE id = r.execution_id AND tick = r.tick OFFSET 0) e
CROSS JOIN LATERAL (SELECT slot FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
RETURNING id, job_id, tick;

-- name: FollowTicks
-- docs/decisions/0046: a table, not a flag on the job that is followed
-- Of ticks that have completed, the activations of the jobs that follow: trigger "after". Whatever is followed runs
-- once for a tick. Parallel arrays. Answers with those of each execution.
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
-- The schedules count from these anchors now; the books of the ones before end at `:closes_ats` (null: they go on).
-- Ticks decided ahead are of the books that end here: nothing takes them back. Parallel arrays.
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
