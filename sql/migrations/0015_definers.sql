-- What only the owner of the tables may do, and others ask for: maintenance makes, swaps and drops partitions. These
-- functions run with their owner's rights, so that the role that controllers run as owns nothing. `cronring migrate`
-- gives each function of ours a search_path of its own, and takes it from PUBLIC (CloseSchema).
ALTER FUNCTION cron_add_partition(timestamptz) SECURITY DEFINER;
ALTER FUNCTION cron_stage_kept(timestamptz, bigint) SECURITY DEFINER;
ALTER FUNCTION cron_swap_staged(timestamptz, bigint, bigint, bigint) SECURITY DEFINER;
ALTER FUNCTION cron_drop_gone() SECURITY DEFINER;

-- Tables of a round of maintenance, empty in between. They are no temporary ones: what runs with its owner's rights must
-- not read what its caller has made, which may be a view that calls the caller's functions.
CREATE UNLOGGED TABLE cron_closings (
    job_id         bigint PRIMARY KEY,
    closed_at      timestamptz NOT NULL,
    until_at       timestamptz NOT NULL,
    executed       bigint NOT NULL DEFAULT 0,
    caught_up      bigint NOT NULL DEFAULT 0,
    late           bigint NOT NULL DEFAULT 0,
    executions     bigint NOT NULL DEFAULT 0,
    outcomes       jsonb NOT NULL DEFAULT '{}',
    triggers       jsonb NOT NULL DEFAULT '{}'
);
-- Jobs whose policy says how long their executions stay: what is younger than `history_ms`, and the newest `runs`.
CREATE UNLOGGED TABLE cron_wishes (
    job_id         bigint PRIMARY KEY,
    history_ms     bigint NOT NULL,
    runs           bigint NOT NULL
);
-- works with: 14
