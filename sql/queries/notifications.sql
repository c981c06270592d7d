-- What notifications read and write. The books are read by growing ids, as in watches. Nothing here locks a row that
-- claims or ends need.

-- name: GetNotifierTurn
-- Whether there is a webhook to tell, and whether it is this controller's turn to read.
SELECT position <> '' AS wanted, position <> '' AND (holder = :controller_id OR lease_until <= now()) AS ours
FROM cron_notifier WHERE single;

-- name: NotifyWebhooks
-- Heard by every controller that listens once the transaction commits.
SELECT pg_notify(current_schema() || '.webhooks', '');

-- name: TakeNotifier
-- The notifier's row, locked until the transaction ends, if it is this controller's turn and somebody wants to be told.
SELECT position, cluster, now() AS database_now,
       coalesce((SELECT late_after_ms FROM cron_defaults), 0) AS late_after_ms
FROM cron_notifier
WHERE single AND position <> '' AND (holder = :controller_id OR lease_until <= now())
FOR UPDATE SKIP LOCKED;

-- name: SaveNotifier
-- `:position`: how far it has read.
UPDATE cron_notifier
SET holder = :controller_id, lease_until = clock_timestamp() + :lease_ms::bigint * interval '1 millisecond',
    position = :position
WHERE single;

-- name: LeaveNotifier
-- A controller that leaves lets another one go on at once.
UPDATE cron_notifier SET lease_until = now() WHERE single AND holder = :controller_id AND lease_until > now();

-- name: LockNotifier
SELECT position, cluster, now() AS database_now FROM cron_notifier WHERE single FOR UPDATE;

-- name: ForgetNotices
-- There is no webhook to tell any more: forgets what was kept for notices. Later, reading begins anew.
WITH pauses AS (DELETE FROM cron_pauses), failing AS (DELETE FROM cron_failing),
     retrying AS (DELETE FROM cron_retrying),
     late AS (DELETE FROM cron_late)
UPDATE cron_notifier SET position = '', lease_until = now() WHERE single;

-- name: SeedFailing
-- Jobs that fail when somebody first wants to be told: their next success is a recovery. Reads all jobs, once.
INSERT INTO cron_failing (job_id, execution_id, tick)
SELECT id, 0, 'epoch' FROM cron_jobs WHERE failures > 0
ON CONFLICT (job_id) DO NOTHING;

-- name: FollowExecutions
-- The first row has executions above `:after_execution_id`, among `:execution_ids` with a tick from `:from_tick` on, or
-- in gaps, 5,000 of each at a time. (Gaps are parallel arrays.) It says which of them have ended, and the oldest tick
-- of those that have not. `:execution_ids` are known to run, by tick too, so that only their partitions are looked
-- into.
-- Then come, a row each, executions that may make an event. These are executions without success, of jobs that have
-- failed lately, and of jobs that are watched for late ticks. Completed ones, if a webhook wants them. And those that
-- came near their timeout after `:looked_at`, or are seen for the first time. `near_timeout_ms` is that timeout, as
-- their claim had it. The rows are read anyway, so there is no index for that (docs/decisions/0116).
WITH read AS (
    (SELECT *, true AS new FROM cron_executions WHERE id > :after_execution_id ORDER BY id LIMIT 5000)
    UNION ALL
    SELECT *, false FROM cron_executions WHERE id = ANY(:execution_ids::bigint[]) AND tick >= :from_tick
    UNION ALL
    (SELECT e.*, true FROM unnest(:first_execution_ids::bigint[], :last_execution_ids::bigint[]) AS g (first, last)
     JOIN cron_executions e ON e.id BETWEEN g.first AND g.last LIMIT 5000)
), seen AS MATERIALIZED (
    SELECT r.*, CASE WHEN n.near_at <= least(now(), r.ended_at) AND (r.new OR n.near_at > :looked_at)
                     THEN t.timeout_ms END AS near_timeout_ms
    FROM read r
    CROSS JOIN LATERAL (
        -- No runner has a message of a queue: its hard timeout has no grace.
        SELECT (date_part('epoch', r.hard_deadline - r.claimed_at) * 1000)::bigint
               - CASE WHEN r.runner_id > '' THEN :hard_grace_ms::bigint ELSE 0 END AS timeout_ms
    ) t
    CROSS JOIN LATERAL (
        SELECT r.claimed_at + t.timeout_ms * :near_percent::bigint / 100 * interval '1 millisecond' AS near_at
    ) n
), troubled AS MATERIALIZED (
    SELECT job_id FROM seen WHERE outcome NOT IN ('completed', 'cancelled')
)
SELECT now() AS database_now, array_agg(id ORDER BY id) AS ids,
       array_agg(id) FILTER (WHERE outcome IS NOT NULL) AS ended, min(tick) FILTER (WHERE outcome IS NULL) AS oldest,
       NULL::bigint AS job_id, NULL AS key, NULL AS namespace, NULL AS module, NULL AS verb, NULL AS labels,
       NULL AS policy, NULL::bigint AS execution_id, NULL::timestamptz AS tick, NULL::timestamptz AS run_at,
       NULL::integer AS attempt, NULL AS trigger, NULL::timestamptz AS claimed_at, NULL::timestamptz AS started_at,
       NULL::timestamptz AS ended_at, NULL AS outcome, NULL AS error_type, NULL AS error_message,
       NULL::timestamptz AS retry_at, NULL AS controller_id, NULL AS runner_id, NULL::bigint AS near_timeout_ms
FROM seen
UNION ALL
SELECT NULL, NULL, NULL, NULL, j.id, j.key, j.namespace, j.module, j.verb, j.labels::text, j.policy, e.id, e.tick,
       e.run_at, e.attempt, e.trigger, e.claimed_at, e.started_at, e.ended_at, e.outcome, e.error_type, e.error_message,
       e.retry_at, e.controller_id, e.runner_id, e.near_timeout_ms
FROM seen e
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
WHERE e.outcome NOT IN ('completed', 'cancelled') OR e.near_timeout_ms IS NOT NULL
   OR j.policy LIKE '%"late_after":%'
   -- By the cluster's default; 0: there is none.
   OR :late_after_ms::bigint > 0
      AND coalesce(e.started_at, e.claimed_at) > e.run_at + :late_after_ms * interval '1 millisecond'
   OR e.outcome = 'completed'
      AND (e.job_id IN (SELECT job_id FROM troubled) OR e.job_id IN (SELECT job_id FROM cron_retrying)
           OR EXISTS (SELECT FROM cron_failing f WHERE f.job_id = e.job_id)
           OR EXISTS (SELECT FROM cron_webhooks w
                      WHERE w.disabled_at IS NULL AND 'completed' = ANY (w.events)
                        AND w.namespace IN ('', j.namespace) AND w.module IN ('', j.module) AND w.job IN ('', j.key)
                        AND j.labels @> w.labels));

-- name: GetRetriesGivenUp
-- Takes failed attempts whose retry neither waits nor has begun: they were the last ones of their ticks. Also forgets
-- attempts whose retry has begun, as the retry's own end counts.
WITH given_up AS (
    DELETE FROM cron_retrying r
    WHERE NOT EXISTS (SELECT FROM cron_activations a
                      WHERE a.job_id = ANY (ARRAY[r.job_id]) AND a.tick = r.tick AND a.attempt > r.attempt)
    RETURNING r.job_id, r.tick, r.attempt
)
SELECT j.id AS job_id, j.key, j.namespace, j.module, j.verb, j.labels::text, j.policy, e.id AS execution_id, e.tick,
       e.run_at, e.attempt, e.trigger, e.claimed_at, e.started_at, e.ended_at, e.outcome, e.error_type, e.error_message,
       e.retry_at, e.controller_id, e.runner_id, j.last_success
FROM given_up g
CROSS JOIN LATERAL (SELECT * FROM cron_executions
                    WHERE job_id = g.job_id AND tick = g.tick AND attempt = g.attempt OFFSET 0) e
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = g.job_id OFFSET 0) j
WHERE NOT EXISTS (SELECT FROM cron_executions l WHERE l.job_id = g.job_id AND l.tick = g.tick AND l.attempt > g.attempt)
ORDER BY e.id;

-- name: GetFailing
SELECT job_id, execution_id, tick FROM cron_failing WHERE job_id = ANY(:job_ids::bigint[]);

-- name: SetFailing
-- Parallel arrays.
INSERT INTO cron_failing (job_id, execution_id, tick)
SELECT * FROM unnest(:job_ids::bigint[], :execution_ids::bigint[], :ticks::timestamptz[])
ON CONFLICT (job_id) DO UPDATE SET execution_id = excluded.execution_id, tick = excluded.tick;

-- name: ClearFailing
DELETE FROM cron_failing WHERE job_id = ANY(:job_ids::bigint[]);

-- name: AddRetrying
-- Parallel arrays.
INSERT INTO cron_retrying (job_id, tick, attempt)
SELECT * FROM unnest(:job_ids::bigint[], :ticks::timestamptz[], :attempts::integer[])
ON CONFLICT DO NOTHING;

-- name: FollowSkips
-- Skips above `:after_skip_id` or in gaps (parallel arrays), 5,000 of each at a time.
SELECT s.id, s.reason, s.first_tick, s.last_tick, s.ticks, s.decided_at, j.id AS job_id, j.key, j.namespace, j.module,
       j.verb, j.labels::text, j.policy
FROM ((SELECT * FROM cron_skips WHERE id > :after_skip_id ORDER BY id LIMIT 5000)
      UNION ALL
      (SELECT s.* FROM unnest(:first_skip_ids::bigint[], :last_skip_ids::bigint[]) AS g (first, last)
       JOIN cron_skips s ON s.id BETWEEN g.first AND g.last LIMIT 5000)) s
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = s.job_id OFFSET 0) j
ORDER BY s.id;

-- name: TakePauses
WITH taken AS (DELETE FROM cron_pauses RETURNING *)
SELECT t.paused_at, t.failures, t.note, j.id AS job_id, j.key, j.namespace, j.module, j.verb, j.labels::text, j.policy
FROM taken t
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = t.job_id OFFSET 0) j
ORDER BY t.id;

-- name: TakeOrphanings
-- Takes jobs that have lost their verb, or have it again, 5,000 at a time. They wait in cron_actions while there is no
-- webhook; a webhook that is made later is not told of older ones.
WITH taken AS (
    UPDATE cron_actions SET untold = false
    WHERE id = ANY (ARRAY(SELECT id FROM cron_actions WHERE untold ORDER BY id LIMIT 5000))
    RETURNING *
)
SELECT t.id AS action_id, t.action, t.at, t.details ->> 'deployment' AS deployment, t.actor, t.note, j.id AS job_id,
       j.key, j.namespace, j.module, j.verb, j.labels::text, j.policy
FROM taken t
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = t.job_id OFFSET 0) j
ORDER BY t.id;

-- name: FindOverdue
-- Jobs that are watched for late ticks and whose next tick waits `:overdue_ms` or longer, without those told already. A
-- job that is held by a run is not overdue, as its tick has begun.
SELECT j.next_tick AS tick, j.next_execution AS run_at, now() AS database_now, j.id AS job_id, j.key, j.namespace,
       j.module, j.verb, j.labels::text, j.policy
FROM cron_jobs j
WHERE j.next_execution IS NOT NULL AND j.policy LIKE '%"late_after":%' AND j.state = 'idle'
  AND j.next_execution <= now() - :overdue_ms::bigint * interval '1 millisecond'
  AND NOT EXISTS (SELECT FROM cron_late l WHERE l.job_id = j.id AND l.tick = j.next_tick)
ORDER BY j.next_execution
LIMIT :limit;

-- name: FindOverdueByDefault
-- The same of jobs that are late by the cluster's default, after `:late_after_ms`, in `:slots`. Jobs that are due are
-- found by slot: the index of those that say `late_after` themselves can't follow a default that changes.
SELECT j.next_tick AS tick, j.next_execution AS run_at, now() AS database_now, j.id AS job_id, j.key, j.namespace,
       j.module, j.verb, j.labels::text, j.policy
FROM cron_jobs j
WHERE j.slot = ANY(:slots::integer[]) AND j.next_execution IS NOT NULL AND j.policy NOT LIKE '%"late_after":%'
  AND j.next_execution <= now() - :late_after_ms::bigint * interval '1 millisecond' AND j.state = 'idle'
  AND NOT EXISTS (SELECT FROM cron_late l WHERE l.job_id = j.id AND l.tick = j.next_tick)
LIMIT :limit;

-- name: SetLate
-- Parallel arrays.
INSERT INTO cron_late (job_id, tick)
SELECT * FROM unnest(:job_ids::bigint[], :ticks::timestamptz[])
ON CONFLICT (job_id) DO UPDATE SET tick = excluded.tick;

-- name: AddDeliveries
-- Existing deliveries stay as they are, so that a webhook has each event once. Parallel arrays.
INSERT INTO cron_deliveries (webhook_id, event_id, event, job, body)
SELECT a.* FROM unnest(:webhook_ids::bigint[], :event_ids::text[], :events::text[], :jobs::text[], :bodies::text[])
    AS a (webhook_id, event_id, event, job, body)
ON CONFLICT (webhook_id, event_id) DO NOTHING
RETURNING id;

-- name: GetSubscriptions
-- Webhooks that want to be told.
SELECT id, events, reasons, namespace, module, job, labels::text, enabled_at, outcomes FROM cron_webhooks
WHERE disabled_at IS NULL ORDER BY id;

-- name: ClaimDeliveries
-- Takes due deliveries, and holds them for `:held_ms`: if this controller dies, another tries them after that.
-- `:busy_ids`: webhooks that this controller is busy with; it takes `:busy_limits` more of each, and `:each_limit` of
-- any other.
WITH due AS MATERIALIZED (
    SELECT d.id
    FROM cron_webhooks w
    CROSS JOIN LATERAL (
        SELECT id FROM cron_deliveries
        WHERE webhook_id = w.id AND state = 'waiting' AND next_try_at <= now()
        ORDER BY next_try_at
        LIMIT coalesce((:busy_limits::integer[])[array_position(:busy_ids::bigint[], w.id)], :each_limit::integer)
        FOR NO KEY UPDATE SKIP LOCKED
    ) d
    WHERE w.disabled_at IS NULL
    LIMIT :limit
)
UPDATE cron_deliveries d
SET attempts = d.attempts + 1, next_try_at = now() + :held_ms::bigint * interval '1 millisecond', last_try_at = now(),
    controller_id = :controller_id
FROM due, cron_webhooks w
WHERE d.id = due.id AND w.id = d.webhook_id
RETURNING d.id, d.webhook_id, d.event_id, d.body, d.attempts, w.name, w.encrypted,
          (date_part('epoch', now()) * 1000)::bigint AS now_ms,
          (date_part('epoch', now() - d.tried_since) * 1000)::bigint AS age_ms;

-- name: FinishDeliveries
-- How tries have ended. A delivery that another controller has taken over meanwhile is left alone. Parallel arrays;
-- `:waits_ms`: until the next try.
UPDATE cron_deliveries d
SET state = f.state, last_status = f.status, last_error = f.error,
    next_try_at = CASE WHEN f.state = 'waiting' THEN now() + f.wait_ms * interval '1 millisecond'
                       ELSE d.next_try_at END,
    ended_at = CASE WHEN f.state <> 'waiting' THEN now() END
FROM unnest(:delivery_ids::bigint[], :attempts::integer[], :states::text[], :waits_ms::bigint[],
            :statuses[?]::integer[], :errors::text[])
    AS f (id, attempts, state, wait_ms, status, error)
WHERE d.id = f.id AND d.attempts = f.attempts AND d.state = 'waiting';

-- name: DisableWebhook
UPDATE cron_webhooks SET disabled_at = now(), disabled_reason = :reason WHERE id = :webhook_id AND disabled_at IS NULL
RETURNING name;

-- name: ForgetDeliveries
-- Those older than `:kept_ms`, waiting ones too: nobody tries them any more. And what was remembered of jobs that are
-- gone.
WITH old AS (
    SELECT id FROM cron_deliveries WHERE created_at < now() - :kept_ms::bigint * interval '1 millisecond'
    ORDER BY created_at LIMIT :limit
), gone AS (
    DELETE FROM cron_deliveries d USING old WHERE d.id = old.id RETURNING d.id
)
SELECT count(*) FROM gone;

-- name: ForgetRemovedJobs
WITH failing AS (
    DELETE FROM cron_failing f USING cron_jobs j WHERE j.id = f.job_id AND j.removed_at IS NOT NULL
)
DELETE FROM cron_late l USING cron_jobs j WHERE j.id = l.job_id AND j.removed_at IS NOT NULL;

-- name: CountWaiting
-- Deliveries that wait, and how many of them have failed at least once.
SELECT count(*) AS waiting, count(*) FILTER (WHERE attempts > 0) AS retrying
FROM (SELECT attempts FROM cron_deliveries WHERE state = 'waiting' LIMIT 100000) d;

-- name: AddWebhook
-- `:labels`: JSON.
INSERT INTO cron_webhooks (
    name, origin, encrypted, events, reasons, outcomes, namespace, module, job, labels, created_by
) VALUES (
    :name, :origin, :encrypted, :events, :reasons, :outcomes, :namespace, :module, :job, :labels::text::jsonb, :actor
)
ON CONFLICT (name) DO NOTHING
RETURNING id;

-- name: SetPosition
-- How far the books have been read.
UPDATE cron_notifier SET position = :position WHERE single;

-- name: EnableWebhook
-- Told of what happens from now on; what waits for it is tried again.
WITH enabled AS (
    UPDATE cron_webhooks SET enabled_at = now(), disabled_at = NULL, disabled_reason = ''
    WHERE name = :name AND disabled_at IS NOT NULL
    RETURNING id
), again AS (
    UPDATE cron_deliveries d SET next_try_at = now(), tried_since = now()
    FROM enabled WHERE d.webhook_id = enabled.id AND d.state = 'waiting'
)
SELECT id FROM enabled;

-- name: ListWebhooks
-- Those of a name, or all (""), after one, with what waits for them and what has failed, as far as the log goes back.
SELECT w.id, w.name, w.origin, w.events, w.reasons, w.namespace, w.module, w.job, w.labels::text, w.created_at,
       w.created_by,
       w.disabled_at, w.disabled_reason, n.waiting, n.delivered, n.failed, w.outcomes
FROM cron_webhooks w
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting,
           count(*) FILTER (WHERE state = 'delivered') AS delivered,
           count(*) FILTER (WHERE state = 'failed') AS failed
    FROM (SELECT state FROM cron_deliveries WHERE webhook_id = w.id ORDER BY id DESC LIMIT 10000) d
) n
WHERE (:name = '' OR w.name = :name) AND w.name > :after
ORDER BY w.name
LIMIT :limit?::bigint;

-- name: CountWebhooks
SELECT count(*) FROM cron_webhooks;

-- name: GetAddressee
-- Of the webhook of a name: where it is and its secret, encrypted, for a letter that is sent at once.
SELECT id, encrypted, (date_part('epoch', now()) * 1000)::bigint AS now_ms, (SELECT cluster FROM cron_notifier)
FROM cron_webhooks WHERE name = :name;

-- name: LockWebhook
-- Without its secret; locked until the transaction ends.
SELECT id, disabled_at IS NULL AS enabled, disabled_reason, origin, events, reasons, namespace, module, job,
       labels::text, outcomes
FROM cron_webhooks WHERE name = :name
FOR NO KEY UPDATE;

-- name: RemoveWebhook
-- With its log.
DELETE FROM cron_webhooks WHERE name = :name RETURNING id;

-- name: ListDeliveries
-- The newest first. `:webhook`, `:state` and `:job` may be "", for any. Of jobs in `:namespaces`; null: of all.
SELECT d.id, w.name AS webhook, d.event_id, d.event, d.job, d.state, d.attempts, d.created_at, d.last_try_at,
       CASE WHEN d.state = 'waiting' AND w.disabled_at IS NULL THEN d.next_try_at END AS next_try_at, d.ended_at,
       d.last_status, d.last_error, d.body, d.controller_id
FROM cron_webhooks w
CROSS JOIN LATERAL (
    SELECT * FROM cron_deliveries
    WHERE webhook_id = w.id AND id < :before_id AND (:state = '' OR state = :state) AND (:job = '' OR job = :job)
      -- A key without a namespace is one of "default".
      AND (:namespaces?::text[] IS NULL
           OR job <> '' AND coalesce(nullif(split_part(job, '/', -2), ''), 'default') = ANY(:namespaces))
    ORDER BY id DESC LIMIT :limit
) d
WHERE :webhook = '' OR w.name = :webhook
ORDER BY d.id DESC
LIMIT :limit;

-- name: Redeliver
-- Tried again from the beginning, with the same id: one delivery of the webhook, or, where `:delivery_id` is 0, all
-- that have failed for good.
UPDATE cron_deliveries d SET state = 'waiting', next_try_at = now(), tried_since = now(), ended_at = NULL
FROM cron_webhooks w
WHERE w.id = d.webhook_id AND w.name = :name
  AND CASE WHEN :delivery_id::bigint = 0 THEN d.state = 'failed' ELSE d.id = :delivery_id END
RETURNING d.id;
