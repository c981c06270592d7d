-- Looking after history. Run by one controller at a time, on a connection of its own that may read whole tables.

-- name: TryLockMaintenance
SELECT pg_try_advisory_lock(hashtext('cronring maintenance'));

-- name: AddPartition
-- Whether there was one to make. $1 how far ahead there are to be partitions (ms).
SELECT cron_add_partition(now() + $1::bigint * interval '1 millisecond');

-- name: DropGone
SELECT cron_drop_gone();

-- name: GetBoundary
-- The end of the newest partition that is wholly older than $1 ms; null if there is none beside cron_executions_kept.
SELECT max(until_at) FROM cron_partitions
WHERE until_at <= now() - $1::bigint * interval '1 millisecond' AND from_at > '-infinity';

-- name: OpenClosings
CREATE TEMPORARY TABLE IF NOT EXISTS cron_closings (
    job_id         bigint PRIMARY KEY,
    closed_at      timestamptz NOT NULL,
    until_at       timestamptz NOT NULL,
    executed       bigint NOT NULL DEFAULT 0,
    caught_up      bigint NOT NULL DEFAULT 0,
    late           bigint NOT NULL DEFAULT 0,
    executions     bigint NOT NULL DEFAULT 0,
    outcomes       jsonb NOT NULL DEFAULT '{}',
    triggers       jsonb NOT NULL DEFAULT '{}'
);

-- name: ClearClosings
TRUNCATE cron_closings;

-- name: FillClosings
-- The jobs whose books close up to the boundary $1, or up to what they have decided: those that lose rows (all but their
-- newest $2), or have skips or schedules of that time. Not one that has something unfinished there.
INSERT INTO cron_closings (job_id, closed_at, until_at)
SELECT j.id, coalesce(b.until_at, '-infinity'),
       least($1, coalesce(j.next_tick, j.paused_tick)) - interval '1 microsecond'
FROM cron_jobs j
LEFT JOIN cron_closed_books b ON b.job_id = j.id
WHERE least($1, coalesce(j.next_tick, j.paused_tick)) - interval '1 microsecond' > coalesce(b.until_at, '-infinity')
  AND j.id NOT IN (SELECT job_id FROM cron_executions WHERE tick < $1 AND outcome IS NULL AND controller_id > '')
  AND (j.id IN (SELECT e.job_id FROM cron_executions e JOIN cron_jobs o ON o.id = e.job_id
                WHERE e.tick < $1 AND (e.number <= o.executions - $2::bigint OR o.removed_at < $1))
       OR j.id IN (SELECT job_id FROM cron_skips WHERE last_tick < $1)
       OR j.id IN (SELECT job_id FROM cron_schedules WHERE until_at < $1));

-- name: SumClosings
-- What ran in the time that is closed. Late: more than 10 s, as the audit has it by default. $1 the boundary.
WITH ran AS MATERIALIZED (
    SELECT e.job_id, e.outcome, e.trigger, e.trigger = 'schedule' AND e.started_at - e.run_at > interval '10 s' AS late
    FROM cron_executions e JOIN cron_closings c ON c.job_id = e.job_id
    WHERE e.tick < $1 AND e.tick > c.closed_at AND e.tick <= c.until_at
), sums AS (
    SELECT job_id, count(*) AS executions, count(*) FILTER (WHERE late) AS late,
           count(*) FILTER (WHERE trigger IN ('schedule', 'catch_up')) AS executed,
           count(*) FILTER (WHERE trigger = 'catch_up') AS caught_up
    FROM ran GROUP BY job_id
), outcomes AS (
    SELECT job_id, jsonb_object_agg(outcome, n) AS outcomes
    FROM (SELECT job_id, outcome, count(*) AS n FROM ran GROUP BY 1, 2) o GROUP BY job_id
), triggers AS (
    SELECT job_id, jsonb_object_agg(trigger, n) AS triggers
    FROM (SELECT job_id, trigger, count(*) AS n FROM ran GROUP BY 1, 2) t GROUP BY job_id
)
UPDATE cron_closings c
SET executed = s.executed, caught_up = s.caught_up, late = s.late, executions = s.executions, outcomes = o.outcomes,
    triggers = t.triggers
FROM sums s JOIN outcomes o ON o.job_id = s.job_id JOIN triggers t ON t.job_id = s.job_id
WHERE c.job_id = s.job_id;

-- name: StageKept
-- $1 the boundary, $2 how many of its newest executions each job keeps.
SELECT cron_stage_kept($1, $2);

-- name: GetRecent
-- An id, how many rows up to the boundary have one above it, and how many of all are unfinished: by these one sees
-- whether something was claimed or ended there since. Ids are drawn before they are committed, so it lies well below the
-- highest. $1 the boundary.
SELECT r.recent_id, (SELECT count(*) FROM cron_executions WHERE tick < $1 AND id > r.recent_id) AS recent,
       (SELECT count(*) FROM cron_executions WHERE tick < $1 AND outcome IS NULL AND controller_id > '') AS unfinished
FROM (SELECT last_value - 100000 AS recent_id FROM cron_execution_ids) r;

-- name: GetClosingSpans
-- The schedules by which ticks were due in the time that is closed.
SELECT c.job_id, s.schedule, s.anchor, s.from_at, s.until_at, s.policy, c.closed_at, c.until_at AS closes_at
FROM cron_closings c
JOIN cron_schedules s ON s.job_id = c.job_id AND s.from_at < c.until_at AND coalesce(s.until_at > c.closed_at, true)
ORDER BY c.job_id, s.revision;

-- name: LockCutSkips
-- Ranges that begin in the time that is closed, and end after it.
SELECT s.id, s.job_id, s.reason, s.first_tick, s.last_tick, s.ticks, c.until_at
FROM cron_skips s JOIN cron_closings c ON c.job_id = s.job_id
WHERE s.first_tick <= c.until_at AND s.last_tick > c.until_at
FOR UPDATE OF s;

-- name: CutSkips
-- Of ranges, the part that comes after. Parallel arrays: $1 ids, $2 their first ticks now, $3 how many ticks are left.
UPDATE cron_skips s SET first_tick = c.first_tick, ticks = c.ticks
FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[]) AS c (id, first_tick, ticks)
WHERE s.id = c.id;

-- name: AddToClosedBooks
-- Adds what the closings say to the books, and takes skips and schedules away that lie before. Parallel arrays: $1 job ids,
-- $2 ticks that were due; $3 job ids, $4 reasons and $5 ticks of ranges that were cut.
WITH gone AS (
    DELETE FROM cron_skips s USING cron_closings c WHERE s.job_id = c.job_id AND s.last_tick <= c.until_at
    RETURNING s.job_id, s.reason, s.ticks
), forgotten AS (
    DELETE FROM cron_schedules s USING cron_closings c WHERE s.job_id = c.job_id AND s.until_at <= c.until_at
), skipped AS (
    SELECT job_id, jsonb_object_agg(reason, ticks) AS skipped
    FROM (
        SELECT job_id, reason, sum(ticks) AS ticks FROM (
            SELECT job_id, reason, ticks FROM gone
            UNION ALL SELECT * FROM unnest($3::bigint[], $4::text[], $5::bigint[])
            UNION ALL SELECT b.job_id, k.key, k.value::bigint
                      FROM cron_closings c JOIN cron_closed_books b ON b.job_id = c.job_id, jsonb_each_text(b.skipped) k
        ) parts GROUP BY job_id, reason
    ) sums GROUP BY job_id
)
INSERT INTO cron_closed_books AS b (job_id, until_at, due, executed, caught_up, late, skipped, executions, outcomes,
                                    triggers)
SELECT c.job_id, c.until_at, coalesce(d.due, 0), c.executed, c.caught_up, c.late, coalesce(s.skipped, '{}'),
       c.executions, c.outcomes, c.triggers
FROM cron_closings c
LEFT JOIN unnest($1::bigint[], $2::bigint[]) AS d (job_id, due) ON d.job_id = c.job_id
LEFT JOIN skipped s ON s.job_id = c.job_id
ON CONFLICT (job_id) DO UPDATE
SET until_at = excluded.until_at, due = b.due + excluded.due, executed = b.executed + excluded.executed,
    caught_up = b.caught_up + excluded.caught_up, late = b.late + excluded.late, skipped = excluded.skipped,
    executions = b.executions + excluded.executions,
    outcomes = (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                    SELECT key, sum(value::bigint) AS n FROM (
                        SELECT * FROM jsonb_each_text(b.outcomes) UNION ALL SELECT * FROM jsonb_each_text(excluded.outcomes)
                    ) o GROUP BY key) sums),
    triggers = (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                    SELECT key, sum(value::bigint) AS n FROM (
                        SELECT * FROM jsonb_each_text(b.triggers) UNION ALL SELECT * FROM jsonb_each_text(excluded.triggers)
                    ) t GROUP BY key) sums);

-- name: SwapStaged
-- $1 the boundary, $2 to $4 what GetRecent said.
SELECT cron_swap_staged($1, $2, $3, $4);

-- name: ForgetActions
-- What operators did more than $1 ms ago; at most 10,000 at a time.
DELETE FROM cron_actions WHERE id IN (
    SELECT id FROM cron_actions WHERE at < now() - $1::bigint * interval '1 millisecond' ORDER BY at LIMIT 10000);

-- name: RecordMaintenance
UPDATE cron_maintenance SET checked_at = now();
