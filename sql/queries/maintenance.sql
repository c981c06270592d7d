-- Looking after history. Run by one controller at a time, on a connection of its own that may read whole tables.

-- name: TryLockMaintenance
SELECT pg_try_advisory_lock(hashtextextended(current_schema() || ' maintenance', 0));

-- name: AddPartition
-- Whether there was one to make. `:ahead_ms`: how far ahead there are to be partitions.
SELECT cron_add_partition(now() + :ahead_ms::bigint * interval '1 millisecond');

-- name: DropGone
SELECT cron_drop_gone();

-- name: GetBoundary
-- The end of the newest partition that is wholly older than `:history_ms`; null if there is none beside
-- cron_executions_kept.
SELECT max(until_at) FROM cron_partitions
WHERE until_at <= now() - :history_ms::bigint * interval '1 millisecond' AND from_at > '-infinity';

-- name: ClearClosings
TRUNCATE cron_closings, cron_histories;

-- name: GetHistoryPolicies
SELECT id, policy FROM cron_jobs WHERE policy LIKE '%"history%';

-- name: FillHistories
-- Parallel arrays.
INSERT INTO cron_histories SELECT * FROM unnest(:job_ids::bigint[], :histories_ms::bigint[], :runs::bigint[]);

-- name: FillClosings
-- The jobs whose books close: up to the boundary, or to where their own history begins, or to what they have decided.
-- These are jobs that lose rows (all but their newest `:runs`, or their own number), or that have skips or spans of
-- that time. Jobs with something unfinished there are left out.
WITH closing AS MATERIALIZED (
    SELECT j.id, j.executions - coalesce(w.runs, :runs::bigint) AS above, j.removed_at,
           coalesce(b.until_at, '-infinity') AS closed_at,
           least(:boundary, now() - w.history_ms * interval '1 millisecond', coalesce(j.next_tick, j.paused_tick))
           AS closes_at
    FROM cron_jobs j
    LEFT JOIN cron_histories w ON w.job_id = j.id
    LEFT JOIN cron_closed_books b ON b.job_id = j.id
)
INSERT INTO cron_closings (job_id, closed_at, until_at)
SELECT c.id, c.closed_at, c.closes_at - interval '1 microsecond'
FROM closing c
WHERE c.closes_at - interval '1 microsecond' > c.closed_at
  AND c.id NOT IN (SELECT job_id FROM cron_executions WHERE tick < (SELECT :boundary::timestamptz) AND outcome IS NULL
                   AND controller_id > '')
  AND (c.id IN (SELECT e.job_id FROM cron_executions e JOIN closing o ON o.id = e.job_id
                WHERE e.tick < (SELECT :boundary::timestamptz) AND e.tick < o.closes_at
                  AND (e.number <= o.above OR o.removed_at < o.closes_at))
       OR c.id IN (SELECT s.job_id FROM cron_skips s JOIN closing o ON o.id = s.job_id WHERE s.last_tick < o.closes_at)
       OR c.id IN (SELECT s.job_id FROM cron_schedules s JOIN closing o ON o.id = s.job_id
                   WHERE s.until_at < o.closes_at));

-- name: SumClosings
-- What ran in the time that is closed. Later than `:late_after_us` is late.
WITH ran AS MATERIALIZED (
    SELECT e.job_id, e.outcome, e.trigger,
           e.trigger = 'schedule'
           AND e.started_at > e.run_at + :late_after_us::bigint * interval '1 microsecond' AS late
    FROM cron_executions e JOIN cron_closings c ON c.job_id = e.job_id
    WHERE e.tick < (SELECT :boundary::timestamptz) AND e.tick > c.closed_at AND e.tick <= c.until_at
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
-- `:runs`: how many of its newest executions each job keeps.
SELECT cron_stage_kept(:boundary, :runs);

-- name: GetRecent
-- An id; how many rows up to the boundary have a higher id; and how many of all are unfinished. SwapStaged compares
-- them to see whether anything was claimed or ended there since. Ids are drawn before they are committed, so the id
-- lies well below the highest.
SELECT r.recent_id, (SELECT count(*) FROM cron_executions WHERE tick < :boundary AND id > r.recent_id) AS recent,
       (SELECT count(*) FROM cron_executions WHERE tick < :boundary AND outcome IS NULL AND controller_id > '')
       AS unfinished
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
-- Of ranges, the part that comes after. Parallel arrays.
UPDATE cron_skips s SET first_tick = c.first_tick, ticks = c.ticks
FROM unnest(:skip_ids::bigint[], :first_ticks::timestamptz[], :tick_counts::bigint[]) AS c (id, first_tick, ticks)
WHERE s.id = c.id;

-- name: AddToClosedBooks
-- Adds what the closings say to the books, and takes skips and schedules away that lie before. `:job_ids` and `:due`
-- (ticks that were due) are parallel arrays; so are `:cut_...`, of ranges that were cut.
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
            UNION ALL SELECT * FROM unnest(:cut_job_ids::bigint[], :cut_reasons::text[], :cut_tick_counts::bigint[])
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
LEFT JOIN unnest(:job_ids::bigint[], :due::bigint[]) AS d (job_id, due) ON d.job_id = c.job_id
LEFT JOIN skipped s ON s.job_id = c.job_id
ON CONFLICT (job_id) DO UPDATE
SET until_at = excluded.until_at, due = b.due + excluded.due, executed = b.executed + excluded.executed,
    caught_up = b.caught_up + excluded.caught_up, late = b.late + excluded.late, skipped = excluded.skipped,
    executions = b.executions + excluded.executions,
    outcomes = (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                    SELECT key, sum(value::bigint) AS n FROM (
                        SELECT * FROM jsonb_each_text(b.outcomes)
                        UNION ALL
                        SELECT * FROM jsonb_each_text(excluded.outcomes)
                    ) o GROUP BY key) sums),
    triggers = (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                    SELECT key, sum(value::bigint) AS n FROM (
                        SELECT * FROM jsonb_each_text(b.triggers)
                        UNION ALL
                        SELECT * FROM jsonb_each_text(excluded.triggers)
                    ) t GROUP BY key) sums);

-- name: SwapStaged
-- After the boundary, what GetRecent said.
SELECT cron_swap_staged(:boundary, :recent_id, :recent, :unfinished);

-- name: FoldGone
-- Jobs that were removed more than `:history_ms` ago and of which nothing is left but sums: up to `:limit` of them are
-- added up, books into row 0 and figures into those of all that are gone, and their rows go. Says how many. `key > ''`
-- is the condition of cron_jobs_removed: without it, each round would read all jobs there are.
WITH gone AS (
    DELETE FROM cron_jobs j USING (
        SELECT o.id FROM cron_jobs o
        WHERE o.removed_at < now() - :history_ms::bigint * interval '1 millisecond' AND o.key > '' AND o.state = 'idle'
          AND o.running = 0
          AND NOT EXISTS (SELECT FROM cron_executions WHERE job_id = o.id)
          AND NOT EXISTS (SELECT FROM cron_skips WHERE job_id = o.id)
          AND NOT EXISTS (SELECT FROM cron_schedules WHERE job_id = o.id)
          AND NOT EXISTS (SELECT FROM cron_activations WHERE job_id = o.id)
        LIMIT :limit FOR UPDATE SKIP LOCKED
    ) g
    WHERE j.id = g.id
    RETURNING j.id, j.executions
), counted AS ( -- all of it: nothing of theirs is left to be folded
    DELETE FROM cron_figures f USING gone g WHERE f.job_id = g.id RETURNING f.*
), books AS (
    DELETE FROM cron_closed_books b USING gone g WHERE b.job_id = g.id RETURNING b.*
), all_books AS (
    SELECT * FROM books UNION ALL SELECT * FROM cron_closed_books WHERE job_id = 0
), folded AS (
    INSERT INTO cron_closed_books (job_id, until_at, due, executed, caught_up, late, skipped, executions, outcomes,
                                   triggers)
    SELECT 0, max(until_at), sum(due), sum(executed), sum(caught_up), sum(late),
           (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                SELECT key, sum(value::bigint) AS n FROM all_books, jsonb_each_text(skipped) GROUP BY key) s),
           sum(executions),
           (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                SELECT key, sum(value::bigint) AS n FROM all_books, jsonb_each_text(outcomes) GROUP BY key) o),
           (SELECT coalesce(jsonb_object_agg(key, n), '{}') FROM (
                SELECT key, sum(value::bigint) AS n FROM all_books, jsonb_each_text(triggers) GROUP BY key) t)
    FROM all_books
    HAVING EXISTS (SELECT FROM books)
    ON CONFLICT (job_id) DO UPDATE
    SET until_at = excluded.until_at, due = excluded.due, executed = excluded.executed,
        caught_up = excluded.caught_up, late = excluded.late, skipped = excluded.skipped,
        executions = excluded.executions, outcomes = excluded.outcomes, triggers = excluded.triggers
), figures AS (
    UPDATE cron_maintenance m
    SET gone_jobs = m.gone_jobs + s.jobs, gone_executions = m.gone_executions + s.executions,
        gone_outcomes = ARRAY(SELECT coalesce(m.gone_outcomes[n], 0) + coalesce(
                                  (SELECT sum(outcomes[n]) FROM counted), 0)::bigint FROM generate_series(1, 7) n),
        gone_duration_us = m.gone_duration_us + f.duration_us, gone_lateness_us = m.gone_lateness_us + f.lateness_us
    FROM (SELECT count(*) AS jobs, coalesce(sum(executions), 0) AS executions FROM gone) s,
         (SELECT coalesce(sum(duration_us), 0) AS duration_us, coalesce(sum(lateness_us), 0) AS lateness_us
          FROM counted) f
    WHERE s.jobs > 0
)
SELECT count(*) FROM gone;

-- name: ForgetActions
-- What operators did more than `:history_ms` ago; at most 10,000 at a time.
DELETE FROM cron_actions WHERE id IN (
    SELECT id
    FROM cron_actions WHERE at < now() - :history_ms::bigint * interval '1 millisecond' ORDER BY at LIMIT 10000);

-- name: RecordMaintenance
UPDATE cron_maintenance SET checked_at = now();
