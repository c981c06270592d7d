-- What `cronring doctor` looks at. Each only reads, on a connection of its own with the settings that any new session
-- gets.

-- name: GetServerSettings
-- Timeouts in ms. One that this version of PostgreSQL doesn't have is missing.
SELECT name, setting FROM pg_settings WHERE name = ANY(:names::text[]);

-- name: BoundDiagnosis
-- After the settings were read: no check may take for ever, whatever somebody holds a lock on.
SELECT set_config('statement_timeout', '10s', false), set_config('lock_timeout', '2s', false);

-- name: GetServerState
SELECT pg_is_in_recovery() AS standby, pg_database_size(current_database()) AS bytes,
       (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()) AS xid_age;

-- name: GetConnectionUse
-- What is free: of the server, of the database and of the role (null: no limit there).
SELECT s.usable - s.used AS server_free, s.usable,
       (SELECT d.datconnlimit - count(a.pid) FROM pg_database d LEFT JOIN pg_stat_activity a ON a.datid = d.oid
        WHERE d.datname = current_database() AND d.datconnlimit >= 0 GROUP BY d.datconnlimit) AS database_free,
       (SELECT r.rolconnlimit - count(a.pid) FROM pg_roles r LEFT JOIN pg_stat_activity a ON a.usesysid = r.oid
        WHERE r.rolname = current_user AND r.rolconnlimit >= 0 GROUP BY r.rolconnlimit) AS role_free,
       s.ours
FROM (
    SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
               - coalesce(current_setting('reserved_connections', true)::bigint, 0) AS usable,
           count(*) AS used,
           count(*) FILTER (WHERE datname = current_database() AND application_name LIKE 'cronring%'
                                  AND pid <> pg_backend_pid()) AS ours
    FROM pg_stat_activity WHERE backend_type = 'client backend'
) s;

-- name: ListOpenTransactions
-- Of this database, open for more than a second, the oldest first, at most 50. Each comes with the tables of ours that
-- it holds a lock on, and how many sessions wait for it.
WITH waiting AS MATERIALIZED (
    SELECT unnest(pg_blocking_pids(pid)) AS blocker FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
)
SELECT a.pid, coalesce(a.usename, '')::text AS role, a.application_name,
       a.state LIKE 'idle in transaction%' AS idle,
       (date_part('epoch', clock_timestamp() - a.xact_start) * 1000)::bigint AS open_ms,
       (date_part('epoch', clock_timestamp() - a.state_change) * 1000)::bigint AS state_ms,
       ARRAY(SELECT DISTINCT c.relname::text FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
             WHERE l.pid = a.pid AND l.granted AND l.database = a.datid AND c.relkind IN ('r', 'p')
               AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
             ORDER BY 1) AS locked,
       (SELECT count(*) FROM waiting w WHERE w.blocker = a.pid) AS blocks
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
  AND a.xact_start < clock_timestamp() - interval '1 second'
ORDER BY a.xact_start
LIMIT 50;

-- name: ListPreparedTransactions
SELECT gid, owner::text, (date_part('epoch', now() - prepared) * 1000)::bigint AS open_ms
FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 50;

-- name: ListReplicationSlots
SELECT slot_name::text, active, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint AS kept_bytes
FROM pg_replication_slots ORDER BY slot_name LIMIT 50;

-- name: ListIndexes
-- Indexes of all tables in our schema, even of tables that are not ours.
SELECT c.relname::text AS of_table, i.relname::text AS index, x.indisvalid AND x.indisready AND x.indislive AS valid
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class c ON c.oid = x.indrelid
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
  AND NOT c.relispartition;

-- name: GetHistoryState
-- `leased_ms`: for how long there has been a controller that holds a lease now; null: there is none.
SELECT (date_part('epoch', (SELECT max(until_at) FROM cron_partitions) - now()) * 1000)::bigint AS ahead_ms,
       (date_part('epoch', now() - (SELECT checked_at FROM cron_maintenance)) * 1000)::bigint AS checked_ms,
       (SELECT (date_part('epoch', now() - min(started_at)) * 1000)::bigint FROM controllers
        WHERE lease_expires_at > now()) AS leased_ms;

-- name: ListTableStates
SELECT s.relname::text AS of_table, s.n_live_tup AS live, s.n_dead_tup AS dead,
       coalesce('autovacuum_enabled=false' = ANY(c.reloptions) OR 'autovacuum_enabled=off' = ANY(c.reloptions), false)
           AS never_vacuumed
FROM pg_stat_user_tables s
JOIN pg_class c ON c.oid = s.relid
WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('cron_jobs'))
  AND (s.relname LIKE 'cron%' OR s.relname IN ('controllers', 'runners', 'deployments'));

-- name: ListLeases
-- `left_ms` is negative once the lease is over.
SELECT c.id, c.grpc_address, c.version, c.draining,
       (date_part('epoch', c.lease_expires_at - now()) * 1000)::bigint AS left_ms,
       (SELECT count(*) FROM cron_executions e
        WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id) AS unfinished
FROM controllers c ORDER BY c.id;

-- name: ListRunnerLeases
-- `unfinished`: of jobs whose runs stop without contact; they are lost when their runner is.
SELECT r.id, r.hostname, r.pid, (date_part('epoch', now() - r.last_seen_at) * 1000)::bigint AS seen_ms,
       (SELECT count(*) FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
        WHERE e.outcome IS NULL AND e.runner_id > '' AND e.runner_id = r.id AND j.on_disconnect = 'stop') AS unfinished,
       r.left_at IS NOT NULL AS has_left
FROM runners r ORDER BY r.last_seen_at DESC;

-- name: ListDeploymentRunners
-- A runner is alive if seen in the last `:lost_after_ms`. Active deployments, with their jobs that have a tick to come;
-- without queues, which need no runners.
SELECT d.key, d.min_replicas,
       (SELECT count(*) FROM runners r
        WHERE d.key = ANY(r.deployments) AND r.left_at IS NULL
          AND r.last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond') AS runners,
       j.jobs, (date_part('epoch', j.next - now()) * 1000)::bigint AS due_ms
FROM deployments d
LEFT JOIN (SELECT deployment_id, count(*) AS jobs, min(next_execution) AS next FROM cron_jobs
           WHERE removed_at IS NULL AND next_execution IS NOT NULL GROUP BY deployment_id) j ON j.deployment_id = d.id
WHERE d.min_replicas > 0 AND d.module NOT LIKE '@%'
ORDER BY d.key;

-- name: ListOverdueExecutions
-- Past their hard timeout by more than `:overdue_ms`, the oldest first, at most 50.
SELECT e.id, coalesce(j.key, '') AS job, e.runner_id,
       (date_part('epoch', now() - e.hard_deadline) * 1000)::bigint AS over_ms
FROM cron_executions e LEFT JOIN cron_jobs j ON j.id = e.job_id
WHERE e.outcome IS NULL AND e.controller_id > ''
  AND e.hard_deadline < now() - :overdue_ms::bigint * interval '1 millisecond'
ORDER BY e.hard_deadline
LIMIT 50;

-- name: ListOverdueTicks
-- Due for more than `:overdue_ms`, and claimed by nobody though their job is free; by deployment. Runners as in
-- ListDeploymentRunners.
-- `limited`: those that wait because a limit is full.
SELECT d.key, count(*) AS jobs, (date_part('epoch', now() - min(j.next_execution)) * 1000)::bigint AS over_ms,
       min(j.key) AS job,
       count(*) FILTER (WHERE EXISTS (SELECT FROM unnest(j.limits) u (id)
                                      JOIN cron_limits l ON l.id = u.id OR l.rule = u.id
                                                         AND l.value = j.labels ->> l.label
                                      WHERE l.running >= l.max_concurrent)) AS limited,
       (SELECT count(*) FROM runners r
        WHERE d.key = ANY(r.deployments) AND r.left_at IS NULL
          AND r.last_seen_at >= now() - :lost_after_ms::bigint * interval '1 millisecond') AS runners
FROM cron_jobs j JOIN deployments d ON d.id = j.deployment_id
WHERE j.next_execution < now() - :overdue_ms::bigint * interval '1 millisecond' AND j.state = 'idle'
  AND (j.concurrency = 0 OR j.running < j.concurrency)
GROUP BY d.key
ORDER BY d.key;

-- name: ListFullLimits
-- Of one by label, how many values are full, and what they run together.
SELECT namespace, module, label, max_concurrent, sum(running)::integer AS running, count(*)::integer AS full
FROM cron_limits
WHERE running >= max_concurrent
GROUP BY namespace, module, label, max_concurrent
ORDER BY namespace, module, label;

-- name: ListOrphans
-- Jobs that wait for their verb, by verb; at most 50.
SELECT namespace, module, verb, count(*) AS jobs, min(key) AS key
FROM cron_jobs
WHERE orphaned_at IS NOT NULL AND removed_at IS NULL AND cancelled_at IS NULL
GROUP BY namespace, module, verb
ORDER BY namespace, module, verb
LIMIT 50;

-- name: ListWebhookStates
-- `waiting`: not delivered yet, of which the oldest is so old and was tried so often.
SELECT w.name, w.disabled_at IS NOT NULL AS disabled, w.disabled_reason, d.waiting, d.oldest_ms, d.attempts, d.error,
       (SELECT (date_part('epoch', now() - n.lease_until) * 1000)::bigint FROM cron_notifier n
        WHERE n.lease_until > '-infinity') AS unread_ms
FROM cron_webhooks w
LEFT JOIN LATERAL (
    SELECT count(*) AS waiting, (date_part('epoch', now() - min(created_at)) * 1000)::bigint AS oldest_ms,
           max(attempts) AS attempts, coalesce(max(last_error), '') AS error
    FROM cron_deliveries WHERE webhook_id = w.id AND state = 'waiting'
) d ON true
ORDER BY w.name;
