-- name: GetScheduleSpans
-- Of every job that ever was, the schedules it had and when, and how it stands.
SELECT s.job_id, s.schedule, s.anchor, s.from_at, s.until_at, s.policy, j.state = 'executing' AS executing, j.last_tick,
       coalesce(j.next_tick, j.paused_tick) AS undecided_tick, j.next_execution
FROM cron_schedules s
JOIN cron_jobs j ON j.id = s.job_id
ORDER BY s.job_id, s.revision;

-- name: CountExecutedTicks
-- Distinct scheduled ticks in [$1, $2] by job: run, and still running. $1 may be null. A retry's tick is that of the
-- attempt before; manual runs and backfills are no ticks that were due.
SELECT job_id, count(DISTINCT tick) FILTER (WHERE outcome IS NOT NULL) AS executed,
       count(DISTINCT tick) FILTER (WHERE outcome IS NULL) AS running
FROM cron_executions
WHERE trigger IN ('schedule', 'catch_up') AND tick >= coalesce($1::timestamptz, '-infinity') AND tick <= $2
GROUP BY job_id;

-- name: CountOutcomes
-- Executions of ticks in [$1, $2] by outcome; unfinished ones as "running". $1 may be null.
SELECT coalesce(outcome, 'running') AS outcome, count(*) AS executions
FROM cron_executions
WHERE tick >= coalesce($1::timestamptz, '-infinity') AND tick <= $2
GROUP BY 1
ORDER BY 1;

-- name: CountSkippedTicks
-- Of ranges that lie wholly in [$1, $2], by job and reason. $1 may be null.
SELECT job_id, reason, sum(ticks)::bigint AS ticks
FROM cron_skips
WHERE first_tick >= coalesce($1::timestamptz, '-infinity') AND last_tick <= $2
GROUP BY job_id, reason;

-- name: GetCutSkips
-- Ranges that lie partly in [$1, $2] and partly outside. $1 may be null.
SELECT job_id, reason, first_tick, last_tick
FROM cron_skips
WHERE (first_tick < $1 AND last_tick >= $1) OR (first_tick <= $2 AND last_tick > $2);
