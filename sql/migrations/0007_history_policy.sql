-- How long each job's executions stay, if its policy says (`history`, `history_runs`), and jobs that are gone altogether.

-- Figures of jobs whose rows are gone: they still count in those of all time. The outcomes in the order of cron_jobs.
ALTER TABLE cron_maintenance
    ADD COLUMN gone_jobs bigint NOT NULL DEFAULT 0,
    ADD COLUMN gone_executions bigint NOT NULL DEFAULT 0,
    ADD COLUMN gone_outcomes bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}',
    ADD COLUMN gone_duration_us bigint NOT NULL DEFAULT 0,
    ADD COLUMN gone_lateness_us bigint NOT NULL DEFAULT 0;

-- Copies what stays of all partitions up to `boundary`: what is not closed yet, and the newest `runs` executions (or how
-- many its policy says; cron_wishes) of each job that is not long gone.
CREATE FUNCTION cron_stage_kept(boundary timestamptz, runs bigint) RETURNS void
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
BEGIN
    CREATE TABLE cron_executions_staged (
        LIKE cron_executions INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE
    ) WITH (autovacuum_vacuum_scale_factor = 0.02);
    EXECUTE format('ALTER TABLE cron_executions_staged ADD CHECK (tick < %L)', boundary);
    INSERT INTO cron_executions_staged
    SELECT e.* FROM cron_executions e
    JOIN cron_jobs j ON j.id = e.job_id
    LEFT JOIN cron_closings c ON c.job_id = e.job_id
    LEFT JOIN cron_wishes w ON w.job_id = e.job_id
    WHERE e.tick < boundary
      AND (c.job_id IS NULL OR e.tick > c.until_at
           OR e.number > j.executions - coalesce(w.runs, cron_stage_kept.runs) AND coalesce(j.removed_at > c.until_at, true));
    ALTER TABLE cron_executions_staged ADD PRIMARY KEY (id, tick), ADD UNIQUE (job_id, tick, attempt);
    CREATE INDEX ON cron_executions_staged (controller_id, hard_deadline) WHERE outcome IS NULL AND controller_id > '';
    CREATE INDEX ON cron_executions_staged (runner_id) WHERE outcome IS NULL AND runner_id > '';
    CREATE INDEX ON cron_executions_staged (outcome, id) WHERE outcome <> 'completed';
    CREATE INDEX ON cron_executions_staged (controller_id) WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL;
    ANALYZE cron_executions_staged;
END $$;
