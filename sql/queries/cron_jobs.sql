-- name: StartCronJobs
-- Claims, in one statement, those of the wanted jobs that are idle and due in PostgreSQL's time, if the caller's
-- lease is valid, and inserts their executions. Answers with every attempted row.
-- $1 controller id; parallel arrays: $2 job ids (ascending), $3 the tick the caller expects, $4 the tick to run,
-- $5 its run_at, $6 runner ids, $7 first skipped tick or null, $8 last skipped tick or null, $9 skipped ticks;
-- $10 grace after the timeout (ms).
-- SKIP LOCKED: a row somebody else is claiming right now is not ours, and waiting for it would only make us late.
WITH wanted AS (
    SELECT * FROM unnest($2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[],
                         $7::timestamptz[], $8::timestamptz[], $9::bigint[])
        AS w (job_id, expected_tick, run_tick, run_at, runner_id, first_skipped, last_skipped, skipped)
), lease AS (
    SELECT 1 FROM controllers WHERE id = $1 AND lease_expires_at > now()
), due AS (
    SELECT j.id, w.run_tick, w.run_at, w.runner_id, w.first_skipped, w.last_skipped, w.skipped
    FROM wanted w
    JOIN cron_jobs j ON j.id = w.job_id
    JOIN deployments d ON d.id = j.deployment_id
    WHERE j.state = 'idle' AND j.removed_at IS NULL AND j.next_tick = w.expected_tick
      AND j.next_execution <= now() AND w.run_at <= now() AND d.min_replicas > 0
      AND EXISTS (SELECT FROM lease)
    ORDER BY j.id
    FOR NO KEY UPDATE OF j SKIP LOCKED
), claimed AS (
    UPDATE cron_jobs j
    SET state = 'executing', start_time = now(),
        execution_id = nextval(pg_get_serial_sequence('cron_executions', 'id'))
    FROM due
    WHERE j.id = due.id
    RETURNING j.id, j.execution_id, j.deployment_id, j.timeout_ms, due.run_tick, due.run_at, due.runner_id,
              due.first_skipped, due.last_skipped, due.skipped
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, started_at, controller_id,
                                 runner_id, hard_deadline)
    SELECT execution_id, id, deployment_id, run_tick, run_at, now(), now(), $1, runner_id,
           now() + (timeout_ms + $10::bigint) * interval '1 millisecond'
    FROM claimed
), skipped AS (
    INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
    SELECT id, 'superseded', first_skipped, last_skipped, claimed.skipped, $1 FROM claimed WHERE claimed.skipped > 0
)
SELECT j.id AS job_id,
       c.id IS NOT NULL AS updated,
       d.min_replicas > 0 AS has_min_replicas,
       c.execution_id,
       now() AS claimed_at,
       CASE WHEN c.id IS NULL THEN j.state ELSE 'executing' END AS state,
       j.next_tick,
       j.next_execution,
       j.revision
FROM wanted w
JOIN cron_jobs j ON j.id = w.job_id
JOIN deployments d ON d.id = j.deployment_id
LEFT JOIN claimed c ON c.id = j.id;
