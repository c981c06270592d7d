-- The cluster's defaults: one row. See cron_defaults in the migration.

-- name: GetDefaults
SELECT timeout_ms, late_after_ms, retries, revision, changed_at, changed_by, note FROM cron_defaults WHERE single;

-- name: LockDefaults
SELECT timeout_ms, late_after_ms, retries, revision, changed_at, changed_by, note
FROM cron_defaults WHERE single FOR UPDATE;

-- name: SetDefaults
UPDATE cron_defaults
SET timeout_ms = :timeout_ms?, late_after_ms = :late_after_ms?, retries = :retries, revision = revision + 1,
    changed_at = now(), changed_by = :actor, note = :note
WHERE single
RETURNING timeout_ms, late_after_ms, retries, revision, changed_at, changed_by, note;
