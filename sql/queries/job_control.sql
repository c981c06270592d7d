-- What operators do to single jobs. Each is a part of a transaction that has locked the job's row first.

-- name: LockJob
-- The job of that key that is not removed, locked until the transaction ends; and PostgreSQL's now, past any wait for the
-- lock. $1 key. Other tables are as they were before that wait: a deployment made since has no key here.
SELECT id, key, schedule, anchor, state = 'executing' AS executing, next_tick, last_tick, policy, verb, source,
       paused_at IS NOT NULL AS paused, paused_tick,
       (SELECT s.from_at FROM cron_schedules s WHERE s.job_id = cron_jobs.id AND s.until_at IS NULL) AS opened_at,
       deployment_id, (SELECT d.key FROM deployments d WHERE d.id = deployment_id) AS deployment, namespace, module,
       payload, labels, timeout_ms, on_disconnect, clock_timestamp() AS now
FROM cron_jobs
WHERE removed_at IS NULL AND key > '' AND key = $1
FOR NO KEY UPDATE;

-- name: GetJobId
-- Of the job of that key that is not removed. $1 key.
SELECT id FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = $1;

-- name: GetCronJob
-- $1 job id.
SELECT j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision, j.timeout_ms,
       j.on_disconnect, j.state = 'executing' OR j.running >= greatest(j.concurrency, 1) AS executing, j.next_tick,
       j.next_execution, j.policy, j.payload
FROM cron_jobs j
JOIN deployments d ON d.id = j.deployment_id
WHERE j.id = $1;

-- name: GetActiveModule
-- The active deployment of a module, and PostgreSQL's now, past any wait for its lock. $1 namespace, $2 module.
SELECT id, key, schema_text, clock_timestamp() AS now
FROM deployments
WHERE namespace = $1 AND module = $2 AND min_replicas > 0;

-- name: CreateApiJob
-- Inserts a job, and opens its books. $1 key, $2 namespace, $3 module, $4 verb, $5 slot, $6 deployment id, $7 schedule,
-- $8 anchor, $9 timeout (ms), $10 on_disconnect, $11 next tick or null, $12 its run_at or null, $13 policy, $14 how many
-- may run at once (0: one), $15 failures in a row that pause it (0: none do), $16 payload, $17 labels, $18 who, $19 now.
WITH created AS (
    INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms,
                           on_disconnect, next_tick, next_execution, policy, concurrency, pause_after, payload, labels,
                           source, changed_by, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17::text::jsonb, 'api', $18, $19,
            $19)
    RETURNING id, revision, schedule, anchor, policy
), opened AS (
    INSERT INTO cron_schedules (job_id, revision, schedule, anchor, policy, from_at)
    SELECT id, revision, schedule, anchor, policy, $19 FROM created
)
SELECT id FROM created;

-- name: LabelJob
-- $1 job id, $2 labels, or null to keep them, $3 who changed the job.
UPDATE cron_jobs SET labels = coalesce($2::text::jsonb, labels), changed_by = $3, changed_at = now()
WHERE id = $1;

-- name: PauseJob
-- Its books stay open. $1 job id, $2 the first tick that its pause keeps from running, or null, $3 who, $4 why, $5 now.
UPDATE cron_jobs
SET paused_at = $5, paused_tick = $2, paused_by = $3, paused_note = $4, revision = revision + 1, next_tick = NULL,
    next_execution = NULL, changed_at = $5
WHERE id = $1;

-- name: GetLatestStart
-- Of what a job's schedule claimed last. $1 job id, $2 its last tick.
SELECT tick, run_at, claimed_at FROM cron_executions
WHERE job_id = $1 AND tick = $2 AND trigger IN ('schedule', 'catch_up');

-- name: ResumeJob
-- $1 job id, $2 next tick or null, $3 its run_at or null, $4 who.
UPDATE cron_jobs
SET paused_at = NULL, paused_tick = NULL, paused_by = NULL, paused_note = NULL, revision = revision + 1, failures = 0,
    next_tick = $2, next_execution = $3, changed_by = $4, changed_at = now()
WHERE id = $1;
