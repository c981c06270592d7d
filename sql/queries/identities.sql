-- Who may call, and which runners may join: bearer tokens, grants of runners, and sessions of browsers.
-- Secrets themselves never come here: `:secret_hash` is the SHA-256 of one.

-- name: UseToken
-- The owner of a token; no row: there is no such token. Its use is written once a minute at most. (Not
-- `revoked_at IS NULL`: with few rows, the partial index of names would look as good, and be read as a whole.)
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

-- name: CountTokens
-- How many ListTokens would list.
SELECT count(*)
FROM cron_tokens
WHERE (:with_revoked OR revoked_at IS NULL)
  AND (:namespaces?::text[] IS NULL
       OR NOT EXISTS (SELECT FROM jsonb_array_elements(grants) g WHERE g ->> 'namespace' <> ALL (:namespaces)));

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

-- name: CountRunnerGrants
-- How many ListRunnerGrants would list.
SELECT count(*)
FROM cron_runner_grants
WHERE (:with_revoked OR revoked_at IS NULL) AND (:namespaces?::text[] IS NULL OR namespace = ANY (:namespaces));

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
-- One more runner enrolls. No row: it may not, and GetJoin says why. Runners that come at once wait for each other
-- here, and then see how many uses are left. Dates are compared as in UseToken.
UPDATE cron_runner_grants SET uses_left = uses_left - 1
WHERE secret_hash = :secret_hash AND coalesce(least(revoked_at, expires_at) > now(), true)
  AND coalesce(uses_left > 0, true)
RETURNING id, name, namespace, modules, may_activate, secret_hash IS NOT NULL AS may_enroll, uses_left, created_at,
          created_by, expires_at, revoked_at, revoked_by;

-- name: GetJoin
SELECT name, revoked_at IS NOT NULL AS revoked, coalesce(expires_at <= now(), false) AS expired
FROM cron_runner_grants WHERE secret_hash = :secret_hash;

-- name: CreateSession
-- For the holder of the token `:token_hash` or `:token_id`. Both null: for whom an issuer named, with `:grants` (JSON).
-- No row: there is one with that hash already.
-- It takes the place of the session `:former_hash`. Of this principal's others the latest `:others` stay, the living
-- ones first: so rows are bounded, however often somebody logs in.
WITH gone AS (
    DELETE FROM cron_sessions WHERE id = ANY (ARRAY(
        SELECT id FROM cron_sessions WHERE secret_hash = :former_hash?
        UNION ALL
        (SELECT id FROM cron_sessions WHERE principal = :principal
         ORDER BY revoked_at IS NULL AND least(idle_at, expires_at) > now() DESC, id DESC OFFSET :others)))
)
INSERT INTO cron_sessions (secret_hash, token_id, principal, grants, issuer, origin, idle_at, expires_at)
SELECT :secret_hash, coalesce(:token_id?::bigint, (SELECT id FROM cron_tokens WHERE secret_hash = :token_hash?)),
       :principal, :grants?::text::jsonb, :issuer, :origin, now() + :idle_ms::bigint * interval '1 millisecond',
       now() + :lasts_ms::bigint * interval '1 millisecond'
ON CONFLICT (secret_hash) DO NOTHING
RETURNING id;

-- name: UseSession
-- Whose session it is; no row: nobody's. That it was used is written once a minute at most.
WITH used AS (
    UPDATE cron_sessions
    SET last_used_at = now(), idle_at = now() + :idle_ms::bigint * interval '1 millisecond'
    WHERE secret_hash = :secret_hash AND revoked_at IS NULL AND least(idle_at, expires_at) > now()
      AND last_used_at < now() - interval '1 minute'
)
SELECT principal, grants::text, expires_at, now() AS now, ended
FROM cron_known_sessions WHERE secret_hash = :secret_hash;

-- name: ListSessions
-- In the order of logins: the caller's own (`:own`), and those that grant nothing outside of `:namespaces`. Null: all.
SELECT id, principal, grants::text, issuer, origin, created_at, last_used_at, expires_at, revoked_at, revoked_by, ended
FROM cron_known_sessions
WHERE id > :after_id AND (:with_ended OR ended = '')
  AND (principal = :own OR :namespaces?::text[] IS NULL
       OR grants <> '[]'
          AND NOT EXISTS (SELECT FROM jsonb_array_elements(grants) g WHERE g ->> 'namespace' <> ALL (:namespaces)))
ORDER BY id
LIMIT :limit;

-- name: CountSessions
-- How many ListSessions would list.
SELECT count(*)
FROM cron_known_sessions
WHERE (:with_ended OR ended = '')
  AND (principal = :own OR :namespaces?::text[] IS NULL
       OR grants <> '[]'
          AND NOT EXISTS (SELECT FROM jsonb_array_elements(grants) g WHERE g ->> 'namespace' <> ALL (:namespaces)));

-- name: GetSession
SELECT id, principal, grants::text, issuer, origin, created_at, last_used_at, expires_at, revoked_at, revoked_by, ended
FROM cron_known_sessions WHERE id = :session_id;

-- name: RevokeSession
-- No row: it had ended before. (An idle one is revoked all the same.)
UPDATE cron_sessions SET revoked_at = now(), revoked_by = :actor
WHERE id = :session_id AND revoked_at IS NULL
RETURNING id, principal;

-- name: RevokeSessionOf
-- As RevokeSession, by the cookie: somebody logs out.
UPDATE cron_sessions SET revoked_at = now(), revoked_by = principal
WHERE secret_hash = :secret_hash AND revoked_at IS NULL
RETURNING id, principal;

-- name: ForgetIdentities
-- Deletes what has been invalid for `:kept_ms`. An expired grant stays, as certificates still name it.
WITH gone AS (
    DELETE FROM cron_runner_grants WHERE revoked_at < now() - :kept_ms::bigint * interval '1 millisecond'
), logged_out AS (
    DELETE FROM cron_sessions
    WHERE least(revoked_at, idle_at, expires_at) < now() - :kept_ms::bigint * interval '1 millisecond'
)
DELETE FROM cron_tokens WHERE least(revoked_at, expires_at) < now() - :kept_ms::bigint * interval '1 millisecond';
