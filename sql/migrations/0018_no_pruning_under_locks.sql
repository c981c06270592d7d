-- What a statement that locks rows wants to know of single ticks: PostgreSQL 18 prunes partitions wrongly, or reads memory
-- that it has freed, in a statement that looks at a changed row again (docs/decisions/0001). In a function a look-up has
-- an executor of its own, to which that never happens. STABLE: it sees what the statement that asks sees.

-- How many attempts at a tick there are.
CREATE FUNCTION cron_attempts(of_job bigint, of_tick timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT count(*) FROM cron_executions WHERE job_id = of_job AND tick = of_tick);
END $$;

-- What the attempts at a tick have come to.
CREATE FUNCTION cron_tick(
    of_job bigint, of_tick timestamptz,
    OUT attempts integer, OUT missed bigint, OUT previous_tick timestamptz, OUT previous_success timestamptz,
    OUT completed boolean, OUT running boolean
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT coalesce(max(e.attempt), 0), coalesce(max(e.missed), 0), max(e.previous_tick), max(e.previous_success),
           coalesce(bool_or(e.outcome = 'completed'), false), coalesce(bool_or(e.ended_at IS NULL), false)
    INTO attempts, missed, previous_tick, previous_success, completed, running
    FROM cron_executions e WHERE e.job_id = of_job AND e.tick = of_tick;
END $$;

-- Whether of a job's runs before a tick the tenth still goes on, counted back.
CREATE FUNCTION cron_tenth_runs(of_job bigint, of_tick timestamptz) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce((SELECT ended_at IS NULL FROM cron_executions WHERE job_id = of_job AND tick < of_tick
                     ORDER BY tick DESC, attempt DESC LIMIT 1 OFFSET 9), false);
END $$;

-- As in 0007, but for (SELECT boundary): of a bare parameter, partitions are pruned before execution.
CREATE OR REPLACE FUNCTION cron_stage_kept(boundary timestamptz, runs bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET timezone = 'UTC' AS $$
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
    WHERE e.tick < (SELECT boundary)
      AND (c.job_id IS NULL OR e.tick > c.until_at
           OR e.number > j.executions - coalesce(w.runs, cron_stage_kept.runs) AND coalesce(j.removed_at > c.until_at, true));
    ALTER TABLE cron_executions_staged ADD PRIMARY KEY (id, tick), ADD UNIQUE (job_id, tick, attempt);
    CREATE INDEX ON cron_executions_staged (controller_id, hard_deadline) WHERE outcome IS NULL AND controller_id > '';
    CREATE INDEX ON cron_executions_staged (runner_id) WHERE outcome IS NULL AND runner_id > '';
    CREATE INDEX ON cron_executions_staged (outcome, id) WHERE outcome <> 'completed';
    CREATE INDEX ON cron_executions_staged (controller_id) WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL;
    ANALYZE cron_executions_staged;
END $$;
-- works with: 17
