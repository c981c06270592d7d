-- name: RegisterRunner
-- `:deployments`: keys.
INSERT INTO runners (id, hostname, pid, version, deployments, sync_places, async_places, last_seen_at)
VALUES (:runner_id, :hostname, :pid, :version, :deployments, :sync_places, :async_places, now())
ON CONFLICT (id) DO UPDATE
SET hostname = excluded.hostname, pid = excluded.pid, version = excluded.version, deployments = excluded.deployments,
    sync_places = excluded.sync_places, async_places = excluded.async_places,
    last_seen_at = excluded.last_seen_at, left_at = NULL;

-- name: LeaveRunner
-- A runner has drained, and its stream has ended. If an unfinished execution has its id, it died on the way: no change.
UPDATE runners r SET left_at = coalesce(r.left_at, now())
WHERE r.id = :runner_id AND NOT EXISTS (
    SELECT FROM cron_executions e WHERE e.outcome IS NULL AND e.runner_id > '' AND e.runner_id = r.id);

-- name: LockSeenRunners
-- docs/decisions/0123: what was lost with a runner is not ended once that is back
-- Of these, the runners that have been seen in the last `:lost_after_ms`. All are locked until the transaction ends, in
-- order of ids, as in renewals. A runner that comes back meanwhile waits, and then finds its executions ended.
WITH locked AS MATERIALIZED (
    SELECT id, last_seen_at FROM runners WHERE id = ANY(:runner_ids::text[]) ORDER BY id FOR SHARE
)
SELECT id FROM locked WHERE last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond';

-- name: ListRunners
-- A runner that hasn't left is alive if seen in the last `:lost_after_ms`.
SELECT id, hostname, pid, version, deployments, started_at, last_seen_at,
       left_at IS NULL AND last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond' AS alive, left_at,
       sync_places, async_places
FROM runners
ORDER BY started_at, id;
