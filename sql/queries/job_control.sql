-- What operators do to single jobs. Each is a part of a transaction that has locked the job's row first.

-- name: LockJob
-- The job of that key that is not removed, locked until the transaction ends; and PostgreSQL's now, past any wait for
-- the lock. Other tables are as they were before that wait: a deployment made since has no key here.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick, policy, verb, source,
       paused_at IS NOT NULL AND coalesce(paused_until > greatest(clock_timestamp(), last_tick), true) AS paused,
       paused_tick,
       (SELECT coalesce(s.until_at, s.from_at) FROM cron_schedules s WHERE s.job_id = cron_jobs.id
        ORDER BY s.revision DESC LIMIT 1) AS opened_at,
       cancelled_at IS NOT NULL AS cancelled, paused_until, ahead_from, ahead_until,
       orphaned_at IS NOT NULL AS orphaned, orphaned_tick, next_execution,
       next_tick, next_execution, paused_at, paused_tick, paused_until, paused_by, paused_note, cancelled_at,
       cancelled_by, cancelled_note, ahead_from, ahead_until, orphaned_tick,
       state = 'executing' OR running > 0 AS running, last_outcome,
       deployment_id, (SELECT d.key FROM deployments d WHERE d.id = deployment_id) AS deployment, namespace, module,
       schedule, anchor, timeout_ms, on_disconnect, policy, labels, payload, execution_id, template,
       clock_timestamp() AS now
FROM cron_jobs
WHERE removed_at IS NULL AND key > '' AND key = :key
FOR NO KEY UPDATE;

-- name: LockJobsById
-- As LockJob, those of the ids that are not removed, locked in their order.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick, policy, verb, source,
       paused_at IS NOT NULL AND coalesce(paused_until > greatest(clock_timestamp(), last_tick), true) AS paused,
       paused_tick,
       (SELECT coalesce(s.until_at, s.from_at) FROM cron_schedules s WHERE s.job_id = cron_jobs.id
        ORDER BY s.revision DESC LIMIT 1) AS opened_at,
       cancelled_at IS NOT NULL AS cancelled, paused_until, ahead_from, ahead_until,
       orphaned_at IS NOT NULL AS orphaned, orphaned_tick, next_execution,
       next_tick, next_execution, paused_at, paused_tick, paused_until, paused_by, paused_note, cancelled_at,
       cancelled_by, cancelled_note, ahead_from, ahead_until, orphaned_tick,
       state = 'executing' OR running > 0 AS running, last_outcome,
       deployment_id, (SELECT d.key FROM deployments d WHERE d.id = deployment_id) AS deployment, namespace, module,
       schedule, anchor, timeout_ms, on_disconnect, policy, labels, payload, execution_id, template,
       clock_timestamp() AS now
FROM cron_jobs
WHERE id = ANY(:job_ids::bigint[]) AND (removed_at IS NULL) IS TRUE
ORDER BY id
FOR NO KEY UPDATE;

-- name: GetJobId
-- Of the job of that key that is not removed.
SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = :key;

-- name: GetCronJobsById
SELECT * FROM cron_scheduled_jobs WHERE id = ANY(:job_ids::bigint[]);

-- name: GetActiveModule
-- The active deployment of a module, and PostgreSQL's now, past any wait for its lock.
SELECT id, key, schema_text, clock_timestamp() AS now
FROM deployments
WHERE namespace = :namespace AND module = :module AND min_replicas > 0;

-- name: FindJobIds
-- Ids and keys of the jobs of these keys that are not removed.
SELECT j.id, k.key
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = k.key OFFSET 0) j;

-- name: GetSpecs
-- What the jobs of these keys are, as far as they are not removed. They are not locked: claims don't wait for a look.
SELECT k.key, j.*
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (
    SELECT id, template, schedule, anchor, timeout_ms, on_disconnect, policy, labels, payload
    FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = k.key OFFSET 0
) j;

-- name: CreateApiJobs
-- Inserts jobs, and opens their books. All but `:actor`, `:now` and `:set_name` are parallel arrays.
-- `:concurrencies` and `:pause_afters` as in CreateCronJobs. `:templates`: what each one starts from, or "".
-- `:set_name`: the set that owns them, or "".
WITH created AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, policy, concurrency, pause_after, payload, labels,
                           source, changed_by, created_at, changed_at, template, set_name)
    SELECT a.key, a.namespace, a.module, a.verb, a.slot, a.deployment_id, a.schedule, a.anchor, a.timeout_ms,
           a.on_disconnect, a.next_tick, a.next_execution, a.policy, a.concurrency, a.pause_after, a.payload,
           a.labels::jsonb, 'api', :actor, :now, :now, a.template, :set_name
    FROM unnest(:keys::text[], :namespaces::text[], :modules::text[], :verbs::text[], :slots::integer[],
                :deployment_ids::bigint[], :schedules::text[], :anchors::timestamptz[], :timeouts_ms::bigint[],
                :on_disconnects::text[], :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[],
                :policies::text[], :concurrencies::integer[], :pause_afters::integer[], :payloads::text[],
                :labels::text[], :templates::text[])
        AS a (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect, next_tick,
              next_execution, policy, concurrency, pause_after, payload, labels, template)
    RETURNING id, key, revision, schedule, anchor, policy
), opened AS (
    INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
    SELECT id, revision, schedule, anchor, policy, :now FROM created
), following AS (
    INSERT INTO cron_followers (job_id, after) SELECT id, cron_after(policy) FROM created
    WHERE cron_after(policy) IS NOT NULL
)
SELECT id, key FROM created;

-- name: LabelJobs
-- `:job_ids` and `:labels` are parallel arrays. Labels that are null: as they are.
UPDATE cron_jobs j SET labels = coalesce(l.labels::jsonb, j.labels), changed_by = :actor, changed_at = now()
FROM unnest(:job_ids::bigint[], :labels[?]::text[]) AS l (job_id, labels)
WHERE j.id = l.job_id;

-- name: OrderJobs
-- Writes what orders make of jobs; the revision grows, so that no end computed before can undo it.
-- From `:job_ids` on, parallel arrays. `:forgets`: whether its failures are forgotten. `:paused_ticks`: the first ones
-- that the pause keeps from running. `:ahead_froms` and `:ahead_untils`: the first and the last tick decided ahead.
UPDATE cron_jobs j
SET next_tick = o.next_tick, next_execution = o.next_execution, paused_at = o.paused_at, paused_tick = o.paused_tick,
    paused_until = o.paused_until, paused_by = o.paused_by, paused_note = o.paused_note, cancelled_at = o.cancelled_at,
    cancelled_by = o.cancelled_by, cancelled_note = o.cancelled_note, ahead_from = o.ahead_from,
    ahead_until = o.ahead_until, orphaned_tick = o.orphaned_tick,
    failures = CASE WHEN o.forgets THEN 0 ELSE j.failures END,
    revision = j.revision + 1, changed_by = :actor, changed_at = :now
FROM unnest(:job_ids::bigint[], :forgets::boolean[], :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[],
            :paused_ats[?]::timestamptz[], :paused_ticks[?]::timestamptz[], :paused_untils[?]::timestamptz[],
            :paused_bys[?]::text[], :paused_notes[?]::text[], :cancelled_ats[?]::timestamptz[],
            :cancelled_bys[?]::text[], :cancelled_notes[?]::text[], :ahead_froms[?]::timestamptz[],
            :ahead_untils[?]::timestamptz[], :orphaned_ticks[?]::timestamptz[])
    AS o (job_id, forgets, next_tick, next_execution, paused_at, paused_tick, paused_until, paused_by, paused_note,
          cancelled_at, cancelled_by, cancelled_note, ahead_from, ahead_until, orphaned_tick)
WHERE j.id = o.job_id;

-- name: GetLeft
-- For new jobs: the orders that were in force for the last removed job of the same key. An ended pause doesn't count.
SELECT n.id, o.cancelled_at IS NOT NULL, coalesce(o.cancelled_at, o.paused_at),
       coalesce(CASE WHEN o.cancelled_at IS NULL THEN o.paused_by ELSE o.cancelled_by END, ''),
       coalesce(CASE WHEN o.cancelled_at IS NULL THEN o.paused_note ELSE o.cancelled_note END, ''),
       CASE WHEN o.cancelled_at IS NULL THEN o.paused_until END
FROM unnest(:keys::text[]) AS k (key)
CROSS JOIN LATERAL (SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = k.key OFFSET 0) n
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE removed_at IS NOT NULL AND key > '' AND key = k.key
                    ORDER BY id DESC LIMIT 1) o
WHERE o.cancelled_at IS NOT NULL
   OR o.paused_at IS NOT NULL AND coalesce(o.paused_until > greatest(:now, o.last_tick), true);

-- name: TakeBackSkips
-- Removes ranges that were decided ahead and reach beyond now. Answers with them, as their past part is added again.
-- `:job_ids` and `:from_ticks` are parallel arrays.
DELETE FROM cron_skips s
USING unnest(:job_ids::bigint[], :from_ticks::timestamptz[]) AS t (job_id, from_tick)
WHERE s.job_id = t.job_id AND s.first_tick >= t.from_tick AND s.last_tick > :now AND s.reason = ANY(:reasons::text[])
RETURNING s.job_id, s.reason, s.first_tick;

-- name: CloseBooks
-- `:closes_ats`: where each one's books end.
UPDATE cron_schedules s SET until_at = greatest(s.from_at, c.closes_at)
FROM unnest(:job_ids::bigint[], :closes_ats::timestamptz[]) AS c (job_id, closes_at)
WHERE s.job_id = c.job_id AND s.until_at IS NULL;

-- name: OpenBooks
-- Opens spans for jobs without an open one, by their present schedule and revision. `:opens_ats`: where each begins.
INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
SELECT j.id, j.revision, j.schedule, j.anchor, j.policy, o.opens_at
FROM unnest(:job_ids::bigint[], :opens_ats::timestamptz[]) AS o (job_id, opens_at)
CROSS JOIN LATERAL (SELECT id, revision, schedule, anchor, policy FROM cron_jobs WHERE id = o.job_id OFFSET 0) j;

-- name: ForgetActivations
-- Deletes all activations of these jobs.
DELETE FROM cron_activations WHERE job_id = ANY(:job_ids::bigint[]) RETURNING job_id;

-- name: CancelExecutionsOfJobs
-- Marks executions of these jobs that run and are not marked yet, and notifies controllers. Answers with the job of
-- each running one, marked now or before. The jobs are locked already, as jobs come before executions (see EndCronJob).
WITH running AS MATERIALIZED (
    SELECT e.id, e.job_id, e.cancel_requested_at IS NULL AS fresh
    FROM controllers c
    CROSS JOIN LATERAL (
        SELECT id, job_id, cancel_requested_at FROM cron_executions
        WHERE outcome IS NULL AND controller_id > '' AND controller_id = c.id
          AND job_id = ANY(:job_ids::bigint[]) OFFSET 0
    ) e
), locked AS MATERIALIZED ( -- by id alone: see cron_jobs.sql for what a tick would do here
    SELECT id FROM cron_executions
    WHERE id = ANY (ARRAY(SELECT id FROM running WHERE fresh)) AND ended_at IS NULL
    ORDER BY id FOR NO KEY UPDATE
), marked AS (
    UPDATE cron_executions e SET cancel_requested_at = now(), cancel_requested_by = :actor, cancel_note = :note
    FROM locked l
    WHERE e.id = ANY (ARRAY[l.id])
    RETURNING e.id
), told AS MATERIALIZED (
    SELECT pg_notify(current_schema() || '.cancels', id::text) FROM marked
)
SELECT job_id, id FROM running WHERE (SELECT count(*) FROM told) >= 0 ORDER BY id;

-- name: GetFateOfTick
-- What became of a tick of a job: its latest execution, and the reason for which it was skipped; null where there is
-- none.
SELECT (SELECT e.id FROM cron_executions e WHERE e.job_id = :job_id AND e.tick = :tick ORDER BY e.attempt DESC LIMIT 1)
           AS execution_id,
       (SELECT s.reason FROM cron_skips s WHERE s.job_id = :job_id AND s.first_tick <= :tick AND s.last_tick >= :tick
        ORDER BY s.first_tick DESC LIMIT 1) AS reason;

-- name: RunJobsByHand
-- `:payload` null: each job's own. `:of_schedule`: they count as ticks, as failures, too. `:job_ids` and `:ticks` are
-- parallel arrays.
INSERT INTO cron_activations (job_id, slot, attempt, run_at, requested_by, trigger, tick, payload, of_schedule)
SELECT j.id, j.slot, 1, :run_at, :actor, 'manual', w.tick, :payload?, :of_schedule
FROM unnest(:job_ids::bigint[], :ticks::timestamptz[]) AS w (job_id, tick)
CROSS JOIN LATERAL (SELECT id, slot FROM cron_jobs WHERE id = w.job_id OFFSET 0) j
RETURNING id;

-- name: GetActivationsById
SELECT a.id AS activation_id, a.tick, a.until_tick, a.attempt, a.trigger, a.run_at,
       coalesce(a.payload, '') AS activation_payload, a.beside, j.*
FROM unnest(:activation_ids::bigint[]) asked (id)
CROSS JOIN LATERAL (SELECT * FROM cron_activations WHERE id = asked.id OFFSET 0) a
CROSS JOIN LATERAL (SELECT * FROM cron_scheduled_jobs WHERE id = a.job_id OFFSET 0) j;

-- name: GetLatestStarts
-- Of what jobs' schedules claimed last.
SELECT l.job_id, e.tick, e.run_at, e.claimed_at
FROM unnest(:job_ids::bigint[], :last_ticks::timestamptz[]) AS l (job_id, last_tick)
CROSS JOIN LATERAL (
    SELECT tick, run_at, claimed_at FROM cron_executions
    WHERE job_id = l.job_id AND tick = l.last_tick AND trigger IN ('schedule', 'catch_up')
    ORDER BY attempt LIMIT 1
) e;
