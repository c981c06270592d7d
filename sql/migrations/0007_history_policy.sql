-- How long each job's executions stay, if it has an own mind about that.

-- What maintenance goes by in this round, for jobs whose policy says: filled anew each time (a day and a number of runs).
CREATE UNLOGGED TABLE cron_history_wishes (
    job_id         bigint PRIMARY KEY,
    -- Nothing of it goes that is younger.
    history_ms     bigint NOT NULL,
    -- Nor its newest.
    runs           bigint NOT NULL
);
