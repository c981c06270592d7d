-- Who may call, and which runners may join: bearer tokens, and grants of runners.
-- What is given out never comes here: `:secret_hash` is its SHA-256.

-- name: UseToken
-- Whose token it is; no row: nobody's. That it was used is written once a minute at most. (Not `revoked_at IS NULL`:
-- with few rows the index of names, which is of these only, would look as good, and be read as a whole.)
WITH used AS (
    UPDATE cron_tokens SET last_used_at = now()
    WHERE secret_hash = :secret_hash AND coalesce(least(revoked_at, expires_at) > now(), true)
      AND coalesce(last_used_at < now() - interval '1 minute', true)
)
SELECT name, grants::text, expires_at, now() AS now, revoked_at IS NOT NULL AS revoked,
       coalesce(expires_at <= now(), false) AS expired
FROM cron_tokens WHERE secret_hash = :secret_hash;

-- name: CreateToken
-- No row: there is one of this name that is not revoked. `:grants`: JSON. `:lasts_ms` null: for ever.
INSERT INTO cron_tokens (name, secret_hash, grants, created_by, expires_at)
VALUES (:name, :secret_hash, :grants::text::jsonb, :actor, now() + :lasts_ms?::bigint * interval '1 millisecond')
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING id, name, grants::text, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at;

-- name: ListTokens
-- In the order in which they were made. `:namespaces` null: all; else those that grant nothing elsewhere.
SELECT id, name, grants::text, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at
FROM cron_tokens
WHERE id > :after_id AND (:with_revoked OR revoked_at IS NULL)
  AND (:namespaces?::text[] IS NULL
       OR NOT EXISTS (SELECT FROM jsonb_array_elements(grants) g WHERE g ->> 'namespace' <> ALL (:namespaces)))
ORDER BY id
LIMIT :limit;

-- name: GetToken
-- The one of this name that is not revoked.
SELECT id, name, grants::text, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at
FROM cron_tokens WHERE name = :name AND revoked_at IS NULL;

-- name: RevokeToken
-- No row: somebody else has revoked it.
UPDATE cron_tokens SET revoked_at = now(), revoked_by = :actor
WHERE id = :token_id AND revoked_at IS NULL
RETURNING id, name, grants::text, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at;

-- name: CreateRunnerGrant
-- No row: there is one of this name that is not revoked. `:secret_hash` null: nobody enrolls by it. `:uses` null: any
-- number may. `:lasts_ms` null: for ever.
INSERT INTO cron_runner_grants (name, namespace, modules, may_activate, secret_hash, uses_left, created_by, expires_at)
VALUES (:name, :namespace, :modules, :may_activate, :secret_hash?, :uses?, :actor,
        now() + :lasts_ms?::bigint * interval '1 millisecond')
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING id, name, namespace, modules, may_activate, secret_hash IS NOT NULL AS may_enroll, uses_left, created_at,
          created_by, expires_at, revoked_at, revoked_by;

-- name: ListRunnerGrants
-- In the order in which they were made. `:namespaces` null: all.
SELECT id, name, namespace, modules, may_activate, secret_hash IS NOT NULL AS may_enroll, uses_left, created_at,
       created_by, expires_at, revoked_at, revoked_by
FROM cron_runner_grants
WHERE id > :after_id AND (:with_revoked OR revoked_at IS NULL)
  AND (:namespaces?::text[] IS NULL OR namespace = ANY (:namespaces))
ORDER BY id
LIMIT :limit;

-- name: GetRunnerGrant
-- The one of this name that is not revoked, and when the last one was that had its name before; null: none had.
SELECT id, name, namespace, modules, may_activate, secret_hash IS NOT NULL AS may_enroll, uses_left, created_at,
       created_by, expires_at, revoked_at, revoked_by,
       (SELECT max(revoked_at) FROM cron_runner_grants WHERE name = :name AND revoked_at IS NOT NULL) AS name_freed_at
FROM cron_runner_grants WHERE name = :name AND revoked_at IS NULL;

-- name: RevokeRunnerGrant
-- No row: somebody else has revoked it.
UPDATE cron_runner_grants SET revoked_at = now(), revoked_by = :actor
WHERE id = :grant_id AND revoked_at IS NULL
RETURNING id, name, namespace, modules, may_activate, secret_hash IS NOT NULL AS may_enroll, uses_left, created_at,
          created_by, expires_at, revoked_at, revoked_by;

-- name: TakeJoin
-- One runner more enrolls. No row: none may, and GetJoin says why. Those that come at once wait for each other here,
-- and look again at what is left. Dates are compared as in UseToken.
UPDATE cron_runner_grants SET uses_left = uses_left - 1
WHERE secret_hash = :secret_hash AND coalesce(least(revoked_at, expires_at) > now(), true)
  AND coalesce(uses_left > 0, true)
RETURNING id, name, namespace, modules, may_activate, secret_hash IS NOT NULL AS may_enroll, uses_left, created_at,
          created_by, expires_at, revoked_at, revoked_by;

-- name: GetJoin
SELECT name, revoked_at IS NOT NULL AS revoked, coalesce(expires_at <= now(), false) AS expired
FROM cron_runner_grants WHERE secret_hash = :secret_hash;

-- name: ForgetIdentities
-- What has been worth nothing for so long. A grant that has expired still is what certificates name.
WITH gone AS (
    DELETE FROM cron_runner_grants WHERE revoked_at < now() - :kept_ms::bigint * interval '1 millisecond'
)
DELETE FROM cron_tokens WHERE least(revoked_at, expires_at) < now() - :kept_ms::bigint * interval '1 millisecond';
