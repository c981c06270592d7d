-- What operators do to single jobs. Each is a part of a transaction that has locked the job's row first.

-- name: LockJob
-- The job of that key that is not removed, locked until the transaction ends; and PostgreSQL's now, past any wait for the
-- lock. $1 key. Other tables are as they were before that wait: a deployment made since has no key here.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick, policy, verb, source,
       paused_at IS NOT NULL AND coalesce(paused_until > greatest(clock_timestamp(), last_tick), true) AS paused, paused_tick,
       (SELECT coalesce(s.until_at, s.from_at) FROM cron_schedules s WHERE s.job_id = cron_jobs.id
        ORDER BY s.revision DESC LIMIT 1) AS opened_at,
       cancelled_at IS NOT NULL AS cancelled, paused_until, ahead_from, ahead_until, orphaned_at IS NOT NULL AS orphaned,
       orphaned_tick, next_execution,
       next_tick, next_execution, paused_at, paused_tick, paused_until, paused_by, paused_note, cancelled_at,
       cancelled_by, cancelled_note, ahead_from, ahead_until, orphaned_tick,
       state = 'executing' OR running > 0 AS running, last_outcome,
       deployment_id, (SELECT d.key FROM deployments d WHERE d.id = deployment_id) AS deployment, namespace, module,
       payload, labels, timeout_ms, on_disconnect, execution_id, template, clock_timestamp() AS now
FROM cron_jobs
WHERE removed_at IS NULL AND key > '' AND key = $1
FOR NO KEY UPDATE;

-- name: LockJobsById
-- As LockJob, those of the ids that are not removed, locked in their order. $1 job ids.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick, policy, verb, source,
       paused_at IS NOT NULL AND coalesce(paused_until > greatest(clock_timestamp(), last_tick), true) AS paused, paused_tick,
       (SELECT coalesce(s.until_at, s.from_at) FROM cron_schedules s WHERE s.job_id = cron_jobs.id
        ORDER BY s.revision DESC LIMIT 1) AS opened_at,
       cancelled_at IS NOT NULL AS cancelled, paused_until, ahead_from, ahead_until, orphaned_at IS NOT NULL AS orphaned,
       orphaned_tick, next_execution,
       next_tick, next_execution, paused_at, paused_tick, paused_until, paused_by, paused_note, cancelled_at,
       cancelled_by, cancelled_note, ahead_from, ahead_until, orphaned_tick,
       state = 'executing' OR running > 0 AS running, last_outcome,
       deployment_id, (SELECT d.key FROM deployments d WHERE d.id = deployment_id) AS deployment, namespace, module,
       payload, labels, timeout_ms, on_disconnect, execution_id, template, clock_timestamp() AS now
FROM cron_jobs
WHERE id = ANY($1::bigint[]) AND (removed_at IS NULL) IS TRUE
ORDER BY id
FOR NO KEY UPDATE;

-- name: GetJobId
-- Of the job of that key that is not removed. $1 key.
SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = $1;

-- name: GetCronJobsById
-- $1 job ids.
SELECT j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload
FROM cron_jobs j
JOIN deployments d ON d.id = j.deployment_id
WHERE j.id = ANY($1::bigint[]);

-- name: GetActiveModule
-- The active deployment of a module, and PostgreSQL's now, past any wait for its lock. $1 namespace, $2 module.
SELECT id, key, schema_text, clock_timestamp() AS now
FROM deployments
WHERE namespace = $1 AND module = $2 AND min_replicas > 0;

-- name: CreateApiJob
-- Inserts a job, and opens its books. $1 key, $2 namespace, $3 module, $4 verb, $5 slot, $6 deployment id, $7 schedule,
-- $8 anchor, $9 timeout (ms), $10 on_disconnect, $11 next tick or null, $12 its run_at or null, $13 policy, $14 how many
-- may run at once (0: one), $15 failures in a row that pause it (0: none do), $16 payload, $17 labels, $18 who, $19 now,
-- $20 the template that it starts from, or "".
WITH created AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, policy, concurrency, pause_after, payload, labels,
                           source, changed_by, created_at, changed_at, template)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17::text::jsonb, 'api', $18, $19,
            $19, $20)
    RETURNING id, revision, schedule, anchor, policy
), opened AS (
    INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
    SELECT id, revision, schedule, anchor, policy, $19 FROM created
), following AS (
    INSERT INTO cron_followers (job_id, after) SELECT id, cron_after(policy) FROM created
    WHERE cron_after(policy) IS NOT NULL
)
SELECT id FROM created;

-- name: LabelJob
-- $1 job id, $2 labels, or null to keep them, $3 who changed the job.
UPDATE cron_jobs SET labels = coalesce($2::text::jsonb, labels), changed_by = $3, changed_at = now()
WHERE id = $1;

-- name: OrderJobs
-- Writes what orders make of jobs; the revision grows, so that no end computed before can undo it.
-- $1 now, $2 who; parallel arrays: $3 job ids, $4 whether its failures are forgotten, $5 next ticks or null, $6 their
-- run_at or null, $7 paused since, $8 first ticks that the pause keeps from running, $9 until, $10 by, $11 note,
-- $12 cancelled since, $13 by, $14 note, $15 and $16 first and last tick decided ahead, $17 an orphaned job's first tick; $7 to $17 may be null.
UPDATE cron_jobs j
SET next_tick = o.next_tick, next_execution = o.next_execution, paused_at = o.paused_at, paused_tick = o.paused_tick,
    paused_until = o.paused_until, paused_by = o.paused_by, paused_note = o.paused_note, cancelled_at = o.cancelled_at,
    cancelled_by = o.cancelled_by, cancelled_note = o.cancelled_note, ahead_from = o.ahead_from,
    ahead_until = o.ahead_until, orphaned_tick = o.orphaned_tick, failures = CASE WHEN o.forgets THEN 0 ELSE j.failures END,
    revision = j.revision + 1, changed_by = $2, changed_at = $1
FROM unnest($3::bigint[], $4::boolean[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[],
            $9::timestamptz[], $10::text[], $11::text[], $12::timestamptz[], $13::text[], $14::text[],
            $15::timestamptz[], $16::timestamptz[], $17::timestamptz[])
    AS o (job_id, forgets, next_tick, next_execution, paused_at, paused_tick, paused_until, paused_by, paused_note,
          cancelled_at, cancelled_by, cancelled_note, ahead_from, ahead_until, orphaned_tick)
WHERE j.id = o.job_id;

-- name: GetLeft
-- Of new jobs: what operators had set of the one of that key which was removed last. A pause that is over isn't any more.
-- $1 keys, $2 now.
SELECT n.id, o.cancelled_at IS NOT NULL, coalesce(o.cancelled_at, o.paused_at),
       coalesce(CASE WHEN o.cancelled_at IS NULL THEN o.paused_by ELSE o.cancelled_by END, ''),
       coalesce(CASE WHEN o.cancelled_at IS NULL THEN o.paused_note ELSE o.cancelled_note END, ''),
       CASE WHEN o.cancelled_at IS NULL THEN o.paused_until END
FROM unnest($1::text[]) AS k (key)
CROSS JOIN LATERAL (SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = k.key OFFSET 0) n
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE removed_at IS NOT NULL AND key > '' AND key = k.key
                    ORDER BY id DESC LIMIT 1) o
WHERE o.cancelled_at IS NOT NULL
   OR o.paused_at IS NOT NULL AND coalesce(o.paused_until > greatest($2, o.last_tick), true);

-- name: TakeBackSkips
-- Removes ranges that were decided ahead and reach beyond now. Answers with what they were, for what is left of them.
-- Parallel arrays: $1 job ids, $2 from these ticks on; $3 now, $4 reasons.
DELETE FROM cron_skips s
USING unnest($1::bigint[], $2::timestamptz[]) AS t (job_id, from_tick)
WHERE s.job_id = t.job_id AND s.first_tick >= t.from_tick AND s.last_tick > $3 AND s.reason = ANY($4::text[])
RETURNING s.job_id, s.reason, s.first_tick;

-- name: CloseBooks
-- $1 job ids, $2 where each one's books end.
UPDATE cron_schedules s SET until_at = greatest(s.from_at, c.closes_at)
FROM unnest($1::bigint[], $2::timestamptz[]) AS c (job_id, closes_at)
WHERE s.job_id = c.job_id AND s.until_at IS NULL;

-- name: OpenBooks
-- Of jobs without open books, by their schedule and revision as they are. $1 job ids, $2 where each one's books begin.
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
SELECT j.id, j.revision, j.schedule, j.anchor, j.policy, o.opens_at
FROM unnest($1::bigint[], $2::timestamptz[]) AS o (job_id, opens_at)
CROSS JOIN LATERAL (SELECT id, revision, schedule, anchor, policy FROM cron_jobs WHERE id = o.job_id OFFSET 0) j;

-- name: ForgetActivations
-- What waits beside these jobs' schedules goes. $1 job ids.
DELETE FROM cron_activations WHERE job_id = ANY($1::bigint[]) RETURNING job_id;

-- name: CancelExecutionsOfJobs
-- Marks what runs of these jobs and isn't marked yet, and tells whoever listens. Answers with the job of each one that
-- runs, marked now or before. $1 job ids, $2 who, $3 why, $4 leave those alone whose rows somebody else has locked.
-- Executions come before jobs wherever both are locked (see EndCronJob).
WITH running AS MATERIALIZED (
    SELECT e.id, e.job_id, e.cancel_requested_at IS NULL AS fresh
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT id, job_id, cancel_requested_at FROM cron_executions
        WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id AND job_id = ANY($1::bigint[]) OFFSET 0
    ) e
), locked AS MATERIALIZED ( -- by id alone: see cron_jobs.sql for what a tick would do here
    SELECT * FROM (SELECT id FROM cron_executions
                   WHERE NOT $4::boolean AND id = ANY (ARRAY(SELECT id FROM running WHERE fresh)) AND ended_at IS NULL
                   ORDER BY id FOR NO KEY UPDATE) waited
    UNION ALL
    SELECT * FROM (SELECT id FROM cron_executions
                   WHERE $4::boolean AND id = ANY (ARRAY(SELECT id FROM running WHERE fresh)) AND ended_at IS NULL
                   ORDER BY id FOR NO KEY UPDATE SKIP LOCKED) skipping
), marked AS (
    UPDATE cron_executions e SET cancel_requested_at = now(), cancel_requested_by = $2, cancel_note = $3
    FROM locked l
    WHERE e.id = ANY (ARRAY[l.id])
    RETURNING e.id
), told AS MATERIALIZED (
    SELECT pg_notify(current_schema() || '.cancels', id::text) FROM marked
)
SELECT job_id, id FROM running WHERE (SELECT count(*) FROM told) >= 0 ORDER BY id;

-- name: GetFateOfTick
-- What became of a tick of a job: its latest execution, and the reason for which it was skipped; null where there is none.
-- $1 job id, $2 tick.
SELECT (SELECT e.id FROM cron_executions e WHERE e.job_id = $1 AND e.tick = $2 ORDER BY e.attempt DESC LIMIT 1)
           AS execution_id,
       (SELECT s.reason FROM cron_skips s WHERE s.job_id = $1 AND s.first_tick <= $2 AND s.last_tick >= $2
        ORDER BY s.first_tick DESC LIMIT 1) AS reason;

-- name: RunJobsByHand
-- $1 run_at, $2 who asks, $3 payload or null for each job's own; parallel arrays: $4 job ids, $5 ticks.
INSERT INTO cron_activations (job_id, slot, attempt, run_at, requested_by, trigger, tick, payload)
SELECT j.id, j.slot, 1, $1, $2, 'manual', w.tick, $3
FROM unnest($4::bigint[], $5::timestamptz[]) AS w (job_id, tick)
CROSS JOIN LATERAL (SELECT id, slot FROM cron_jobs WHERE id = w.job_id OFFSET 0) j
RETURNING id;

-- name: GetActivationsById
-- $1 ids.
SELECT a.id AS activation_id, a.tick, a.until_tick, a.attempt, a.trigger, a.run_at,
       coalesce(a.payload, '') AS activation_payload, a.beside,
       j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload
FROM unnest($1::bigint[]) asked (id)
CROSS JOIN LATERAL (SELECT * FROM cron_activations WHERE id = asked.id OFFSET 0) a
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = a.job_id OFFSET 0) j
JOIN deployments d ON d.id = j.deployment_id;

-- name: FindJobs
-- Ids and keys of jobs that are not removed, in order of their ids. $1 after this id; $2 namespace, $3 module, $4 verb,
-- $5 status, "" for any; $6 labels that they have (JSON); $7 limit.
SELECT j.id, j.key
FROM cron_jobs j
WHERE j.removed_at IS NULL AND j.id > $1
  AND ($2 = '' OR j.namespace = $2) AND ($3 = '' OR j.module = $3) AND ($4 = '' OR j.verb = $4)
  AND ($6::text = '{}' OR j.labels @> $6::text::jsonb)
  AND ($5 = '' OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = $5 OFFSET 0))
ORDER BY j.id
LIMIT $7;

-- name: CountJobs
-- How many FindJobs would find. $1 to $5 its $2 to $6.
SELECT count(*)
FROM cron_jobs j
WHERE j.removed_at IS NULL AND j.key > ''
  AND ($1 = '' OR j.namespace = $1) AND ($2 = '' OR j.module = $2) AND ($3 = '' OR j.verb = $3)
  AND ($5::text = '{}' OR j.labels @> $5::text::jsonb)
  AND ($4 = '' OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = $4 OFFSET 0));

-- name: FindChosenJobs
-- docs/decisions/0012: by the range of keys, as an index of modules slows every end
-- As FindJobs, of jobs with labels, or else of a module: by their indexes, however few they are. $1 to $7 as there; $6 is
-- not '{}', or $3 not "".
WITH chosen AS MATERIALIZED (
    SELECT id, key, namespace, module, verb, removed_at FROM cron_jobs
    WHERE $6::text <> '{}' AND labels <> '{}' AND labels @> $6::text::jsonb
    UNION ALL
    SELECT j.id, j.key, j.namespace, j.module, j.verb, j.removed_at
    FROM cron_limits l -- has a row for each module that ever was
    CROSS JOIN LATERAL (
        SELECT CASE l.namespace WHEN 'default' THEN '' ELSE l.namespace || '/' END || l.module AS prefix
    ) k
    CROSS JOIN LATERAL ( -- '/' is what comes after '.'
        SELECT * FROM cron_jobs
        WHERE removed_at IS NULL AND key > '' AND key >= k.prefix || '.' AND key < k.prefix || '/' OFFSET 0
    ) j
    WHERE $6::text = '{}' AND l.module > '' AND l.module = $3
)
SELECT j.id, j.key
FROM chosen j
WHERE j.removed_at IS NULL AND j.id > $1
  AND ($2 = '' OR j.namespace = $2) AND ($3 = '' OR j.module = $3) AND ($4 = '' OR j.verb = $4)
  AND ($5 = '' OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = $5 OFFSET 0))
ORDER BY j.id
LIMIT $7;

-- name: FindChosenByKey
-- The same, in order of their keys. $1 after this key, $2 to $7 as there.
WITH chosen AS MATERIALIZED (
    SELECT id, key, namespace, module, verb, removed_at FROM cron_jobs
    WHERE $6::text <> '{}' AND labels <> '{}' AND labels @> $6::text::jsonb
    UNION ALL
    SELECT j.id, j.key, j.namespace, j.module, j.verb, j.removed_at
    FROM cron_limits l -- has a row for each module that ever was
    CROSS JOIN LATERAL (
        SELECT CASE l.namespace WHEN 'default' THEN '' ELSE l.namespace || '/' END || l.module AS prefix
    ) k
    CROSS JOIN LATERAL ( -- '/' is what comes after '.'
        SELECT * FROM cron_jobs
        WHERE removed_at IS NULL AND key > '' AND key >= k.prefix || '.' AND key < k.prefix || '/' OFFSET 0
    ) j
    WHERE $6::text = '{}' AND l.module > '' AND l.module = $3
)
SELECT j.id, j.key
FROM chosen j
WHERE j.removed_at IS NULL AND j.key > $1
  AND ($2 = '' OR j.namespace = $2) AND ($3 = '' OR j.module = $3) AND ($4 = '' OR j.verb = $4)
  AND ($5 = '' OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = $5 OFFSET 0))
ORDER BY j.key
LIMIT $7;

-- name: CountChosenJobs
-- How many FindChosenJobs would find. $1 to $5 its $2 to $6.
WITH chosen AS MATERIALIZED (
    SELECT id, key, namespace, module, verb, removed_at FROM cron_jobs
    WHERE $5::text <> '{}' AND labels <> '{}' AND labels @> $5::text::jsonb
    UNION ALL
    SELECT j.id, j.key, j.namespace, j.module, j.verb, j.removed_at
    FROM cron_limits l -- has a row for each module that ever was
    CROSS JOIN LATERAL (
        SELECT CASE l.namespace WHEN 'default' THEN '' ELSE l.namespace || '/' END || l.module AS prefix
    ) k
    CROSS JOIN LATERAL ( -- '/' is what comes after '.'
        SELECT * FROM cron_jobs
        WHERE removed_at IS NULL AND key > '' AND key >= k.prefix || '.' AND key < k.prefix || '/' OFFSET 0
    ) j
    WHERE $5::text = '{}' AND l.module > '' AND l.module = $2
)
SELECT count(*)
FROM chosen j
WHERE j.removed_at IS NULL
  AND ($1 = '' OR j.namespace = $1) AND ($2 = '' OR j.module = $2) AND ($3 = '' OR j.verb = $3)
  AND ($4 = '' OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = $4 OFFSET 0));

-- name: GetLatestStarts
-- Of what jobs' schedules claimed last. $1 job ids, $2 their last ticks.
SELECT l.job_id, e.tick, e.run_at, e.claimed_at
FROM unnest($1::bigint[], $2::timestamptz[]) AS l (job_id, last_tick)
CROSS JOIN LATERAL (
    SELECT tick, run_at, claimed_at FROM cron_executions
    WHERE job_id = l.job_id AND tick = l.last_tick AND trigger IN ('schedule', 'catch_up')
    ORDER BY attempt LIMIT 1
) e;
