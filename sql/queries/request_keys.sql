-- name: BeginRequest
-- This request is the first of its key, or the first after the former one expired: answers with when it began. No row:
-- another request has the key.
INSERT INTO cron_request_keys AS k (principal, method, key, request_hash, expires_at)
SELECT :principal, :method, :key, :request_hash, now() + :kept_ms::bigint * interval '1 millisecond'
ON CONFLICT (principal, method, key) DO UPDATE
SET request_hash = excluded.request_hash, begun_at = now(), expires_at = excluded.expires_at, answer = NULL
WHERE k.expires_at <= now()
RETURNING begun_at;

-- name: CountRequestKeys
-- The keys of one principal; no more than `:most` are counted.
SELECT count(*) FROM (SELECT 1 FROM cron_request_keys WHERE principal = :principal LIMIT :most::bigint) k;

-- name: GetRequest
-- What another request of that key has become. `old`: it began before `:given_up_ms`, and is not being done any more.
SELECT request_hash, answer, begun_at < now() - :given_up_ms::bigint * interval '1 millisecond' AS old
FROM cron_request_keys
WHERE principal = :principal AND method = :method AND key = :key;

-- name: EndRequest
UPDATE cron_request_keys SET answer = :answer
WHERE principal = :principal AND method = :method AND key = :key AND begun_at = :begun_at;

-- name: ForgetRequest
-- The request has changed nothing, so a repeated one begins anew.
DELETE FROM cron_request_keys
WHERE principal = :principal AND method = :method AND key = :key AND begun_at = :begun_at AND answer IS NULL;

-- name: ForgetRequests
DELETE FROM cron_request_keys WHERE expires_at <= now();
