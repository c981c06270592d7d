-- How statements over many rows are written here. They are planned once for a connection, for arrays of any length and
-- tables of any size (controller/store/pool.py says how), so their shape decides how they run:
-- LATERAL with a row lock is one index probe for each wanted row; FULL JOIN, where one side holds the other's rows anyway,
-- can only be a hash or a merge join, never a loop over both. A probe by id names no partial index's predicate (`ended_at
-- IS NULL` says what `outcome IS NULL` says, and a removed job has no next tick): while the table is empty such an index
-- looks as cheap as the primary key, and a plan that reads all of it for every row would stay.

-- name: GetCronJobs
-- PostgreSQL's now, and the jobs of the slots that are due before it plus the window, executing ones among them.
-- One row of nulls when there are none. $1 slots, $2 window (ms; negative: overdue by so much), $3 idle ones only.
SELECT n.database_now, due.*
FROM (SELECT now() AS database_now) n
LEFT JOIN (
    SELECT j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
           j.on_disconnect, j.state = 'executing' AS executing, j.next_tick, j.next_execution, j.policy, j.payload
    FROM cron_jobs j
    JOIN deployments d ON d.id = j.deployment_id
    WHERE j.slot = ANY($1::integer[])
      AND j.next_execution <= now() + $2::bigint * interval '1 millisecond'
      AND (NOT $3::boolean OR j.state = 'idle' AND d.min_replicas > 0)
) due ON true;

-- name: StartCronJobs
-- Claims, in one statement, those of the wanted jobs that are idle and due in PostgreSQL's time, if the caller's
-- lease is valid, and inserts their executions. Answers with every attempted row, in the order asked.
-- $1 controller id; parallel arrays: $2 job ids (ascending), $3 the tick the caller expects, $4 the tick to run,
-- $5 its run_at, $6 runner ids, $7 keys of the deployments these host; of the ticks that are passed over, $8 job ids,
-- $9 reasons, $10 first ticks, $11 last ticks, $12 ticks; $13 grace after the timeout (ms).
-- SKIP LOCKED: a row somebody else is claiming right now is not ours, and waiting for it would only make us late.
-- Nobody waits, so nobody deadlocks. What the answer says of a row that was not claimed is as old as the statement.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[])
        WITH ORDINALITY AS w (job_id, expected_tick, run_tick, run_at, runner_id, deployment, position)
), due AS (
    SELECT j.id, w.run_tick, w.run_at, w.runner_id
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT id FROM cron_jobs
        WHERE id = w.job_id AND state = 'idle' AND next_tick = w.expected_tick
          AND next_execution <= now() AND w.run_at <= now() AND (last_tick IS NULL OR last_tick < w.run_tick)
          AND EXISTS (SELECT FROM controllers WHERE id = $1 AND lease_expires_at > now())
          AND (SELECT min_replicas > 0 AND key = w.deployment FROM deployments WHERE id = deployment_id)
        FOR NO KEY UPDATE SKIP LOCKED
    ) j
), claimed AS (
    UPDATE cron_jobs j
    SET state = 'executing', start_time = now(), last_tick = due.run_tick,
        execution_id = nextval('cron_execution_ids')
    FROM due
    WHERE j.id = due.id
    RETURNING j.id, j.execution_id, j.deployment_id, j.timeout_ms, due.run_tick, due.run_at, due.runner_id
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                                 hard_deadline)
    SELECT execution_id, id, deployment_id, run_tick, run_at, now(), $1, runner_id,
           now() + (timeout_ms + $13::bigint) * interval '1 millisecond'
    FROM claimed
), skips AS (
    INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
    SELECT s.*, $1 FROM unnest($8::bigint[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::bigint[])
        AS s (job_id, reason, first_tick, last_tick, ticks)
    WHERE CASE WHEN s.job_id IN (SELECT id FROM claimed) THEN true END
)
SELECT a.job_id,
       a.claimed_id IS NOT NULL AS updated,
       coalesce(d.min_replicas > 0, false) AS has_min_replicas,
       a.execution_id,
       now() AS claimed_at,
       a.claimed_id IS NOT NULL OR coalesce(j.state = 'executing', false) AS executing,
       j.next_tick,
       j.next_execution,
       coalesce(j.revision, 0) AS revision,
       NULL::timestamptz AS previous_tick,
       NULL::timestamptz AS previous_success
FROM (
    SELECT w.job_id, w.position, c.id AS claimed_id, c.execution_id
    FROM wanted w FULL JOIN claimed c ON c.id = w.job_id
) a
LEFT JOIN cron_jobs j ON j.id = a.job_id
LEFT JOIN deployments d ON d.id = j.deployment_id
ORDER BY a.position;

-- name: EndCronJob
-- Ends, in one statement, those executions that are unfinished and whose claim is the reported one, frees their jobs
-- and sets the next tick, unless the schedule has changed since: then the row's own next tick stays.
-- $1 controller id; parallel arrays: $2 execution ids, $3 job ids (ascending), $4 claims' start_time, $5 outcomes,
-- $6 started_at, $7 ended_at, $8 error types, $9 error messages, $10 outputs, $11 revisions, $12 next ticks or null,
-- $13 their run_at or null; of the ticks that passed meanwhile, $14 execution ids, $15 job ids, $16 reasons, $17 first
-- ticks, $18 last ticks, $19 ticks.
-- Locks executions, then jobs, each in order of their ids; so does everything else that waits for either.
WITH reported AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::text[], $6::timestamptz[],
                         $7::timestamptz[], $8::text[], $9::text[], $10::text[], $11::integer[], $12::timestamptz[],
                         $13::timestamptz[]) WITH ORDINALITY
        AS r (execution_id, job_id, claimed_at, outcome, started_at, ended_at, error_type, error_message, output,
              revision, next_tick, next_execution, position)
), unfinished AS MATERIALIZED (
    SELECT e.id, e.job_id, e.run_at, r.outcome, r.error_type, r.error_message, r.output, r.revision, r.next_tick,
           r.next_execution, r.position,
           greatest(e.claimed_at, least(r.started_at, now())) AS started_at,
           greatest(e.claimed_at, least(r.started_at, now()), least(r.ended_at, now())) AS ended_at
    FROM (SELECT * FROM reported ORDER BY execution_id) r
    CROSS JOIN LATERAL (
        SELECT id, job_id, run_at, claimed_at FROM cron_executions
        WHERE id = r.execution_id AND claimed_at = r.claimed_at AND ended_at IS NULL
        FOR NO KEY UPDATE
    ) e
), ended AS (
    UPDATE cron_executions e
    SET outcome = u.outcome, started_at = u.started_at, ended_at = u.ended_at, error_type = u.error_type,
        error_message = u.error_message, output = u.output
    FROM unfinished u
    WHERE e.id = u.id
    RETURNING e.id, u.position
), held AS MATERIALIZED (
    SELECT j.id, u.id AS execution_id, u.run_at, u.outcome, u.started_at, u.ended_at, u.revision, u.next_tick,
           u.next_execution, u.position
    FROM (SELECT * FROM unfinished ORDER BY job_id) u
    CROSS JOIN LATERAL (
        SELECT id FROM cron_jobs WHERE id = u.job_id AND execution_id = u.id FOR NO KEY UPDATE
    ) j
), freed AS (
    UPDATE cron_jobs j
    SET state = 'idle', start_time = NULL, execution_id = NULL,
        last_run_at = h.run_at, last_started_at = h.started_at, last_ended_at = h.ended_at, last_outcome = h.outcome,
        next_tick = CASE WHEN j.revision = h.revision THEN h.next_tick ELSE j.next_tick END,
        next_execution = CASE WHEN j.revision = h.revision THEN h.next_execution ELSE j.next_execution END
    FROM held h
    WHERE j.id = h.id
    RETURNING j.id, h.execution_id, j.next_tick, j.next_execution, j.revision, j.revision = h.revision AS counts,
              h.position
), skips AS (
    INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
    SELECT s.job_id, s.reason, s.first_tick, s.last_tick, s.ticks, $1
    FROM unnest($14::bigint[], $15::bigint[], $16::text[], $17::timestamptz[], $18::timestamptz[], $19::bigint[])
        AS s (execution_id, job_id, reason, first_tick, last_tick, ticks)
    WHERE CASE WHEN s.execution_id IN (SELECT execution_id FROM freed WHERE counts) THEN true END
)
SELECT a.execution_id,
       a.job_id,
       a.ended_id IS NOT NULL AS ended,
       CASE WHEN a.freed_id IS NOT NULL THEN a.next_tick WHEN j.state = 'idle' THEN j.next_tick END AS next_tick,
       CASE WHEN a.freed_id IS NOT NULL THEN a.next_execution WHEN j.state = 'idle' THEN j.next_execution END
           AS next_execution,
       coalesce(a.revision, j.revision, 0) AS revision,
       NULL::bigint AS retry_id,
       false AS paused
FROM (
    SELECT r.execution_id, r.job_id, r.position, e.id AS ended_id, f.id AS freed_id, f.next_tick, f.next_execution,
           f.revision
    FROM reported r
    FULL JOIN ended e ON e.position = r.position
    FULL JOIN freed f ON f.position = r.position
) a
LEFT JOIN cron_jobs j ON j.id = a.job_id
ORDER BY a.position;

-- name: SkipTicks
-- Records that due ticks of idle jobs are not run, and moves the jobs to their next tick, if the caller's lease is valid.
-- Answers with the jobs' rows as they are now, of every attempted one.
-- $1 controller id; parallel arrays: $2 job ids (ascending), $3 the tick the caller expects, $4 revisions, $5 next ticks
-- or null, $6 their run_at or null; of the ticks, $7 job ids, $8 reasons, $9 first ticks, $10 last ticks, $11 ticks.
WITH wanted AS MATERIALIZED (
    SELECT * FROM unnest($2::bigint[], $3::timestamptz[], $4::integer[], $5::timestamptz[], $6::timestamptz[])
        WITH ORDINALITY AS w (job_id, expected_tick, revision, next_tick, next_execution, position)
), idle AS (
    SELECT j.id, w.next_tick, w.next_execution
    FROM wanted w
    CROSS JOIN LATERAL (
        SELECT id FROM cron_jobs
        WHERE id = w.job_id AND state = 'idle' AND next_tick = w.expected_tick AND revision = w.revision
          AND EXISTS (SELECT FROM controllers WHERE id = $1 AND lease_expires_at > now())
        FOR NO KEY UPDATE SKIP LOCKED
    ) j
), moved AS (
    UPDATE cron_jobs j
    SET next_tick = i.next_tick, next_execution = i.next_execution
    FROM idle i
    WHERE j.id = i.id
    RETURNING j.id, j.next_tick, j.next_execution
), skips AS (
    INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
    SELECT s.*, $1 FROM unnest($7::bigint[], $8::text[], $9::timestamptz[], $10::timestamptz[], $11::bigint[])
        AS s (job_id, reason, first_tick, last_tick, ticks)
    WHERE CASE WHEN s.job_id IN (SELECT id FROM moved) THEN true END
)
SELECT j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' AS executing,
       CASE WHEN a.moved_id IS NULL THEN j.next_tick ELSE a.next_tick END AS next_tick,
       CASE WHEN a.moved_id IS NULL THEN j.next_execution ELSE a.next_execution END AS next_execution,
       j.policy, j.payload
FROM (
    SELECT w.job_id, w.position, m.id AS moved_id, m.next_tick, m.next_execution
    FROM wanted w FULL JOIN moved m ON m.id = w.job_id
) a
JOIN cron_jobs j ON j.id = a.job_id
JOIN deployments d ON d.id = j.deployment_id
ORDER BY a.position;

-- name: LockCronJobs
-- The jobs of a module that are not removed, locked in order of their ids until the transaction ends.
-- $1 namespace, $2 module, $3 and $4: every key of the module lies between them.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick
FROM cron_jobs
WHERE key > '' AND key > $3 AND key < $4 AND namespace = $1 AND module = $2 AND removed_at IS NULL
ORDER BY id
FOR NO KEY UPDATE;

-- name: GetModuleJobs
-- The jobs of a module that are not removed, by key. $1 to $4 as in LockCronJobs.
SELECT j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' AS executing, j.next_tick, j.next_execution, j.policy, j.payload
FROM cron_jobs j
JOIN deployments d ON d.id = j.deployment_id
WHERE j.key > '' AND j.key > $3 AND j.key < $4 AND j.namespace = $1 AND j.module = $2 AND j.removed_at IS NULL
ORDER BY j.key;

-- name: CreateCronJobs
-- Inserts jobs, and opens the books of their schedules.
-- $1 namespace, $2 module, $3 deployment id, $4 now; parallel arrays: $5 keys, $6 verbs, $7 slots, $8 schedules,
-- $9 anchors, $10 timeouts (ms), $11 on_disconnect, $12 next ticks or null, $13 their run_at or null.
WITH created AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, created_at)
    SELECT a.key, $1, $2, a.verb, a.slot, $3, a.schedule, a.anchor, a.timeout_ms, a.on_disconnect, a.next_tick,
           a.next_execution, $4
    FROM unnest($5::text[], $6::text[], $7::integer[], $8::text[], $9::timestamptz[], $10::bigint[], $11::text[],
                $12::timestamptz[], $13::timestamptz[])
        AS a (key, verb, slot, schedule, anchor, timeout_ms, on_disconnect, next_tick, next_execution)
    RETURNING id, revision, schedule, anchor
)
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, from_at)
SELECT id, revision, schedule, anchor, $4 FROM created;

-- name: CarryCronJobsOver
-- Moves jobs to a new deployment. Where the schedule changes, the revision grows, and the new schedule's books open.
-- $1 deployment id, $2 now; parallel arrays: $3 job ids, $4 timeouts (ms), $5 on_disconnect, $6 whether rescheduled,
-- $7 schedules, $8 anchors, $9 next ticks or null, $10 their run_at or null; $7 to $10 count only where rescheduled.
WITH carried AS (
    UPDATE cron_jobs j
    SET deployment_id = $1, timeout_ms = c.timeout_ms, on_disconnect = c.on_disconnect,
        revision = j.revision + c.rescheduled::integer,
        schedule = CASE WHEN c.rescheduled THEN c.schedule ELSE j.schedule END,
        anchor = CASE WHEN c.rescheduled THEN c.anchor ELSE j.anchor END,
        next_tick = CASE WHEN c.rescheduled THEN c.next_tick ELSE j.next_tick END,
        next_execution = CASE WHEN c.rescheduled THEN c.next_execution ELSE j.next_execution END
    FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::boolean[], $7::text[], $8::timestamptz[],
                $9::timestamptz[], $10::timestamptz[])
        AS c (job_id, timeout_ms, on_disconnect, rescheduled, schedule, anchor, next_tick, next_execution)
    WHERE j.id = c.job_id
    RETURNING j.id, j.revision, j.schedule, j.anchor, c.rescheduled
), closed AS (
    UPDATE cron_schedules s SET until_at = greatest(s.from_at, $2)
    FROM carried c
    WHERE c.rescheduled AND s.job_id = c.id AND s.revision = c.revision - 1
)
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, from_at)
SELECT id, revision, schedule, anchor, $2 FROM carried WHERE rescheduled;

-- name: RemoveCronJobs
-- Removes jobs and closes their books. What runs finishes. $1 job ids, $2 now.
WITH removed AS (
    UPDATE cron_jobs
    SET removed_at = $2, revision = revision + 1, next_tick = NULL, next_execution = NULL
    WHERE id = ANY($1::bigint[])
    RETURNING id
)
UPDATE cron_schedules s SET until_at = greatest(s.from_at, $2)
FROM removed
WHERE s.job_id = removed.id AND s.until_at IS NULL;

-- name: AddSkips
-- Parallel arrays: $1 job ids, $2 reasons, $3 first ticks, $4 last ticks, $5 ticks. $6 who decided.
INSERT INTO cron_skips (job_id, reason, first_tick, last_tick, ticks, controller_id)
SELECT s.job_id, s.reason, s.first_tick, s.last_tick, s.ticks, $6
FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[])
    AS s (job_id, reason, first_tick, last_tick, ticks);

-- name: ListJobs
-- $1 after this key; $2 namespace, $3 module, $4 verb, $5 status, "" for any; $6 limit.
SELECT j.id, j.key, j.namespace, j.module, j.verb, j.schedule, j.anchor, s.status, j.slot, d.key AS deployment,
       j.timeout_ms, j.on_disconnect, j.created_at, j.removed_at, j.next_tick, j.next_execution, j.last_outcome,
       j.last_run_at, j.last_started_at, j.last_ended_at, j.execution_id
FROM cron_jobs j
JOIN cron_job_status s ON s.job_id = j.id
JOIN deployments d ON d.id = j.deployment_id
WHERE j.removed_at IS NULL AND j.key > '' AND j.key > $1
  AND ($2 = '' OR j.namespace = $2) AND ($3 = '' OR j.module = $3) AND ($4 = '' OR j.verb = $4)
  AND ($5 = '' OR s.status = $5)
ORDER BY j.key
LIMIT $6;

-- name: GetJob
-- The job of that key that is not removed. $1 key.
SELECT j.id, j.key, j.namespace, j.module, j.verb, j.schedule, j.anchor, s.status, j.slot, d.key AS deployment,
       j.timeout_ms, j.on_disconnect, j.created_at, j.removed_at, j.next_tick, j.next_execution, j.last_outcome,
       j.last_run_at, j.last_started_at, j.last_ended_at, j.execution_id
FROM cron_jobs j
JOIN cron_job_status s ON s.job_id = j.id
JOIN deployments d ON d.id = j.deployment_id
WHERE j.removed_at IS NULL AND j.key > '' AND j.key = $1;

-- name: GetJobsById
-- Removed ones among them. $1 job ids.
SELECT j.id, j.key, j.namespace, j.module, j.verb, j.schedule, j.anchor, s.status, j.slot, d.key AS deployment,
       j.timeout_ms, j.on_disconnect, j.created_at, j.removed_at, j.next_tick, j.next_execution, j.last_outcome,
       j.last_run_at, j.last_started_at, j.last_ended_at, j.execution_id
FROM cron_jobs j
JOIN cron_job_status s ON s.job_id = j.id
JOIN deployments d ON d.id = j.deployment_id
WHERE j.id = ANY($1::bigint[])
ORDER BY j.id;

-- name: GetSkippedTicks
-- Ticks of all time by job and reason. $1 job ids.
SELECT job_id, reason, sum(ticks)::bigint AS ticks
FROM cron_skips
WHERE job_id = ANY($1::bigint[])
GROUP BY job_id, reason
ORDER BY job_id, reason;
