-- Envelopes of secrets (cronring/trust/envelopes.py): which keys encrypt them, and replacing them.

-- name: CountEncrypted
-- By the id of the key; "plain": not encrypted.
SELECT split_part(encrypted, '$', 2) AS key_id, count(*) AS secrets FROM cron_webhooks GROUP BY 1 ORDER BY 1;

-- name: ListEncryptedOtherwise
-- By another key than `:key_id`, from after a row on.
SELECT id, 'cron_webhooks/' || name AS context, encrypted FROM cron_webhooks
WHERE split_part(encrypted, '$', 2) <> :key_id AND id > :after_id
ORDER BY id LIMIT :limit;

-- name: ReplaceEncrypted
-- Replaces an envelope, if it is still the one that was read.
UPDATE cron_webhooks SET encrypted = :after WHERE id = :id AND encrypted = :before RETURNING id;
