-- Keys that controllers share: read by them, and shown to nobody.

-- name: GetSealKey
SELECT key FROM cron_keys WHERE name = 'seal';
