-- name: LockMigrations
-- One migrator of a schema at a time. Held by the session, as each migration has a transaction of its own.
SELECT pg_advisory_lock(hashtextextended(:schema || ' migrations', 0));

-- name: UnlockMigrations
SELECT pg_advisory_unlock(hashtextextended(:schema || ' migrations', 0));

-- name: GetSchema
-- A schema: its owner, what this role may do in it, what everybody may, and what it holds that is not ours. No row: it
-- does not exist.
SELECT pg_get_userbyid(n.nspowner)::text AS owner, current_user::text AS role, current_database()::text AS database,
       has_schema_privilege(n.oid, 'USAGE') AS usable, has_schema_privilege(n.oid, 'CREATE') AS ours,
       has_schema_privilege('public', n.oid, 'CREATE') AS open,
       EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'cronring_migrations') AS migrated,
       ARRAY(SELECT relname::text FROM pg_class WHERE relnamespace = n.oid AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
             ORDER BY relkind = 'S', relname LIMIT 4) AS relations
FROM pg_namespace n WHERE n.nspname = :schema;

-- name: GetRole
SELECT current_user::text AS role, current_database()::text AS database,
       has_database_privilege(current_database(), 'CREATE') AS may_create;

-- name: FormatCreateSchema
SELECT format('CREATE SCHEMA IF NOT EXISTS %I', :schema::text);

-- name: FormatGrants
-- Statements that let a role run controllers: it reads and writes rows. What only migrations and the functions of our
-- owner write, it reads. Partitions are reached through their table. An identity's sequence needs no grant.
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), :role::text)
UNION ALL
SELECT format('GRANT %s ON %I TO %I', CASE
           WHEN relkind = 'v' OR relname IN ('cron_keys', 'cron_partitions', 'cronring_migrations') THEN 'SELECT'
           WHEN relname IN ('cron_closings', 'cron_histories') THEN 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE'
           ELSE 'SELECT, INSERT, UPDATE, DELETE' END, relname, :role::text)
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') AND NOT relispartition
  AND relname <> 'cron_fence_checks'
UNION ALL
SELECT format('GRANT USAGE, SELECT ON SEQUENCE %I TO %I', s.relname, :role::text)
FROM pg_class s
WHERE s.relnamespace = current_schema()::regnamespace AND s.relkind = 'S'
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = s.oid AND d.deptype = 'i')
UNION ALL
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I', p.oid::regprocedure, :role::text)
FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'cron\_%'
  AND p.prorettype <> 'trigger'::regtype AND p.proname <> 'cron_make_partition';

-- name: CreateMigrations
CREATE TABLE IF NOT EXISTS cronring_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    -- The oldest schema version that a program may know of and still work on this one; null: only this one's.
    works_with integer
);

-- name: HasMigrations
SELECT to_regclass('cronring_migrations') IS NOT NULL;

-- name: GetMigrations
SELECT version, name, checksum FROM cronring_migrations ORDER BY version;

-- name: RecordMigration
INSERT INTO cronring_migrations (version, name, checksum, works_with) VALUES (:version, :name, :checksum, :works_with?);

-- name: GetNewerMigrations
-- A program knows of `:version`: the oldest one that programs may know of beside what came after it.
SELECT max(coalesce(works_with, version)) FROM cronring_migrations WHERE version > :version;

-- name: SetSession
-- Parallel arrays. Until the session ends.
SELECT set_config(name, value, false) FROM unnest(:names::text[], :values::text[]) AS s (name, value);

-- name: CloseSchema
-- Closes, after each migration, what PostgreSQL leaves open by default. Our functions that look names up at a call must
-- do so in our schema alone, above all those that run with their owner's rights. pg_temp has to be named, or it comes
-- first. (Parsed bodies look nothing up, and IMMUTABLE ones read no tables: they need no path.) And only roles that
-- were granted it may call our functions.
DO $$
DECLARE
    function regprocedure;
BEGIN
    FOR function IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
                    AND proname LIKE 'cron\_%' AND prosqlbody IS NULL AND provolatile <> 'i' LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', function, current_schema());
    END LOOP;
    FOR function IN SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
                    AND proname LIKE 'cron\_%' LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', function);
    END LOOP;
END $$;
