-- Jobs whose target is a queue: their claims put a message there, in the same transaction (docs/message-queues.md).
-- See cron_jobs.sql for how statements over many rows are written.

-- name: EnqueueCronJobs
-- docs/decisions/0088: the claim is the end
-- As StartCronJobs, for jobs whose ticks are completed once their message is in the queue. It inserts the message and
-- the execution, which has ended by that, and moves the job to its next tick. Nothing holds the job, and no limit
-- counts it. All but `:controller_id` and `:whole` are parallel arrays, `:job_ids` ascending. The next ticks are those
-- after an execution that ends at once.
-- A job that others follow is left as it is, and answered as `more`. The caller asks again with `:whole`, in a
-- transaction, and adds the followers' activations there.
WITH open AS MATERIALIZED (
    SELECT w.*, j.*, CASE WHEN j.id IS NOT NULL AND (:whole::boolean OR NOT j.followed)
                          THEN nextval('cron_execution_ids') END AS execution_id
    FROM unnest(:job_ids::bigint[], :expected_ticks::timestamptz[], :ticks::timestamptz[], :run_ats::timestamptz[],
                :deployments::text[], :triggers::text[], :missed::bigint[], :missed_after::bigint[],
                :next_ticks[?]::timestamptz[], :next_run_ats[?]::timestamptz[], :revisions::integer[])
        WITH ORDINALITY
        AS w (job_id, expected_tick, run_tick, run_at, deployment, trigger, missed, missed_after, next_tick,
              next_execution, revision, position)
    LEFT JOIN LATERAL (
        SELECT id, deployment_id, namespace, module, verb, payload, revision AS own_revision, missed AS missed_before,
               last_tick AS previous_tick, last_success AS previous_success, executions + 1 AS number,
               EXISTS (SELECT FROM cron_followers WHERE after = key OFFSET 0) AS followed
        FROM cron_jobs
        WHERE id = w.job_id AND NOT cron_full(state, running, concurrency) AND next_tick = w.expected_tick
          AND coalesce(next_execution, 'infinity') <= now() AND w.run_at <= now()
          AND (last_tick IS NULL OR last_tick < w.run_tick) AND revision = w.revision
          AND EXISTS (SELECT FROM controllers WHERE id = :controller_id AND lease_expires_at > now())
          AND (SELECT min_replicas > 0 AND key = w.deployment FROM deployments WHERE id = deployment_id)
        FOR NO KEY UPDATE SKIP LOCKED
    ) j ON true
), moved AS (
    UPDATE cron_jobs j
    SET last_tick = o.run_tick, missed = o.missed_after, executions = o.number, next_tick = o.next_tick,
        next_execution = o.next_execution, last_run_at = o.run_at, last_started_at = now(), last_ended_at = now(),
        last_outcome = 'completed', last_success = greatest(j.last_success, o.run_tick), failures = 0
    FROM (SELECT * FROM open WHERE execution_id IS NOT NULL) o
    WHERE j.id = o.id
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                                 hard_deadline, trigger, missed, previous_tick, previous_success, number, started_at,
                                 ended_at, outcome)
    SELECT execution_id, id, deployment_id, run_tick, run_at, now(), :controller_id, '', now(), trigger,
           missed_before + missed, previous_tick, previous_success, number, now(), now(), 'completed'
    FROM open WHERE execution_id IS NOT NULL
), enqueued AS (
    INSERT INTO cron_queue (namespace, queue, workspace, job_id, execution_id, tick, run_at, payload)
    SELECT namespace, cron_queue_name(module), cron_workspace(verb), id, execution_id, run_tick, run_at, payload
    FROM open WHERE execution_id IS NOT NULL ORDER BY run_at, id
)
SELECT o.job_id, o.execution_id IS NOT NULL AS updated,
       o.execution_id IS NOT NULL OR coalesce(d.min_replicas > 0, false) AS active,
       o.execution_id, now() AS claimed_at,
       o.execution_id IS NULL AND coalesce(cron_full(j.state, j.running, j.concurrency), false) AS executing,
       CASE WHEN o.execution_id IS NULL THEN j.next_tick ELSE o.next_tick END AS next_tick,
       CASE WHEN o.execution_id IS NULL THEN j.next_execution ELSE o.next_execution END AS next_execution,
       coalesce(o.own_revision, j.revision, 0) AS revision, o.execution_id IS NULL AND o.id IS NOT NULL AS more,
       coalesce(o.followed, false) AS followed
FROM open o
LEFT JOIN cron_jobs j ON j.id = CASE WHEN o.execution_id IS NULL THEN o.job_id END
LEFT JOIN deployments d ON d.id = j.deployment_id
ORDER BY o.position;

-- name: AddMessages
-- The messages of executions that have just been claimed without a runner, in the transaction of their claim. Parallel
-- arrays; `:ticks`: where their rows are. Answers with whether their consumers end them.
WITH claimed AS MATERIALIZED (
    SELECT e.*, j.namespace, j.module, j.verb, j.own_payload, cron_awaits(j.policy) AS awaited
    FROM unnest(:execution_ids::bigint[], :ticks::timestamptz[]) c (execution_id, tick)
    CROSS JOIN LATERAL (
        SELECT id, job_id, tick, run_at, attempt, payload, hard_deadline FROM cron_executions
        WHERE id = c.execution_id AND tick = c.tick OFFSET 0
    ) e
    CROSS JOIN LATERAL (
        SELECT namespace, module, verb, policy, payload AS own_payload FROM cron_jobs WHERE id = e.job_id OFFSET 0
    ) j
), enqueued AS (
    INSERT INTO cron_queue (namespace, queue, workspace, job_id, execution_id, tick, run_at, attempt, payload, awaited,
                            hard_deadline)
    SELECT namespace, cron_queue_name(module), cron_workspace(verb), job_id, id, tick, run_at, attempt,
           coalesce(payload, own_payload), awaited, CASE WHEN awaited THEN hard_deadline END
    FROM claimed ORDER BY run_at, id
)
SELECT id, tick, awaited FROM claimed;

-- name: DecideExecutions
-- Executions whose end is known at their claim, in the transaction of the claim. Their messages are in the queue, and
-- no end is awaited; or an error has kept the message out of the queue. Parallel arrays.
UPDATE cron_executions e
SET started_at = e.claimed_at, error_type = d.error_type, error_message = d.error_message
FROM unnest(:execution_ids::bigint[], :ticks::timestamptz[], :error_types[?]::text[], :error_messages[?]::text[])
    d (execution_id, tick, error_type, error_message)
WHERE e.id = ANY (ARRAY[d.execution_id]) AND e.tick = d.tick AND e.ended_at IS NULL;

-- name: GetQueueReports
-- How executions ended that this controller answers for, and that no runner has: by their consumers, or by their
-- claims.
-- Those of `:known` are left out.
(SELECT m.execution_id, m.job_id, e.claimed_at, m.outcome, m.ended_at, coalesce(m.error_type, '') AS error_type,
        coalesce(m.error_message, '') AS error_message, coalesce(m.output, '') AS output
 FROM (SELECT * FROM cron_queue WHERE ended_at IS NOT NULL AND awaited AND execution_id <> ALL(:known::bigint[])
       ORDER BY id OFFSET 0) m
 CROSS JOIN LATERAL (
     SELECT controller_id, claimed_at FROM cron_executions
     WHERE id = m.execution_id AND tick = m.tick AND job_id = m.job_id AND ended_at IS NULL OFFSET 0
 ) e
 WHERE e.controller_id = :controller_id
 LIMIT :limit::bigint)
UNION ALL
(SELECT id, job_id, claimed_at, CASE WHEN error_type IS NULL THEN 'completed' ELSE 'failed' END, claimed_at,
        coalesce(error_type, ''), coalesce(error_message, ''), ''
 FROM cron_executions
 WHERE outcome IS NULL AND started_at IS NOT NULL AND controller_id = :controller_id AND id <> ALL(:known)
 LIMIT :limit);

-- name: LockMessages
-- The messages of awaited executions, for a transaction that ends the executions otherwise. `ended`: the consumer came
-- first. A message that a consumer has locked in its own transaction is not `locked` here.
WITH there AS MATERIALIZED (
    SELECT id, execution_id FROM cron_queue WHERE awaited AND execution_id = ANY(:execution_ids::bigint[])
), locked AS MATERIALIZED (
    SELECT id, ended_at FROM cron_queue WHERE id = ANY (ARRAY(SELECT id FROM there))
    ORDER BY id FOR UPDATE SKIP LOCKED
)
SELECT t.execution_id, l.id IS NOT NULL AS locked, l.ended_at IS NOT NULL AS ended
FROM there t LEFT JOIN locked l ON l.id = t.id;

-- name: DeleteMessages
-- Of executions that have ended, in the transaction of their end.
DELETE FROM cron_queue WHERE awaited AND execution_id = ANY(:execution_ids::bigint[]);

-- name: MakeQueue
-- What stands for a queue among deployments, so that its jobs have one, and it may have a limit.
WITH limitable AS (
    INSERT INTO cron_limits (namespace, module) VALUES (:namespace, ''), (:namespace, :module) ON CONFLICT DO NOTHING
)
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas, created_at, activated_at)
VALUES (:key, :namespace, :module, '', '', 1, now(), now())
ON CONFLICT DO NOTHING;
