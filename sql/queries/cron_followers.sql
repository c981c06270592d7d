-- Which job follows which. The statements that write jobs maintain it (cron_jobs.sql, job_control.sql); ends read it.

-- name: GetFollowed
-- docs/decisions/0046: a table, not a flag on the job that is followed
-- Chains of followed jobs: the jobs that these follow, the jobs that those follow, and so on. Pairs of keys.
WITH RECURSIVE chain (key, after) AS (
    SELECT j.key, f.after
    FROM cron_jobs j
    JOIN cron_followers f ON f.job_id = j.id
    WHERE j.removed_at IS NULL AND j.key > '' AND j.key = ANY(:keys::text[])
    UNION
    SELECT j.key, f.after
    FROM chain c
    CROSS JOIN LATERAL (
        SELECT id, key FROM cron_jobs WHERE removed_at IS NULL AND key > '' AND key = c.after OFFSET 0
    ) j
    JOIN cron_followers f ON f.job_id = j.id
)
SELECT key, after FROM chain;
