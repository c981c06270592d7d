-- name: LockMigrations
-- One migrator at a time. Held by the session, as each migration has a transaction of its own.
SELECT pg_advisory_lock(7161829431270345);

-- name: UnlockMigrations
SELECT pg_advisory_unlock(7161829431270345);

-- name: CreateMigrations
CREATE TABLE IF NOT EXISTS cronring_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: HasMigrations
SELECT to_regclass('cronring_migrations') IS NOT NULL;

-- name: GetMigrations
SELECT version, name, checksum FROM cronring_migrations ORDER BY version;

-- name: RecordMigration
-- $1 version, $2 name, $3 checksum.
INSERT INTO cronring_migrations (version, name, checksum) VALUES ($1, $2, $3);
