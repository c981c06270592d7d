-- Runs that went over their memory_limit or cpu_limit have outcomes of their own.

-- The figures of each job: completed, failed, timed_out, cancelled, lost, out_of_memory, out_of_cpu.
ALTER TABLE cron_jobs ALTER COLUMN outcomes SET DEFAULT '{0,0,0,0,0,0,0}';
UPDATE cron_jobs SET outcomes = outcomes || '{0,0}';

-- What there is satisfied a stricter check already: nobody has to wait until all of history has been read again.
ALTER TABLE cron_executions
    DROP CONSTRAINT cron_executions_sound,
    ADD CONSTRAINT cron_executions_sound CHECK (
        attempt > 0 AND claimed_at >= run_at AND controller_id > '' AND runner_id > '' AND NOT (holds_job AND counted)
        AND CASE WHEN outcome IS NULL THEN ended_at IS NULL
                 ELSE outcome IN ('completed', 'failed', 'timed_out', 'cancelled', 'lost', 'out_of_memory', 'out_of_cpu')
                      AND ended_at IS NOT NULL AND ended_at >= started_at AND started_at >= claimed_at END) NOT VALID;
