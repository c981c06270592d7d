-- name: RegisterRunner
-- $1 id, $2 hostname, $3 pid, $4 version, $5 keys of its deployments.
INSERT INTO runners (id, hostname, pid, version, deployments, last_seen_at)
VALUES ($1, $2, $3, $4, $5, now())
ON CONFLICT (id) DO UPDATE
SET hostname = excluded.hostname, pid = excluded.pid, version = excluded.version, deployments = excluded.deployments,
    last_seen_at = excluded.last_seen_at;

-- name: ListRunners
-- $1 a runner is alive if seen in the last so many ms.
SELECT id, hostname, pid, version, deployments, started_at, last_seen_at,
       last_seen_at >= now() - $1::bigint * interval '1 millisecond' AS alive
FROM runners
ORDER BY started_at, id;
