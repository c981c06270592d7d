-- Keys that controllers share: read by them, and shown to nobody.

-- name: GetPageKey
SELECT key FROM cron_keys WHERE name = 'pages';
