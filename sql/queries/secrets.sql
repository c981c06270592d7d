-- Envelopes of secrets (cronring/trust/envelopes.py): which key they wait for, and one in place of another.

-- name: CountSealed
-- By the id of the key; "plain": not encrypted.
SELECT split_part(sealed, '$', 2) AS key_id, count(*) AS secrets FROM cron_webhooks GROUP BY 1 ORDER BY 1;

-- name: ListSealedOtherwise
-- By another key than `:key_id`, from after a row on.
SELECT id, 'cron_webhooks/' || name AS place, sealed FROM cron_webhooks
WHERE split_part(sealed, '$', 2) <> :key_id AND id > :after_id
ORDER BY id LIMIT :limit;

-- name: ReplaceSealed
-- Unless it is no longer the one that was read.
UPDATE cron_webhooks SET sealed = :after WHERE id = :id AND sealed = :before RETURNING id;
