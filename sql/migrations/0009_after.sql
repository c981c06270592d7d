-- Dependencies: jobs that run for the ticks of another one that have succeeded (policy `after`).

-- The key of the job that a job follows, by its policy's text; null for none.
CREATE FUNCTION cron_after(policy text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN policy LIKE '%"after":%' THEN policy::json ->> 'after' END;

-- Who follows whom: of jobs that are not removed. A table of its own, so that ends, which ask it for followers, neither
-- read nor lock rows of other jobs, and so that it doesn't matter which of the two is deployed first: the one that is
-- followed is named by its key, and need not be there.
CREATE TABLE cron_followers (
    job_id         bigint NOT NULL PRIMARY KEY,
    after          text COLLATE "C" NOT NULL
);
CREATE INDEX cron_followers_after ON cron_followers (after);

ALTER TABLE cron_activations
    DROP CONSTRAINT cron_activations_trigger_check,
    ADD CONSTRAINT cron_activations_trigger_check CHECK (trigger IN ('retry', 'manual', 'backfill', 'after')),
    DROP CONSTRAINT cron_activations_check2, -- 0003
    ADD CONSTRAINT cron_activations_of_schedule CHECK (trigger IN ('retry', 'after') OR NOT of_schedule);

-- A tick is followed once.
CREATE UNIQUE INDEX cron_activations_after ON cron_activations (job_id, tick) WHERE trigger = 'after';
