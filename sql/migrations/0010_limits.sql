-- Priorities, and limits of how much may run at once of a module and of a namespace.

ALTER TABLE cron_jobs
    ADD COLUMN priority smallint NOT NULL
        GENERATED ALWAYS AS (CASE WHEN policy LIKE '%"priority":%' THEN (policy::json ->> 'priority')::smallint ELSE 0 END) STORED,
    -- Those that its module and its namespace have by now. A claim takes a place of each, and an end gives them back.
    ADD COLUMN module_limit bigint,
    ADD COLUMN namespace_limit bigint;

-- One row for each module and each namespace (module '') that was ever deployed, whether it has a limit or not: an end
-- finds the row of a limit that was set after the end began, as the row itself is older than what ends.
-- Locked in order of ids, and after all jobs that are locked with them.
CREATE TABLE cron_limits (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    module         text COLLATE "C" NOT NULL,
    -- Null: as many as there are.
    max_concurrent integer CHECK (max_concurrent > 0),
    -- Unfinished executions of the jobs that have this limit.
    running        integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    changed_at     timestamptz NOT NULL DEFAULT now(),
    changed_by     text NOT NULL DEFAULT '',
    note           text NOT NULL DEFAULT '',
    UNIQUE (namespace, module)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000);
INSERT INTO cron_limits (namespace, module)
SELECT DISTINCT namespace, module FROM deployments UNION SELECT DISTINCT namespace, '' FROM deployments;

-- A job that is made while its module or its namespace has a limit has it from the beginning. Whoever makes jobs keeps
-- limits from being set meanwhile (LockModule).
CREATE FUNCTION cron_limit_job() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.module_limit := (SELECT id FROM cron_limits WHERE namespace = NEW.namespace AND module = NEW.module
                         AND max_concurrent IS NOT NULL AND NEW.module > '');
    NEW.namespace_limit := (SELECT id FROM cron_limits WHERE namespace = NEW.namespace AND module = ''
                            AND max_concurrent IS NOT NULL);
    RETURN NEW;
END $$;
CREATE TRIGGER cron_jobs_limit BEFORE INSERT ON cron_jobs FOR EACH ROW EXECUTE FUNCTION cron_limit_job();
