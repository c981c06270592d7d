-- Retries of backfills and of manual runs are told from those of the schedule's own ticks.

ALTER TABLE cron_executions
    -- It is its schedule's own tick, or a retry of one: the next tick supersedes its retry, and it counts as a failure or a
    -- success in a row. Not so a manual run, a backfill, and their retries.
    ADD COLUMN of_schedule boolean NOT NULL DEFAULT true;
ALTER TABLE cron_activations ADD COLUMN of_schedule boolean NOT NULL DEFAULT false;

-- Of what has ended nobody asks any more.
UPDATE cron_executions SET of_schedule = false WHERE outcome IS NULL AND trigger IN ('manual', 'backfill');
UPDATE cron_activations SET of_schedule = true WHERE trigger = 'retry';
ALTER TABLE cron_activations ADD CHECK (trigger = 'retry' OR NOT of_schedule);

-- Ticks missed since the latest claim, decided in statements of their own: the next run is told of them.
ALTER TABLE cron_jobs ADD COLUMN missed bigint NOT NULL DEFAULT 0;
