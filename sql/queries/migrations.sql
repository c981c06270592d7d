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

-- name: PrepareMigrations
-- `works_with`: the oldest schema version that a program may know of and still work on this one; null: only this one's.
ALTER TABLE cronring_migrations ADD COLUMN IF NOT EXISTS works_with integer;

-- name: HasMigrations
SELECT to_regclass('cronring_migrations') IS NOT NULL;

-- name: GetMigrations
SELECT version, name, checksum FROM cronring_migrations ORDER BY version;

-- name: RecordMigration
-- $1 version, $2 name, $3 checksum, $4 works_with.
INSERT INTO cronring_migrations (version, name, checksum, works_with) VALUES ($1, $2, $3, $4);

-- name: GetNewerMigrations
-- $1 the version that a program knows of: the oldest one that programs may know of beside what came after it.
SELECT max(coalesce(works_with, version)) FROM cronring_migrations WHERE version > $1;
