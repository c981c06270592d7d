-- The tables of cronring's core. Every instant is PostgreSQL's own clock, in UTC.

CREATE TABLE deployments (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- COLLATE "C" wherever names are ordered or paged through: the same order on every machine, and that of Python.
    key            text COLLATE "C" NOT NULL UNIQUE,
    namespace      text COLLATE "C" NOT NULL,
    module         text COLLATE "C" NOT NULL,
    digest         text NOT NULL,
    schema_text    text NOT NULL,
    -- Active means min_replicas > 0: FTL's word, kept because StartCronJobs answers with it.
    min_replicas   integer NOT NULL CHECK (min_replicas >= 0),
    created_at     timestamptz NOT NULL DEFAULT now(),
    activated_at   timestamptz,
    deactivated_at timestamptz,
    UNIQUE (namespace, module, digest)
);
CREATE UNIQUE INDEX deployments_one_active ON deployments (namespace, module) WHERE min_replicas > 0;

CREATE TABLE cron_jobs (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key            text COLLATE "C" NOT NULL CHECK (key > ''),
    namespace      text COLLATE "C" NOT NULL,
    module         text COLLATE "C" NOT NULL,
    verb           text COLLATE "C" NOT NULL,
    slot           integer NOT NULL CHECK (slot BETWEEN 0 AND 4095),
    deployment_id  bigint NOT NULL REFERENCES deployments (id),
    schedule       text NOT NULL,
    -- Intervals count from here.
    anchor         timestamptz NOT NULL,
    -- Grows whenever the schedule changes, so that an end computed with the old one can't set the next tick.
    revision       integer NOT NULL DEFAULT 1,
    timeout_ms     bigint NOT NULL CHECK (timeout_ms > 0),
    on_disconnect  text NOT NULL CHECK (on_disconnect IN ('stop', 'finish')),
    created_at     timestamptz NOT NULL DEFAULT now(),
    removed_at     timestamptz,
    -- hot from here on
    state          text NOT NULL DEFAULT 'idle' CHECK (state IN ('idle', 'executing')),
    next_tick      timestamptz,
    next_execution timestamptz,
    start_time     timestamptz,
    execution_id   bigint,
    -- The latest tick ever claimed: a claim must be of a later one, even if the clock was set back.
    last_tick      timestamptz,
    last_run_at    timestamptz,
    last_started_at timestamptz,
    last_ended_at  timestamptz,
    last_outcome   text,
    CHECK ((next_tick IS NULL) = (next_execution IS NULL)),
    CHECK (next_execution >= next_tick),
    CHECK (removed_at IS NULL OR next_tick IS NULL),
    CHECK ((state = 'executing') = (start_time IS NOT NULL)),
    CHECK ((state = 'executing') = (execution_id IS NOT NULL))
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05); -- room to claim every row of a page at once
-- Each of the two has a condition that a query has to name to use it; else one may be read whole in place of the other.
CREATE UNIQUE INDEX cron_jobs_key ON cron_jobs (key) WHERE removed_at IS NULL AND key > '';
-- Not partial on state: a claim changes no indexed column, so it stays a HOT update.
CREATE INDEX cron_jobs_due ON cron_jobs (slot, next_execution) WHERE next_execution IS NOT NULL;

-- What a job's schedule was, and when: ticks in (from_at, until_at] were due by it. The books are recomputed from this.
CREATE TABLE cron_schedules (
    job_id         bigint NOT NULL,
    revision       integer NOT NULL,
    schedule       text NOT NULL,
    anchor         timestamptz NOT NULL,
    from_at        timestamptz NOT NULL,
    until_at       timestamptz,
    PRIMARY KEY (job_id, revision),
    CHECK (until_at >= from_at)
);

CREATE SEQUENCE cron_execution_ids AS bigint;

CREATE TABLE cron_executions (
    id             bigint NOT NULL DEFAULT nextval('cron_execution_ids') PRIMARY KEY,
    job_id         bigint NOT NULL,
    deployment_id  bigint NOT NULL,
    tick           timestamptz NOT NULL,
    run_at         timestamptz NOT NULL,
    attempt        integer NOT NULL DEFAULT 1 CHECK (attempt > 0),
    trigger        text NOT NULL DEFAULT 'schedule',
    -- The claim's start_time: the token that an end must match.
    claimed_at     timestamptz NOT NULL,
    -- When the verb's code began; known once its runner has reported.
    started_at     timestamptz CHECK (started_at >= claimed_at),
    ended_at       timestamptz CHECK (ended_at >= started_at),
    outcome        text CHECK (outcome IN ('completed', 'failed', 'timed_out', 'cancelled', 'lost')),
    controller_id  text COLLATE "C" NOT NULL CHECK (controller_id > ''),
    runner_id      text COLLATE "C" NOT NULL CHECK (runner_id > ''),
    hard_deadline  timestamptz NOT NULL,
    error_type     text,
    error_message  text,
    output         text,
    CONSTRAINT cron_executions_once UNIQUE (job_id, tick, attempt),
    CHECK (claimed_at >= run_at),
    CHECK ((outcome IS NULL) = (ended_at IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02);
ALTER SEQUENCE cron_execution_ids OWNED BY cron_executions.id;
-- The few that run now: by whom they were claimed (adoption, hard timeout), and where they run (lost). The conditions on
-- ids, which always hold, are as those of cron_jobs: a query has to name them.
CREATE INDEX cron_executions_of_controller ON cron_executions (controller_id, hard_deadline)
    WHERE outcome IS NULL AND controller_id > '';
CREATE INDEX cron_executions_of_runner ON cron_executions (runner_id) WHERE outcome IS NULL AND runner_id > '';
-- The ones people look for. An execution that completes has no entry here.
CREATE INDEX cron_executions_troubled ON cron_executions (outcome, id) WHERE outcome <> 'completed';

-- Ticks that did not run, as ranges: one row for however many in a row had the same reason.
CREATE TABLE cron_skips (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id         bigint NOT NULL,
    reason         text NOT NULL CHECK (reason IN ('overlap', 'paused', 'no_runner', 'outside_window', 'superseded')),
    first_tick     timestamptz NOT NULL,
    last_tick      timestamptz NOT NULL,
    ticks          bigint NOT NULL CHECK (ticks > 0),
    -- Who decided; empty for a deployment.
    controller_id  text COLLATE "C" NOT NULL,
    decided_at     timestamptz NOT NULL DEFAULT now(),
    CHECK (last_tick >= first_tick)
);
CREATE INDEX cron_skips_job ON cron_skips (job_id, first_tick);

-- A row outlives its lease for as long as unfinished executions carry its id, so that they can be found and adopted.
CREATE TABLE controllers (
    id               text COLLATE "C" PRIMARY KEY,
    grpc_address     text NOT NULL,
    http_address     text NOT NULL,
    pid              integer NOT NULL,
    version          text NOT NULL,
    draining         boolean NOT NULL DEFAULT false,
    started_at       timestamptz NOT NULL DEFAULT now(),
    lease_expires_at timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000);

CREATE TABLE runners (
    id             text COLLATE "C" PRIMARY KEY,
    hostname       text NOT NULL,
    pid            integer NOT NULL,
    version        text NOT NULL,
    deployments    text[] NOT NULL,
    started_at     timestamptz NOT NULL DEFAULT now(),
    last_seen_at   timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000);

-- What people see. `state` says only what a claim needs; everything else follows from the row.
CREATE VIEW cron_job_status AS
SELECT id AS job_id,
       CASE WHEN state = 'executing' THEN 'running'
            WHEN removed_at IS NOT NULL THEN 'cancelled'
            WHEN next_tick IS NOT NULL THEN 'scheduled'
            WHEN last_outcome IS NULL THEN 'pending'
            WHEN last_outcome IN ('completed', 'cancelled') THEN last_outcome
            ELSE 'failed'
       END AS status
FROM cron_jobs;
