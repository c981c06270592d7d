-- name: RenewLease
-- Renews a controller's lease and those of its runners, and says what there is to sweep. It takes HOT updates and a few
-- index probes: executions without trouble are never read. Forgets rows that are no longer needed and have nothing
-- unfinished. These are controllers whose lease ran out a minute ago, as no claim takes so long to commit. And runners
-- not seen for a day (beyond the newest 1,000: for a minute).
-- Also returns what this controller answers for and somebody wants cancelled, at most 1,000 at a time. And all rows of
-- controllers, since a member that is known by gossip alone is no owner.
-- A runner is lost when not seen for `:lost_after_ms`. `:cancelling`: executions whose cancellation the controller
-- knows of already.
-- EXISTS with OFFSET 0 is a probe for each row; without it, this may become a join that reads all that runs.
WITH renewed AS (
    INSERT INTO controllers (id, grpc_address, peer_address, http_address, pid, version, zone_data, draining,
                             lease_expires_at)
    VALUES (:controller_id, :grpc_address, :peer_address, :http_address, :pid, :version, :zone_data, :draining,
            now() + :lease_ms::bigint * interval '1 millisecond')
    ON CONFLICT (id) DO UPDATE
    SET grpc_address = excluded.grpc_address, peer_address = excluded.peer_address,
        http_address = excluded.http_address, pid = excluded.pid, version = excluded.version,
        zone_data = excluded.zone_data, draining = excluded.draining, lease_expires_at = excluded.lease_expires_at
    RETURNING id, grpc_address
), seen AS MATERIALIZED (
    SELECT id FROM runners WHERE id = ANY(:runner_ids::text[]) ORDER BY id FOR NO KEY UPDATE
), renewed_runners AS (
    UPDATE runners r SET last_seen_at = now() FROM seen s WHERE r.id = s.id
    RETURNING r.id
), forgotten_controllers AS (
    DELETE FROM controllers WHERE id IN (
        SELECT c.id FROM controllers c
        WHERE c.lease_expires_at <= now() - interval '1 minute' AND c.id <> :controller_id
          AND NOT EXISTS (SELECT FROM cron_executions e
                          WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id OFFSET 0)
        FOR UPDATE SKIP LOCKED
    )
    RETURNING draining
), cleared AS ( -- of those that are gone without leaving
    UPDATE cron_maintenance m SET leases_cleared = m.leases_cleared + f.cleared
    FROM (SELECT count(*) AS cleared FROM forgotten_controllers WHERE NOT draining) f
    WHERE f.cleared > 0
), forgotten_runners AS (
    DELETE FROM runners WHERE id IN (
        SELECT r.id FROM runners r
        WHERE (r.last_seen_at <= now() - interval '1 day'
               OR r.last_seen_at <= now() - interval '1 minute'
                  AND r.last_seen_at < (SELECT n.last_seen_at FROM runners n ORDER BY n.last_seen_at DESC
                                        OFFSET 999 LIMIT 1))
          AND r.id <> ALL(:runner_ids::text[])
          AND NOT EXISTS (SELECT FROM cron_executions e
                          WHERE e.outcome IS NULL AND e.runner_id > '' AND e.runner_id = r.id OFFSET 0)
        FOR UPDATE SKIP LOCKED
    )
), cancels AS MATERIALIZED ( -- named by nothing but the condition of their own index
    SELECT id, runner_id, cancel_requested_by, cancel_note FROM cron_executions
    WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL AND controller_id = :controller_id
      AND id <> ALL(:cancelling::bigint[])
    ORDER BY id LIMIT 1000
), listed AS MATERIALIZED ( -- the own row may be newer than what the statement sees
    SELECT id, grpc_address FROM renewed
    UNION ALL
    SELECT id, grpc_address FROM controllers WHERE id <> :controller_id
)
SELECT now() AS database_now,
       ARRAY(SELECT id FROM renewed_runners ORDER BY id) AS renewed_runners,
       ARRAY(SELECT c.id FROM controllers c
             WHERE c.lease_expires_at <= now() AND c.id <> :controller_id
               AND EXISTS (SELECT FROM cron_executions e
                           WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id OFFSET 0)
             ORDER BY c.id) AS dead_controllers,
       ARRAY(SELECT r.id FROM runners r
             WHERE r.last_seen_at < now() - :lost_after_ms::bigint * interval '1 millisecond'
               AND r.id <> ALL(:runner_ids::text[])
               AND EXISTS (SELECT FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
                           WHERE e.outcome IS NULL AND e.runner_id > '' AND e.runner_id = r.id
                             AND j.on_disconnect = 'stop' OFFSET 0)
             ORDER BY r.id) AS lost_runners,
       EXISTS (SELECT FROM controllers c
               WHERE EXISTS (SELECT FROM cron_executions e
                             WHERE e.outcome IS NULL AND e.controller_id > '' AND e.controller_id = c.id
                               AND e.hard_deadline <= now() OFFSET 0)) AS overdue_executions,
       EXISTS (SELECT FROM cron_queue WHERE ended_at IS NOT NULL AND awaited)
           OR EXISTS (SELECT FROM cron_executions
                      WHERE outcome IS NULL AND started_at IS NOT NULL AND controller_id = :controller_id)
           AS queue_reports,
       ARRAY(SELECT id FROM cancels) AS cancel_ids,
       ARRAY(SELECT runner_id FROM cancels) AS cancel_runners,
       ARRAY(SELECT cancel_requested_by FROM cancels) AS cancel_actors,
       ARRAY(SELECT cancel_note FROM cancels) AS cancel_notes,
       ARRAY(SELECT id FROM listed ORDER BY id) AS controller_ids,
       ARRAY(SELECT grpc_address FROM listed ORDER BY id) AS grpc_addresses;

-- name: RemoveController
-- A graceful leave. The row stays until nothing unfinished carries its id; its lease is over.
UPDATE controllers SET lease_expires_at = least(lease_expires_at, now()), draining = true WHERE id = :controller_id;

-- name: FindPeers
-- Controllers whose lease is valid.
SELECT id, grpc_address, http_address, pid, version, zone_data, peer_address FROM controllers
WHERE lease_expires_at > now() ORDER BY id;

-- name: NoteZoneData
-- A controller decides ticks by this version of zone rules.
INSERT INTO cron_zone_data (version) VALUES (:version) ON CONFLICT DO NOTHING;

-- name: GetZoneData
-- The versions of zone rules that may have decided ticks, in the order of their first use.
SELECT version, first_used_at FROM cron_zone_data ORDER BY first_used_at, version;

-- name: ListControllers
SELECT id, grpc_address, http_address, pid, version, draining, started_at, lease_expires_at,
       lease_expires_at > now() AS leased,
       CASE WHEN drill_until > now() THEN drill_until END AS drill_until
FROM controllers
ORDER BY id;

-- name: HoldDrill
-- For a drill: notes that a controller claims nothing for a while, unless another is in a drill, or none could take
-- over. All rows are locked: of two controllers that ask at once, the second sees the note of the first.
-- `:forced`: note it whatever the others do.
WITH known AS MATERIALIZED (
    SELECT id, lease_expires_at > now() AS leased, draining,
           coalesce(drill_until > clock_timestamp(), false) AS in_drill
    FROM controllers
    ORDER BY id
    FOR NO KEY UPDATE
), others AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE leased AND NOT draining AND NOT in_drill) AS ready,
           min(id) FILTER (WHERE leased AND in_drill) AS in_drill
    FROM known
    WHERE id <> :controller_id
), noted AS (
    UPDATE controllers c SET drill_until = now() + :for_ms::bigint * interval '1 millisecond'
    FROM others o
    WHERE c.id = :controller_id AND (:forced::boolean OR (o.ready > 0 AND o.in_drill IS NULL))
    RETURNING c.id
)
SELECT EXISTS (SELECT FROM noted) AS noted, ready, in_drill FROM others;

-- name: ClaimAgain
-- The drill is over.
UPDATE controllers SET drill_until = NULL WHERE id = :controller_id AND drill_until IS NOT NULL;

-- name: GetNow
SELECT now();

-- name: GetTimeline
-- The timeline of a primary server. It grows by one with each promotion.
SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer;
