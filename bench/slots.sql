-- An experiment of bench.slots in a scratch database, no migration: cron_jobs in so many partitions by hash of slot.
-- A partitioned table's unique keys must hold the column that it is partitioned by. That takes nothing away: a key's slot
-- follows from the key, and ids are drawn from one sequence.
CREATE FUNCTION slots_partition(partitions integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    made record;
BEGIN
    DROP VIEW IF EXISTS cron_job_status;
    ALTER TABLE cron_jobs RENAME TO cron_jobs_whole;
    CREATE TABLE cron_jobs (LIKE cron_jobs_whole INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING CONSTRAINTS)
        PARTITION BY HASH (slot);
    FOR made IN SELECT number FROM generate_series(0, partitions - 1) number LOOP
        EXECUTE format('CREATE TABLE cron_jobs_%s PARTITION OF cron_jobs FOR VALUES WITH (MODULUS %s, REMAINDER %s) '
                       'WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05)', made.number, partitions, made.number);
    END LOOP;
    ALTER TABLE cron_jobs ADD PRIMARY KEY (id, slot);
    CREATE SEQUENCE slots_ids OWNED BY cron_jobs.id;
    ALTER TABLE cron_jobs ALTER COLUMN id SET DEFAULT nextval('slots_ids');
    FOR made IN
        SELECT regexp_replace(replace(replace(pg_get_indexdef(indexrelid), 'cron_jobs_whole', 'cron_jobs'), ' INDEX ', ' INDEX p_'),
                              'UNIQUE (.*)\(key\)', 'UNIQUE \1(key, slot)') AS text
        FROM pg_index WHERE indrelid = 'cron_jobs_whole'::regclass AND NOT indisprimary
    LOOP
        EXECUTE made.text;
    END LOOP;
    CREATE TRIGGER cron_jobs_limit BEFORE INSERT ON cron_jobs FOR EACH ROW EXECUTE FUNCTION cron_limit_job();
END $$;
