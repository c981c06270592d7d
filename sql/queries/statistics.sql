-- Figures that ends keep in their jobs' rows. What cron_uncounted has waits to be added to those.

-- name: GetJobFigures
-- Of the job of that key that is not removed. `first_...`: the bucket that an array begins with.
SELECT j.id, s.status, j.executions, j.outcomes, j.duration_us, j.lateness_us,
       coalesce(array_lower(j.durations, 1), 0) AS first_duration, j.durations,
       coalesce(array_lower(j.latenesses, 1), 0) AS first_lateness, j.latenesses,
       j.last_started_at, j.last_ended_at, coalesce(j.last_outcome, '') AS last_outcome, j.next_tick, j.next_execution,
       j.schedule, j.anchor, j.policy
FROM cron_jobs j
JOIN cron_job_status s ON s.job_id = j.id
WHERE j.removed_at IS NULL AND j.key > '' AND j.key = :key;

-- name: GetUncounted
SELECT outcome, duration_us, lateness_us, cron_bucket(duration_us) AS duration, cron_bucket(lateness_us) AS lateness
FROM cron_uncounted WHERE job_id = :job_id;

-- name: CountUncounted
-- Adds up to `:limit` ends to their jobs' rows; says how many.
WITH taken AS (
    DELETE
    FROM cron_uncounted WHERE ctid = ANY(ARRAY(SELECT ctid FROM cron_uncounted LIMIT :limit FOR UPDATE SKIP LOCKED))
    RETURNING job_id, outcome, duration_us, lateness_us
), locked AS MATERIALIZED ( -- in order of ids, as everything that waits for jobs does
    SELECT t.* FROM (
        SELECT job_id, count(*) AS ends, sum(duration_us)::bigint AS duration_us, sum(lateness_us)::bigint AS lateness_us,
               array_agg(cron_bucket(duration_us)) AS durations, array_agg(cron_bucket(lateness_us)) AS latenesses,
               count(*) FILTER (WHERE outcome = 'completed') AS completed,
               count(*) FILTER (WHERE outcome = 'failed') AS failed,
               count(*) FILTER (WHERE outcome = 'timed_out') AS timed_out,
               count(*) FILTER (WHERE outcome = 'cancelled') AS cancelled,
               count(*) FILTER (WHERE outcome = 'lost') AS lost,
               count(*) FILTER (WHERE outcome = 'out_of_memory') AS out_of_memory,
               count(*) FILTER (WHERE outcome = 'out_of_cpu') AS out_of_cpu
        FROM taken GROUP BY job_id ORDER BY job_id
    ) t
    CROSS JOIN LATERAL (SELECT id FROM cron_jobs WHERE id = t.job_id FOR NO KEY UPDATE) j
), counted AS (
    UPDATE cron_jobs j
    SET outcomes = ARRAY[j.outcomes[1] + l.completed, j.outcomes[2] + l.failed, j.outcomes[3] + l.timed_out,
                         j.outcomes[4] + l.cancelled, j.outcomes[5] + l.lost, j.outcomes[6] + l.out_of_memory,
                         j.outcomes[7] + l.out_of_cpu],
        duration_us = j.duration_us + l.duration_us, lateness_us = j.lateness_us + l.lateness_us,
        durations = cron_counted(j.durations, l.durations), latenesses = cron_counted(j.latenesses, l.latenesses)
    FROM locked l
    WHERE j.id = l.job_id
)
SELECT count(*) FROM taken;

-- name: GetSchedulerFigures
-- Reads every job's row: its caller keeps the answer for a while.
SELECT now() AS database_now,
       (SELECT jsonb_object_agg(status, jobs) FROM (
           SELECT s.status, count(*) AS jobs FROM cron_jobs j JOIN cron_job_status s ON s.job_id = j.id
           WHERE j.removed_at IS NULL GROUP BY s.status) of_status)::text AS jobs,
       t.executions + m.gone_executions AS executions, ARRAY[t.completed + u.completed + m.gone_outcomes[1],
           t.failed + u.failed + m.gone_outcomes[2],
           t.timed_out + u.timed_out + m.gone_outcomes[3],
           t.cancelled + u.cancelled + m.gone_outcomes[4],
           t.lost + u.lost + m.gone_outcomes[5],
           t.out_of_memory + u.out_of_memory + m.gone_outcomes[6],
           t.out_of_cpu + u.out_of_cpu + m.gone_outcomes[7]] AS outcomes,
       t.duration_us + u.duration_us + m.gone_duration_us AS duration_us, t.lateness_us + u.lateness_us + m.gone_lateness_us AS lateness_us,
       m.leases_cleared, m.checked_at, (SELECT max(lease_expires_at) FROM controllers) AS latest_lease
FROM (
    SELECT coalesce(sum(executions), 0)::bigint AS executions, coalesce(sum(outcomes[1]), 0)::bigint AS completed,
           coalesce(sum(outcomes[2]), 0)::bigint AS failed, coalesce(sum(outcomes[3]), 0)::bigint AS timed_out,
           coalesce(sum(outcomes[4]), 0)::bigint AS cancelled, coalesce(sum(outcomes[5]), 0)::bigint AS lost,
           coalesce(sum(outcomes[6]), 0)::bigint AS out_of_memory, coalesce(sum(outcomes[7]), 0)::bigint AS out_of_cpu,
           coalesce(sum(duration_us), 0)::bigint AS duration_us, coalesce(sum(lateness_us), 0)::bigint AS lateness_us
    FROM cron_jobs
) t, (
    SELECT count(*) FILTER (WHERE outcome = 'completed') AS completed,
           count(*) FILTER (WHERE outcome = 'failed') AS failed,
           count(*) FILTER (WHERE outcome = 'timed_out') AS timed_out,
           count(*) FILTER (WHERE outcome = 'cancelled') AS cancelled, count(*) FILTER (WHERE outcome = 'lost') AS lost,
           count(*) FILTER (WHERE outcome = 'out_of_memory') AS out_of_memory,
           count(*) FILTER (WHERE outcome = 'out_of_cpu') AS out_of_cpu,
           coalesce(sum(duration_us), 0)::bigint AS duration_us, coalesce(sum(lateness_us), 0)::bigint AS lateness_us
    FROM cron_uncounted
) u, cron_maintenance m;
