-- Figures of jobs. Ends don't write them: executions are folded in the background, each once, by id. Readers add the
-- executions that are not folded yet.

-- name: TakeFolding
-- How far the figures are folded, and how far they can be now: `:limit` executions further, but only up to where no
-- lower id can still be committed (cron_folding). No row: another controller is folding. A restored database begins its
-- transaction ids anew; all noted transactions are over then.
SELECT f.folded_id,
       coalesce(CASE WHEN f.known_by <= pg_snapshot_xmin(s.now) OR f.known_by >= pg_snapshot_xmax(s.now) THEN
           CASE WHEN n.executions < :limit::bigint THEN f.known_id ELSE n.last_id END END, f.folded_id) AS until_id
FROM (SELECT * FROM cron_folding FOR UPDATE SKIP LOCKED) f
CROSS JOIN (SELECT pg_current_snapshot() AS now) s
CROSS JOIN LATERAL (
    SELECT count(*) AS executions, max(id) AS last_id FROM (
        SELECT id FROM cron_executions WHERE id > f.folded_id AND id <= f.known_id ORDER BY id LIMIT :limit
    ) next
) n;

-- name: FoldFigures
-- Adds what has ended of the executions above `:folded_id` up to `:until_id`, and of those below that had not ended
-- before. What hasn't ended waits in cron_unfolded. Says how many ended.
WITH found AS MATERIALIZED (
    SELECT id, job_id, tick, outcome, started_at, ended_at, run_at, false AS waited
    FROM cron_executions WHERE id > :folded_id AND id <= :until_id
    UNION ALL
    SELECT e.id, e.job_id, e.tick, e.outcome, e.started_at, e.ended_at, e.run_at, true
    FROM cron_unfolded u
    CROSS JOIN LATERAL (SELECT * FROM cron_executions WHERE id = u.execution_id AND tick = u.tick OFFSET 0) e
    WHERE e.outcome IS NOT NULL
), waiting AS (
    INSERT INTO cron_unfolded (execution_id, job_id, tick) SELECT id, job_id, tick FROM found WHERE outcome IS NULL
), over AS (
    DELETE FROM cron_unfolded u USING (SELECT id FROM found WHERE waited) f WHERE u.execution_id = f.id
), folded AS (
    INSERT INTO cron_figures AS f (job_id, outcomes, duration_us, lateness_us, durations, latenesses)
    SELECT job_id,
           ARRAY[count(*) FILTER (WHERE outcome = 'completed'), count(*) FILTER (WHERE outcome = 'failed'),
                 count(*) FILTER (WHERE outcome = 'timed_out'), count(*) FILTER (WHERE outcome = 'cancelled'),
                 count(*) FILTER (WHERE outcome = 'lost'), count(*) FILTER (WHERE outcome = 'out_of_memory'),
                 count(*) FILTER (WHERE outcome = 'out_of_cpu')],
           sum(lasted_us)::bigint, sum(late_us)::bigint,
           cron_counted('{}', array_agg(cron_bucket(lasted_us))), cron_counted('{}', array_agg(cron_bucket(late_us)))
    FROM (
        SELECT job_id, outcome, (date_part('epoch', ended_at - started_at) * 1e6)::bigint AS lasted_us,
               (date_part('epoch', started_at - run_at) * 1e6)::bigint AS late_us
        FROM found WHERE outcome IS NOT NULL
    ) ended
    GROUP BY job_id
    ON CONFLICT (job_id) DO UPDATE
    SET outcomes = ARRAY(SELECT f.outcomes[n] + excluded.outcomes[n] FROM generate_series(1, 7) n),
        duration_us = f.duration_us + excluded.duration_us, lateness_us = f.lateness_us + excluded.lateness_us,
        durations = cron_merged(f.durations, excluded.durations),
        latenesses = cron_merged(f.latenesses, excluded.latenesses)
)
SELECT count(*) FROM found WHERE outcome IS NOT NULL;

-- name: MoveFolding
-- Executions are folded up to `:until_id`. If that is all that was known, `:last_id` is noted as the next limit: it was
-- read (GetLastIds) before this transaction had an id. A claim has a transaction id before it draws an execution's id.
-- So a transaction that may still commit an execution up to `:last_id` has a lower id than this transaction.
-- (The snapshot's xmax would not do: a transaction that is open may be above it.)
-- Says how many ids are known and not folded.
UPDATE cron_folding
SET folded_id = :until_id,
    known_id = CASE WHEN :until_id < known_id THEN known_id ELSE greatest(:until_id, :last_id::bigint) END,
    known_by = CASE WHEN :until_id < known_id THEN known_by ELSE pg_current_xact_id() END
RETURNING known_id - folded_id AS behind;

-- name: GetJobFigures
-- Of the job of that key that is not removed. `first_...`: the bucket that an array begins with.
SELECT j.id, s.status, j.executions, coalesce(f.outcomes, '{0,0,0,0,0,0,0}') AS outcomes,
       coalesce(f.duration_us, 0) AS duration_us, coalesce(f.lateness_us, 0) AS lateness_us,
       coalesce(array_lower(f.durations, 1), 0) AS first_duration, coalesce(f.durations, '{}') AS durations,
       coalesce(array_lower(f.latenesses, 1), 0) AS first_lateness, coalesce(f.latenesses, '{}') AS latenesses,
       j.last_started_at, j.last_ended_at, coalesce(j.last_outcome, '') AS last_outcome, j.next_tick, j.next_execution,
       j.schedule, j.anchor, j.policy
FROM cron_jobs j
JOIN cron_job_status s ON s.job_id = j.id
LEFT JOIN cron_figures f ON f.job_id = j.id
WHERE j.removed_at IS NULL AND j.key > '' AND j.key = :key;

-- name: GetUnfolded
-- Of a job, what has ended and is not folded yet. Found by id: a job may have far more executions than that.
SELECT outcome, lasted_us, late_us, cron_bucket(lasted_us) AS duration, cron_bucket(late_us) AS lateness
FROM (
    SELECT outcome, (date_part('epoch', ended_at - started_at) * 1e6)::bigint AS lasted_us,
           (date_part('epoch', started_at - run_at) * 1e6)::bigint AS late_us
    FROM (
        SELECT outcome, started_at, ended_at, run_at
        FROM cron_executions WHERE id > (SELECT folded_id FROM cron_folding) AND job_id + 0 = :job_id::bigint
        UNION ALL
        SELECT e.outcome, e.started_at, e.ended_at, e.run_at
        FROM cron_unfolded u
        CROSS JOIN LATERAL (SELECT * FROM cron_executions WHERE id = u.execution_id AND tick = u.tick OFFSET 0) e
        WHERE u.job_id = :job_id
    ) found
    WHERE outcome IS NOT NULL
) ended;

-- name: GetDayFigures
-- How the runs of a job went whose ticks lie in each span, from `:starts` up to `:ends`; both are parallel arrays. At
-- most `:limit` of each are looked at, the latest: so no job, however often it runs, makes this long.
SELECT count(r.outcome)::integer AS runs, (count(*) FILTER (WHERE r.outcome = 'completed'))::integer AS completed,
       percentile_disc(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY r.lasted_us) AS durations_us,
       percentile_disc(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY r.late_us) AS latenesses_us
FROM unnest(:starts::timestamptz[], :ends::timestamptz[]) WITH ORDINALITY d (from_at, until_at, position)
LEFT JOIN LATERAL (
    SELECT e.outcome, (date_part('epoch', e.ended_at - e.started_at) * 1e6)::bigint AS lasted_us,
           (date_part('epoch', coalesce(e.started_at, e.claimed_at) - e.run_at) * 1e6)::bigint AS late_us
    FROM cron_executions e
    WHERE e.job_id = :job_id::bigint AND e.tick >= d.from_at AND e.tick < d.until_at AND e.outcome IS NOT NULL
    ORDER BY e.tick DESC
    LIMIT :limit::integer
) r ON true
GROUP BY d.position
ORDER BY d.position;

-- name: GetSchedulerFigures
-- Reads every job's row: its caller keeps the answer for a while. Of jobs in `:namespaces`; null: of all, those that
-- are gone among them.
WITH unfolded AS MATERIALIZED (
    SELECT outcome, duration_us, lateness_us FROM cron_unfolded_ends found
    WHERE :namespaces?::text[] IS NULL
       OR EXISTS (SELECT FROM cron_jobs j WHERE j.id = found.job_id AND j.namespace = ANY(:namespaces) OFFSET 0)
), counted AS (
    SELECT outcomes, duration_us, lateness_us FROM cron_figures f
    WHERE (:namespaces?::text[] IS NULL
       OR EXISTS (SELECT FROM cron_jobs j WHERE j.id = f.job_id AND j.namespace = ANY(:namespaces) OFFSET 0))
    UNION ALL
    SELECT gone_outcomes, gone_duration_us, gone_lateness_us FROM cron_maintenance WHERE :namespaces IS NULL
    UNION ALL
    SELECT ARRAY[count(*) FILTER (WHERE outcome = 'completed'), count(*) FILTER (WHERE outcome = 'failed'),
                 count(*) FILTER (WHERE outcome = 'timed_out'), count(*) FILTER (WHERE outcome = 'cancelled'),
                 count(*) FILTER (WHERE outcome = 'lost'), count(*) FILTER (WHERE outcome = 'out_of_memory'),
                 count(*) FILTER (WHERE outcome = 'out_of_cpu')],
           coalesce(sum(duration_us), 0), coalesce(sum(lateness_us), 0)
    FROM unfolded
)
SELECT now() AS database_now,
       (SELECT jsonb_object_agg(status, jobs) FROM (
           SELECT s.status, count(*) AS jobs FROM cron_jobs j JOIN cron_job_status s ON s.job_id = j.id
           WHERE j.removed_at IS NULL AND (:namespaces IS NULL OR j.namespace = ANY(:namespaces))
           GROUP BY s.status) of_status)::text AS jobs,
       (SELECT coalesce(sum(executions), 0) FROM cron_jobs
        WHERE :namespaces IS NULL OR namespace = ANY(:namespaces))::bigint
       + CASE WHEN :namespaces IS NULL THEN m.gone_executions ELSE 0 END AS executions,
       ARRAY[t.completed, t.failed, t.timed_out, t.cancelled, t.lost, t.out_of_memory, t.out_of_cpu]::bigint[]
           AS outcomes,
       t.duration_us::bigint AS duration_us, t.lateness_us::bigint AS lateness_us, m.leases_cleared, m.checked_at,
       (SELECT max(lease_expires_at) FROM controllers) AS latest_lease, (SELECT count(*) FROM unfolded) AS unfolded
FROM (
    SELECT sum(outcomes[1]) AS completed, sum(outcomes[2]) AS failed, sum(outcomes[3]) AS timed_out,
           sum(outcomes[4]) AS cancelled, sum(outcomes[5]) AS lost, sum(outcomes[6]) AS out_of_memory,
           sum(outcomes[7]) AS out_of_cpu, sum(duration_us) AS duration_us, sum(lateness_us) AS lateness_us
    FROM counted
) t, cron_maintenance m;

-- name: GetLabelFigures
-- The same of jobs that have these labels, which an index finds: so many rows are read as there are of those. What runs
-- has not ended. Their executions are theirs whatever labels they had when they ran. Those of jobs that are gone
-- altogether have none.
WITH labelled AS MATERIALIZED (
    SELECT id, executions, removed_at IS NULL AS there FROM cron_jobs
    WHERE labels <> '{}' AND labels @> :labels::text::jsonb
      AND (:namespaces?::text[] IS NULL OR namespace = ANY(:namespaces))
), unfolded AS MATERIALIZED (
    SELECT outcome, duration_us, lateness_us FROM cron_unfolded_ends WHERE job_id IN (SELECT id FROM labelled)
), counted AS (
    SELECT f.outcomes, f.duration_us, f.lateness_us
    FROM labelled l CROSS JOIN LATERAL (SELECT * FROM cron_figures WHERE job_id = l.id OFFSET 0) f
    UNION ALL
    SELECT ARRAY[count(*) FILTER (WHERE outcome = 'completed'), count(*) FILTER (WHERE outcome = 'failed'),
                 count(*) FILTER (WHERE outcome = 'timed_out'), count(*) FILTER (WHERE outcome = 'cancelled'),
                 count(*) FILTER (WHERE outcome = 'lost'), count(*) FILTER (WHERE outcome = 'out_of_memory'),
                 count(*) FILTER (WHERE outcome = 'out_of_cpu')],
           coalesce(sum(duration_us), 0), coalesce(sum(lateness_us), 0)
    FROM unfolded
)
SELECT now() AS database_now,
       (SELECT jsonb_object_agg(status, jobs) FROM (
           SELECT s.status, count(*) AS jobs
           FROM labelled l CROSS JOIN LATERAL (SELECT status FROM cron_job_status WHERE job_id = l.id OFFSET 0) s
           WHERE l.there GROUP BY s.status) of_status)::text AS jobs,
       (SELECT coalesce(sum(executions), 0) FROM labelled)::bigint AS executions,
       ARRAY[t.completed, t.failed, t.timed_out, t.cancelled, t.lost, t.out_of_memory, t.out_of_cpu]::bigint[]
           AS outcomes,
       t.duration_us::bigint AS duration_us, t.lateness_us::bigint AS lateness_us, m.leases_cleared, m.checked_at,
       (SELECT max(lease_expires_at) FROM controllers) AS latest_lease
FROM (
    SELECT sum(outcomes[1]) AS completed, sum(outcomes[2]) AS failed, sum(outcomes[3]) AS timed_out,
           sum(outcomes[4]) AS cancelled, sum(outcomes[5]) AS lost, sum(outcomes[6]) AS out_of_memory,
           sum(outcomes[7]) AS out_of_cpu, sum(duration_us) AS duration_us, sum(lateness_us) AS lateness_us
    FROM counted
) t, cron_maintenance m;
