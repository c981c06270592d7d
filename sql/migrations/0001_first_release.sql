-- All tables of the first release, each with what it is for. sql/schema.sql has what is in force after later
-- migrations.
--
-- Every instant is PostgreSQL's own clock, in UTC. Names have COLLATE "C" wherever they are ordered or paged through.
-- So their order is the same on every machine, and that of Python. What is updated often has room in its pages
-- (fillfactor), or is vacuumed early.
--
-- `cronring migrate` gives each function of ours a search_path of its own, and takes it from PUBLIC (CloseSchema).

-- ---------------------------------------------------------------------------------------------------------------------
-- Members of the cluster
-- ---------------------------------------------------------------------------------------------------------------------

-- A row outlives its lease for as long as unfinished executions carry its id: so they are found, and adopted.
CREATE TABLE controllers (
    id             text COLLATE "C" PRIMARY KEY,
    -- Where people and services ask it.
    grpc_address   text NOT NULL,
    -- Where controllers and runners connect to, by their certificates; empty: grpc_address, without certificates.
    peer_address   text NOT NULL DEFAULT '',
    http_address   text NOT NULL,
    pid            integer NOT NULL,
    version        text NOT NULL,
    -- The zone data (the tzdata package's version) that it computes by.
    zone_data      text NOT NULL DEFAULT '',
    started_at     timestamptz NOT NULL DEFAULT now(),
    draining       boolean NOT NULL DEFAULT false,
    -- It is in a drill (`cronring drill`), until then.
    drill_until timestamptz,
    lease_expires_at timestamptz NOT NULL,
    -- Since when it has held its lease without a gap.
    held_since     timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000);

CREATE TABLE runners (
    id             text COLLATE "C" PRIMARY KEY,
    hostname       text NOT NULL,
    pid            integer NOT NULL,
    version        text NOT NULL,
    deployments    text[] NOT NULL,
    -- Runs of each module that it holds at once, of sync and of async verbs. 0: it doesn't tell.
    sync_places    integer NOT NULL DEFAULT 0,
    async_places   integer NOT NULL DEFAULT 0,
    started_at     timestamptz NOT NULL DEFAULT now(),
    last_seen_at   timestamptz NOT NULL,
    -- It drained and left: then it is not one that died.
    left_at        timestamptz,
    -- Since when it has been seen without a gap.
    held_since     timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000);

-- Lives of controllers and runners that have ended: how long one held its lease, or was seen, without a gap. What goes
-- on stands in their own rows. So a life is written once: when its member comes back, or is forgotten.
-- docs/decisions/0108: no share is stored, as the ring is a function of its members
CREATE TABLE cron_lives (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind           text NOT NULL CHECK (kind IN ('controller', 'runner')),
    member         text COLLATE "C" NOT NULL,
    from_at        timestamptz NOT NULL,
    until_at       timestamptz NOT NULL,
    -- It went by itself. Else its lease ran out, or nobody saw it any more.
    departed       boolean NOT NULL,
    -- Of a controller the address that people connect to, of a runner its machine.
    address        text NOT NULL,
    version        text NOT NULL,
    -- Of a runner, what it hosted.
    deployments    text[] NOT NULL DEFAULT '{}'
);
CREATE INDEX cron_lives_until ON cron_lives (until_at);

CREATE FUNCTION cron_note_controllers_life() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cron_lives (kind, member, from_at, until_at, departed, address, version)
    VALUES ('controller', old.id, old.held_since, old.lease_expires_at, old.draining, old.grpc_address, old.version);
    IF tg_op = 'DELETE' THEN
        RETURN old;
    END IF;
    new.held_since := now();
    RETURN new;
END $$;
CREATE TRIGGER controllers_came_back BEFORE UPDATE OF lease_expires_at ON controllers
FOR EACH ROW WHEN (old.lease_expires_at <= now() AND new.lease_expires_at > now())
EXECUTE FUNCTION cron_note_controllers_life();
CREATE TRIGGER controllers_forgotten BEFORE DELETE ON controllers
FOR EACH ROW EXECUTE FUNCTION cron_note_controllers_life();

CREATE FUNCTION cron_note_runners_life() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cron_lives (kind, member, from_at, until_at, departed, address, version, deployments)
    VALUES ('runner', old.id, old.held_since, coalesce(old.left_at, old.last_seen_at), old.left_at IS NOT NULL,
            old.hostname, old.version, old.deployments);
    IF tg_op = 'DELETE' THEN
        RETURN old;
    END IF;
    new.held_since := now();
    RETURN new;
END $$;
-- For ten seconds a runner may be away, as others call it lost after that.
CREATE TRIGGER runners_came_back BEFORE UPDATE OF last_seen_at ON runners
FOR EACH ROW WHEN (new.left_at IS NULL
                   AND (old.left_at IS NOT NULL OR old.last_seen_at < new.last_seen_at - interval '10 seconds'))
EXECUTE FUNCTION cron_note_runners_life();
CREATE TRIGGER runners_forgotten BEFORE DELETE ON runners
FOR EACH ROW EXECUTE FUNCTION cron_note_runners_life();

-- Every version of zone data that ever decided a tick here. Members may differ for a while, and a new version may have
-- other rules for an instant that is past. Then the books are right, and whoever recomputes them sees another tick.
CREATE TABLE cron_zone_data (
    version        text PRIMARY KEY,
    first_used_at  timestamptz NOT NULL DEFAULT now()
);

-- The key that locks what clients keep for us and send back: page tokens, resume tokens. Whoever changes it makes all
-- of them void, once controllers have been restarted. Two random UUIDs have 244 bits that nobody can guess.
CREATE TABLE cron_keys (
    name           text PRIMARY KEY,
    key            bytea NOT NULL CHECK (octet_length(key) >= 32)
);
INSERT INTO cron_keys (name, key)
VALUES ('pages', sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));

-- ---------------------------------------------------------------------------------------------------------------------
-- Jobs: what runs, and when next
-- ---------------------------------------------------------------------------------------------------------------------

-- A version of a module. At most one of a module is active.
CREATE TABLE deployments (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key            text COLLATE "C" NOT NULL UNIQUE,
    namespace      text COLLATE "C" NOT NULL,
    module         text COLLATE "C" NOT NULL,
    digest         text NOT NULL,
    schema_text    text NOT NULL,
    -- Of the module's verbs. The others have places of their own at runners.
    async_verbs    text[] NOT NULL DEFAULT '{}',
    -- SHA-256 of the bytes that the schema came in: who sends these again is known without reading them.
    fingerprint    text NOT NULL DEFAULT '',
    -- So many runners ought to host it (cronring doctor). 0: it is not active.
    min_replicas   integer NOT NULL CHECK (min_replicas >= 0),
    created_at     timestamptz NOT NULL DEFAULT now(),
    activated_at   timestamptz,
    deactivated_at timestamptz,
    UNIQUE (namespace, module, digest)
);
CREATE UNIQUE INDEX deployments_one_active ON deployments (namespace, module) WHERE min_replicas > 0;

-- One row for each job, those that are gone included. A claim and an end each update it, so what they write stands
-- together, last: WAL has what lies between the first and the last byte that an update changes.
-- Nothing here is generated (docs/decisions/0004).
CREATE TABLE cron_jobs (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key            text COLLATE "C" NOT NULL,
    namespace      text COLLATE "C" NOT NULL,
    module         text COLLATE "C" NOT NULL,
    verb           text COLLATE "C" NOT NULL,
    slot           integer NOT NULL,
    deployment_id  bigint NOT NULL REFERENCES deployments (id),
    source         text NOT NULL DEFAULT 'annotation',
    -- The template that it was made from, in its own namespace. The template's values were copied then.
    template       text NOT NULL DEFAULT '',
    -- The set that owns it, in its own namespace; "": none does. A removed job keeps it (docs/decisions/0094).
    set_name       text COLLATE "C" NOT NULL DEFAULT '',
    labels         jsonb NOT NULL DEFAULT '{}',
    -- JSON for the verb's parameter; "" for none.
    payload        text NOT NULL DEFAULT '',
    -- Above 0: it says so, or its verb does. Below: nobody says it. Where cron_defaults doesn't either, it is that
    -- without the sign: --timeout, as of when the job was made.
    timeout_ms     bigint NOT NULL,
    on_disconnect  text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    removed_at     timestamptz,
    -- When, and by whom, it was last made, changed, resumed or deleted through the API. By the instant, whoever watches
    -- jobs finds what no execution, skip or deployment tells of.
    changed_at     timestamptz,
    changed_by     text,

    schedule       text NOT NULL,
    -- Intervals count from here.
    anchor         timestamptz NOT NULL,
    -- Grows whenever the schedule changes, so that an end computed with the old one can't set the next tick.
    revision       integer NOT NULL DEFAULT 1,
    -- Canonical JSON of what isn't default (schema/policy.py); "" for none.
    policy         text NOT NULL DEFAULT '',
    -- By the policy. 0: one execution at a time, held by `state`. Else (overlap "allow") as many; the state stays idle,
    -- and `running` counts.
    concurrency    smallint NOT NULL DEFAULT 0,
    -- By the policy: pause after so many ticks in a row that ended without success; 0: never.
    pause_after    integer NOT NULL DEFAULT 0,
    -- Of cron_limits, those that it is under by now: of its module, its namespace, its labels. A claim takes a place of
    -- each. Null: none, and an end has no places to give back. Empty: none, but what runs may have some.
    limits         bigint[],

    -- A paused job has no next tick; `paused_tick` is the first one that its pause keeps from running.
    paused_at      timestamptz,
    paused_tick    timestamptz,
    -- Of a pause that ends by itself: the job has a next tick already, the first one from then on. Those before it are
    -- in the books as paused. So nothing has to happen when the pause ends, whoever lives then.
    paused_until   timestamptz,
    paused_by      text,
    paused_note    text,
    -- Ticks of which it was decided ahead of their time that they don't run: the first and the last. While the last is
    -- still to come, a change takes back what of them is, with their rows in cron_skips.
    ahead_from     timestamptz,
    ahead_until    timestamptz,
    -- A cancelled job has no next tick, and its books are closed; it can be restored.
    cancelled_at   timestamptz,
    cancelled_by   text,
    cancelled_note text,
    -- A job that somebody made through the API outlives its verb: orphaned, it waits until a version has it again.
    orphaned_at    timestamptz,
    -- Of an orphaned job, which has no next tick: the first that nobody had decided. It and all after it don't run.
    -- They are skipped as no_verb, in one row, when the verb is back: nothing is written for each of them.
    orphaned_tick  timestamptz,

    -- Claims and ends write from here on.
    state          text NOT NULL DEFAULT 'idle',
    next_tick      timestamptz,
    -- The next tick, moved by jitter. An interval's jitter goes both ways, so it may be earlier than the tick.
    next_execution timestamptz,
    start_time     timestamptz,
    execution_id   bigint,
    running        smallint NOT NULL DEFAULT 0,
    -- The latest tick ever claimed: a claim must be of a later one, even if the clock was set back.
    last_tick      timestamptz,
    -- Ticks missed since the latest claim, decided in statements of their own: the next run is told of them.
    missed         bigint NOT NULL DEFAULT 0,
    last_run_at    timestamptz,
    last_started_at timestamptz,
    last_ended_at  timestamptz,
    last_outcome   text,
    -- The latest tick whose execution completed.
    last_success   timestamptz,
    -- Ticks in a row that ended without success.
    failures       integer NOT NULL DEFAULT 0,
    -- Executions claimed so far: the number of the latest one.
    executions     bigint NOT NULL DEFAULT 0,

    -- What claims and ends could break. PostgreSQL reads this text anew in each statement, so it is short
    -- (docs/decisions/0122). The trigger of the same name has what only people and deployments change.
    CONSTRAINT cron_jobs_sound CHECK (
        (next_tick IS NULL) = (next_execution IS NULL)
        AND (next_tick IS NULL OR coalesce(removed_at, cancelled_at, orphaned_at,
                                           CASE WHEN paused_until IS NULL THEN paused_at END) IS NULL)
        AND (start_time IS NULL) = (execution_id IS NULL)
        AND state = CASE WHEN execution_id IS NULL THEN 'idle' ELSE 'executing' END
        -- What holds a job runs alone, whatever the job's policy was before.
        AND CASE WHEN execution_id IS NULL THEN running >= 0 ELSE running = 0 END)
) WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05); -- room to claim every row of a page at once

-- Each end moves its job's row (next_execution), and writes an entry into each index that the row is in. So all but the
-- first two hold only the few jobs that need them (docs/decisions/0012). Jobs of a module are found by their keys.
-- Each of the first two has a condition that a query has to name to use it. Else one may be read whole in place of the
-- other.
CREATE UNIQUE INDEX cron_jobs_key ON cron_jobs (key) WHERE removed_at IS NULL AND key > '';
-- Not partial on state: a claim changes no indexed column, so it stays a HOT update.
CREATE INDEX cron_jobs_due ON cron_jobs (slot, next_execution) WHERE next_execution IS NOT NULL;
CREATE INDEX cron_jobs_removed ON cron_jobs (key, id) WHERE removed_at IS NOT NULL AND key > '';
CREATE INDEX cron_jobs_template ON cron_jobs (namespace, template) WHERE template > '' AND removed_at IS NULL;
CREATE INDEX cron_jobs_set ON cron_jobs (namespace, set_name, key) WHERE set_name > '' AND removed_at IS NULL;
CREATE INDEX cron_jobs_labels ON cron_jobs USING gin (labels jsonb_path_ops) WHERE labels <> '{}';
-- Without it, whoever watches jobs reads all of them four times a second.
CREATE INDEX cron_jobs_changed ON cron_jobs (changed_at) WHERE changed_at IS NOT NULL;
-- Whoever watches jobs is told when a pause ends by itself.
CREATE INDEX cron_jobs_paused_until ON cron_jobs (paused_until) WHERE paused_until IS NOT NULL;
-- For the doctor, however many jobs there are.
CREATE INDEX cron_jobs_orphaned ON cron_jobs (module, verb) WHERE orphaned_at IS NOT NULL;
-- Jobs that want to be watched for late ticks, by when they are due. Hot statements name no such condition.
CREATE INDEX cron_jobs_late ON cron_jobs (next_execution)
    WHERE next_execution IS NOT NULL AND policy LIKE '%"late_after":%';

-- Refuses the row that a trigger was called for, as a CHECK of the trigger's name would.
CREATE FUNCTION cron_refuse() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, TG_NAME
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END $$;
-- AFTER: a BEFORE UPDATE trigger, whatever columns it is of, has each claim and each end look its row up and
-- lock it once more.
CREATE TRIGGER cron_jobs_sound
AFTER INSERT OR UPDATE OF key, slot, timeout_ms, on_disconnect, paused_at, paused_tick, paused_until, orphaned_at,
    orphaned_tick ON cron_jobs
FOR EACH ROW WHEN (NOT (
    NEW.key > '' AND NEW.slot BETWEEN 0 AND 4095 AND NEW.timeout_ms <> 0 AND NEW.on_disconnect IN ('stop', 'finish')
    AND (NEW.orphaned_tick IS NULL OR NEW.orphaned_at IS NOT NULL)
    AND CASE WHEN NEW.paused_at IS NULL THEN NEW.paused_tick IS NULL AND NEW.paused_until IS NULL
             ELSE NEW.paused_until IS NOT NULL OR NEW.orphaned_tick IS NULL END))
EXECUTE FUNCTION cron_refuse();

-- Whether a pause is in force.
CREATE FUNCTION cron_paused(paused_at timestamptz, paused_until timestamptz) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > now());

-- Whether a job's ticks run, and its retries.
CREATE FUNCTION cron_active(
    removed_at timestamptz, cancelled_at timestamptz, orphaned_at timestamptz, paused_at timestamptz,
    paused_until timestamptz
) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN removed_at IS NULL AND cancelled_at IS NULL AND orphaned_at IS NULL
       AND (paused_at IS NULL OR coalesce(paused_until <= now(), false));

-- The priority that a policy's text says; 0 where it says none.
CREATE FUNCTION cron_priority(policy text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN policy LIKE '%"priority":%' THEN (policy::json ->> 'priority')::smallint ELSE 0 END;

-- The key of the job that a job follows, by its policy's text; null for none.
CREATE FUNCTION cron_after(policy text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN policy LIKE '%"after":%' THEN policy::json ->> 'after' END;

-- Whether no further execution of a job may begin: one holds it, or as many run as may run at once.
CREATE FUNCTION cron_full(state text, running smallint, concurrency smallint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN state = 'executing' OR running >= greatest(concurrency, 1);

-- What jobs have that don't say it, and whose verbs don't: of the whole cluster. One row, read with each job. So a
-- change writes no job (docs/decisions/0117). Null, and no retries: nobody has set it.
CREATE TABLE cron_defaults (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    timeout_ms     bigint CHECK (timeout_ms > 0),
    late_after_ms  bigint CHECK (late_after_ms > 0),
    retries        integer NOT NULL DEFAULT 0 CHECK (retries BETWEEN 0 AND 100),
    -- Grows with each change.
    revision       bigint NOT NULL DEFAULT 0,
    changed_at     timestamptz,
    changed_by     text NOT NULL DEFAULT '',
    note           text NOT NULL DEFAULT ''
);
INSERT INTO cron_defaults DEFAULT VALUES;

-- A job's timeout in force. `own` is its row's, `of_cluster` that of cron_defaults.
CREATE FUNCTION cron_timeout(own bigint, of_cluster bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN own > 0 THEN own ELSE coalesce(of_cluster, -own) END;

-- docs/decisions/0065: what stands in views, and why they cost nothing
-- What follows are the projections that many statements give. PostgreSQL inlines these views, and the functions that
-- they call, as both are simple: no plan differs from one of the tables (tests/plans/test_views.py). Rows are locked in
-- the tables, never through a view. Statements give all columns of a view, by their order. So a later migration adds no
-- column to a view: it makes another view, as programs of the release before are still at work.

-- A job as a node schedules it, in the order of Job in controller/core/model.py. From `active` on stands what
-- statements choose by: whether its deployment is active, where the job belongs, and whether its ticks run.
CREATE VIEW cron_scheduled_jobs AS
SELECT j.id, j.key, j.slot, d.key AS deployment, j.verb, j.schedule, j.anchor, j.revision,
       cron_timeout(j.timeout_ms, (SELECT timeout_ms FROM cron_defaults)) AS timeout_ms, j.on_disconnect,
       cron_full(j.state, j.running, j.concurrency) AS executing, j.next_tick, j.next_execution,
       j.policy, j.payload, coalesce(j.labels ->> 'workspace', '') AS share,
       (SELECT retries FROM cron_defaults) AS default_retries,
       d.min_replicas > 0 AS active, j.namespace, j.module, j.removed_at, j.orphaned_at, j.paused_at, j.paused_until
FROM cron_jobs j
JOIN deployments d ON d.id = j.deployment_id;

-- A job as people see it, in the order of JobRow in controller/ports/reads.py, then its spec (schema/job.py). `state`
-- says only what a claim needs; everything else follows from the row. A job without a schedule of its own is never
-- done: it waits to be triggered, or for the job that it follows. (controller/core/orders/states.py says the same of
-- one row.) Without its payload: a thousand of them would not fit into a message.
CREATE VIEW cron_job_details AS
SELECT j.id, j.key, j.namespace, j.module, j.verb,
       CASE WHEN j.cancelled_at IS NOT NULL OR j.removed_at IS NOT NULL THEN 'cancelled'
            WHEN j.orphaned_at IS NOT NULL THEN 'orphaned'
            WHEN cron_paused(j.paused_at, j.paused_until) THEN 'paused'
            WHEN j.state = 'executing' OR j.running > 0 THEN 'running'
            WHEN j.next_tick IS NOT NULL THEN 'scheduled'
            WHEN j.last_outcome IS NULL OR j.schedule = 'manual' THEN 'pending'
            WHEN j.last_outcome = 'completed' THEN 'completed'
            ELSE 'failed'
       END AS status,
       j.slot, d.key AS deployment, j.created_at, j.removed_at, j.next_tick, j.next_execution, j.last_outcome,
       j.last_run_at, j.last_started_at, j.last_ended_at, j.execution_id, j.source,
       CASE WHEN cron_paused(j.paused_at, j.paused_until) THEN j.paused_at END AS paused_at,
       j.paused_by, j.paused_note, j.failures, j.last_success, j.running, j.last_tick, j.paused_tick, j.paused_until,
       j.cancelled_at, j.cancelled_by, j.cancelled_note, j.template, j.set_name, j.orphaned_at,
       (SELECT timeout_ms FROM cron_defaults) AS default_timeout_ms,
       (SELECT late_after_ms FROM cron_defaults) AS default_late_after_ms,
       (SELECT retries FROM cron_defaults) AS default_retries,
       j.schedule, j.anchor, j.timeout_ms, j.on_disconnect, j.policy, j.labels
FROM cron_jobs j
LEFT JOIN deployments d ON d.id = j.deployment_id; -- each has one: so who asks for nothing of it, reads none

-- For people who read with SQL: docs/sql.md. Without jobs that are removed. A row keeps the next tick of the schedule,
-- which a window may forbid: controllers reckon that, and SQL can't. So it doesn't tell when a job with one runs.
CREATE VIEW cron_job_status AS
SELECT id AS job_id, key, namespace, module, verb, status, schedule, next_tick,
       CASE WHEN policy NOT LIKE '%"window":%' THEN next_execution END AS next_execution, last_outcome,
       last_started_at, last_ended_at, last_success, failures, labels, template, set_name, paused_by, paused_note,
       deployment
FROM cron_job_details
WHERE removed_at IS NULL;

-- Payloads that a job has had, and until when, so that each execution can tell with which it ran: no claim copies them.
-- The newest hundred are kept; null: of before those. `until_at` is by the clock once the job's row was locked. So
-- whatever was claimed with a payload had been claimed by then, and what comes after sees the next one.
CREATE TABLE cron_payloads (
    job_id         bigint NOT NULL REFERENCES cron_jobs (id) ON DELETE CASCADE,
    until_at       timestamptz NOT NULL,
    payload        text,
    PRIMARY KEY (job_id, until_at)
);
CREATE FUNCTION cron_note_payload() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    too_old timestamptz;
BEGIN
    INSERT INTO cron_payloads (job_id, until_at, payload) VALUES (old.id, clock_timestamp(), old.payload);
    SELECT until_at INTO too_old FROM cron_payloads WHERE job_id = old.id ORDER BY until_at DESC OFFSET 100 LIMIT 1;
    IF too_old IS NOT NULL THEN
        DELETE FROM cron_payloads WHERE job_id = old.id AND until_at < too_old;
        UPDATE cron_payloads SET payload = NULL WHERE job_id = old.id AND until_at = too_old;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER cron_jobs_note_payload AFTER UPDATE OF payload ON cron_jobs
FOR EACH ROW WHEN (new.payload IS DISTINCT FROM old.payload) EXECUTE FUNCTION cron_note_payload();

-- What a job's schedule was, and when: ticks in (from_at, until_at] were due by it. The books are recomputed from this.
CREATE TABLE cron_schedules (
    job_id         bigint NOT NULL,
    revision       integer NOT NULL,
    schedule       text NOT NULL,
    anchor         timestamptz NOT NULL,
    policy         text NOT NULL DEFAULT '',
    from_at        timestamptz NOT NULL,
    until_at       timestamptz,
    PRIMARY KEY (job_id, revision),
    CHECK (until_at >= from_at)
);
CREATE INDEX cron_schedules_open ON cron_schedules (job_id) WHERE until_at IS NULL;

-- Who follows whom: of jobs that are not removed. It is a table of its own, so that ends, which ask it for followers,
-- neither read nor lock rows of other jobs. Nor does it matter which of the two is deployed first: the one that is
-- followed is named by its key, and need not be there.
CREATE TABLE cron_followers (
    job_id         bigint NOT NULL PRIMARY KEY,
    after          text COLLATE "C" NOT NULL
);
CREATE INDEX cron_followers_after ON cron_followers (after);

-- The names of a job whose target is a queue, as its row has them (schema/queues.py).
CREATE FUNCTION cron_queue_name(module text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN substr(module, 2);
CREATE FUNCTION cron_workspace(verb text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN verb = '-' THEN '' ELSE verb END;
-- Whether its executions end by what becomes of their messages.
CREATE FUNCTION cron_awaits(policy text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN policy LIKE '%"completes":"consumed"%';

-- Messages of queues: what waits for its consumer, and what an ended one has not been settled by yet. A claim inserts
-- the message of its tick in its own transaction.
CREATE TABLE cron_queue (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    -- The job's label of that name; '' without one.
    workspace      text COLLATE "C" NOT NULL DEFAULT '',
    -- Null: a service put it there itself.
    job_id         bigint,
    execution_id   bigint,
    tick           timestamptz,
    run_at         timestamptz NOT NULL DEFAULT now(),
    attempt        integer NOT NULL DEFAULT 1,
    -- JSON; as it was when the tick was claimed.
    payload        text NOT NULL DEFAULT '',
    -- The execution ends by what becomes of the message.
    awaited        boolean NOT NULL DEFAULT false,
    hard_deadline  timestamptz,
    enqueued_at    timestamptz NOT NULL DEFAULT now(),

    -- What its consumers say of it.
    ended_at       timestamptz,
    outcome        text,
    error_type     text,
    error_message  text,
    output         text,
    -- Deliveries that failed, or whose consumer was lost. The error is that of the latest.
    failures       integer NOT NULL DEFAULT 0,
    -- The latest consumer was lost, perhaps by this message: it is given out alone.
    lost           boolean NOT NULL DEFAULT false,
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
-- Each lane in its order; and by its first two columns what a workspace has, in however many queues.
CREATE INDEX cron_queue_lane ON cron_queue (namespace, workspace, queue, run_at, id) WHERE ended_at IS NULL;
-- Each queue by age: what lists and figures ask for.
CREATE INDEX cron_queue_age ON cron_queue (namespace, queue, id) WHERE ended_at IS NULL;
-- The engine's: the message of an execution, and what consumers have said and no end has settled yet.
CREATE INDEX cron_queue_execution ON cron_queue (execution_id) WHERE awaited;
CREATE INDEX cron_queue_ended ON cron_queue (id) WHERE ended_at IS NOT NULL AND awaited;
-- Controllers hear of what consumers have said, and end its execution.
CREATE FUNCTION cron_tell_ended() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_SCHEMA || '.consumed', '');
    RETURN NULL;
END $$;
CREATE TRIGGER cron_queue_tell_ended AFTER UPDATE OF ended_at ON cron_queue
FOR EACH ROW WHEN (new.awaited AND new.ended_at IS NOT NULL AND old.ended_at IS NULL)
EXECUTE FUNCTION cron_tell_ended();

-- How much may run at once. There is one row for each module and each namespace (module '') that was ever deployed,
-- whether it has a limit or not. Rows are locked in order of ids, and after all jobs and executions that are locked
-- with them.
CREATE TABLE cron_limits (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    module         text COLLATE "C" NOT NULL,
    -- Of a limit by label: that label. So many may run of each of its values. Else ''.
    label          text COLLATE "C" NOT NULL DEFAULT '',
    -- A limit by label has a row for each value that something ran of: it counts what runs. `rule` is the limit itself.
    rule           bigint,
    value          text COLLATE "C",
    -- Null: as many as there are.
    max_concurrent integer CHECK (max_concurrent > 0),
    -- Unfinished executions that have a place of this limit, or of this value.
    running        integer NOT NULL DEFAULT 0 CHECK (running >= 0),
    changed_at     timestamptz NOT NULL DEFAULT now(),
    changed_by     text NOT NULL DEFAULT '',
    note           text NOT NULL DEFAULT '',
    CHECK ((rule IS NULL) = (value IS NULL) AND (rule IS NULL OR label > ''))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000);
CREATE UNIQUE INDEX cron_limits_rule ON cron_limits (namespace, module, label) WHERE rule IS NULL;
CREATE UNIQUE INDEX cron_limits_value ON cron_limits (rule, value) WHERE rule IS NOT NULL;
-- Names of modules, however many values there are.
CREATE INDEX cron_limits_module ON cron_limits (module) WHERE label = '';

-- The limits that a job is under: its module's before its namespace's, those by label behind. Null: none.
CREATE FUNCTION cron_limits_of(of_namespace text, of_module text, of_labels jsonb) RETURNS bigint[]
LANGUAGE sql STABLE
RETURN (SELECT array_agg(id ORDER BY label, module = '', id) FROM cron_limits
        WHERE namespace = of_namespace AND module IN (of_module, '') AND rule IS NULL AND max_concurrent IS NOT NULL
          AND (label = '' OR jsonb_exists(of_labels, label)));

-- A job has its limits from the beginning, and others with other labels. Who sets a limit locks the jobs first, and
-- looks at their labels then. Whoever makes jobs keeps limits from being set meanwhile (LockModule).
CREATE FUNCTION cron_limit_job() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    NEW.limits := cron_limits_of(NEW.namespace, NEW.module, NEW.labels);
    RETURN NEW;
END $$;
CREATE TRIGGER cron_jobs_limit BEFORE INSERT ON cron_jobs FOR EACH ROW EXECUTE FUNCTION cron_limit_job();
-- AFTER, as cron_jobs_sound, and so a second change of the row.
CREATE FUNCTION cron_limit_labels() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    under bigint[] := cron_limits_of(NEW.namespace, NEW.module, NEW.labels);
BEGIN
    IF under IS NULL AND OLD.limits IS NOT NULL THEN
        under := '{}';
    END IF;
    UPDATE cron_jobs SET limits = under WHERE id = NEW.id AND limits IS DISTINCT FROM under;
    RETURN NULL;
END $$;
CREATE TRIGGER cron_jobs_limit_labels AFTER UPDATE OF labels ON cron_jobs
FOR EACH ROW WHEN (NEW.labels IS DISTINCT FROM OLD.labels) EXECUTE FUNCTION cron_limit_labels();

-- Named defaults that jobs made through the API start from. What is '', '{}', 0 or null is left to the job. Texts are
-- canonical, as in cron_jobs; the policy is partial.
CREATE TABLE cron_templates (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL CHECK (name > ''),
    description    text NOT NULL DEFAULT '',
    schedule       text NOT NULL DEFAULT '',
    anchor         timestamptz CHECK (anchor IS NULL OR schedule > ''),
    policy         text NOT NULL DEFAULT '',
    payload        text NOT NULL DEFAULT '' CHECK (octet_length(payload) <= 65536),
    labels         jsonb NOT NULL DEFAULT '{}',
    timeout_ms     bigint NOT NULL DEFAULT 0 CHECK (timeout_ms >= 0),
    on_disconnect  text NOT NULL DEFAULT '' CHECK (on_disconnect IN ('', 'stop', 'finish')),
    revision       bigint NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL,
    created_by     text NOT NULL,
    changed_at     timestamptz NOT NULL,
    changed_by     text NOT NULL,
    UNIQUE (namespace, name)
);

-- Sets of jobs that files declare. Which jobs are a set's, their rows say. A set without jobs has no row.
CREATE TABLE cron_sets (
    namespace      text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL CHECK (name > ''),
    -- Grows with each change by `apply`: who planned by an older one is refused. Their rows' locks order two at once.
    revision       bigint NOT NULL,
    applied_at     timestamptz NOT NULL,
    applied_by     text NOT NULL,
    note           text NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, name)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Executions: what ran, and what runs
-- ---------------------------------------------------------------------------------------------------------------------

CREATE SEQUENCE cron_execution_ids AS bigint;

-- How an execution ended. A connection reads a domain's rule once; that of a table, in each statement.
CREATE DOMAIN cron_outcome AS text CONSTRAINT cron_outcome_known
CHECK (VALUE IN ('completed', 'failed', 'timed_out', 'cancelled', 'lost', 'out_of_memory', 'out_of_cpu'));

-- One row for each claim. `cron_executions_once` is what makes "once" true. History is cut by tick, so that old
-- partitions can be dropped whole, and this key stays a key.
CREATE TABLE cron_executions (
    id             bigint NOT NULL DEFAULT nextval('cron_execution_ids'),
    job_id         bigint NOT NULL,
    deployment_id  bigint NOT NULL,
    -- Of its job: 1, 2, 3...
    number         bigint NOT NULL DEFAULT 0,
    tick           timestamptz NOT NULL,
    run_at         timestamptz NOT NULL,
    attempt        integer NOT NULL DEFAULT 1,
    trigger        text NOT NULL DEFAULT 'schedule',
    -- The claim's start_time: the token that an end must match.
    claimed_at     timestamptz NOT NULL,
    hard_deadline  timestamptz NOT NULL,
    controller_id  text COLLATE "C" NOT NULL,
    -- '': no runner has it. It is a message of a queue (docs/message-queues.md).
    runner_id      text COLLATE "C" NOT NULL,

    -- False: it runs beside others, and its end neither frees the job nor sets the next tick.
    holds_job      boolean NOT NULL DEFAULT true,
    -- It is one of its job's `running`. One that neither holds its job nor is counted runs beside whatever the job
    -- does.
    counted        boolean NOT NULL DEFAULT false,
    -- It is its schedule's own tick, or a retry of one: the next tick supersedes its retry, and it counts as a
    -- failure or a success in a row. Not so a manual run, a backfill, and their retries.
    of_schedule    boolean NOT NULL DEFAULT true,
    -- Its tick had counted as one without success before this attempt was made by hand: it counts once.
    counted_before boolean NOT NULL DEFAULT false,

    -- What its handler is told: ticks passed over since the execution before, that one's tick, the latest that
    -- completed.
    missed         bigint NOT NULL DEFAULT 0,
    previous_tick  timestamptz,
    previous_success timestamptz,
    -- In place of the job's own.
    payload        text,
    -- Of cron_limits, what it has a place of. So its end gives back what its claim took, whatever its job's labels are
    -- by then.
    places         bigint[],

    -- Somebody wants it to stop. The mark stays whatever becomes of it; its job's policy does not retry it.
    cancel_requested_at timestamptz,
    cancel_requested_by text,
    cancel_note    text,

    -- An end writes from here on. When the verb's code began is known once its runner has reported. One that no runner
    -- has, and that its claim has decided, has its start and its error from then on: whoever answers for it ends it so.
    started_at     timestamptz,
    ended_at       timestamptz,
    outcome        cron_outcome,
    -- When it was to be tried again, had no tick come before.
    retry_at       timestamptz,
    error_type     text,
    error_message  text,
    stack          text,
    output         text,
    -- JSON, what the verb reported of itself.
    metrics        text,
    cpu_us         bigint,
    memory_peak_bytes bigint,
    -- Whether the process whose memory that is ran others meanwhile.
    memory_shared  boolean,

    CONSTRAINT cron_executions_pkey PRIMARY KEY (id, tick),
    CONSTRAINT cron_executions_once UNIQUE (job_id, tick, attempt),
    -- Short, as that of cron_jobs.
    CONSTRAINT cron_executions_sound CHECK (
        attempt > 0 AND controller_id > '' AND NOT (holds_job AND counted)
        AND (outcome IS NULL) = (ended_at IS NULL)
        AND claimed_at >= run_at AND started_at >= claimed_at AND ended_at >= started_at)
) PARTITION BY RANGE (tick);
ALTER SEQUENCE cron_execution_ids OWNED BY cron_executions.id;
-- The few that run now: by whom they were claimed (adoption, hard timeout), and where they run (lost). The conditions
-- on ids always hold. They are there for the reason that those of cron_jobs are: a query has to name them.
CREATE INDEX cron_executions_of_controller ON cron_executions (controller_id, hard_deadline)
    WHERE outcome IS NULL AND controller_id > '';
CREATE INDEX cron_executions_of_runner ON cron_executions (runner_id) WHERE outcome IS NULL AND runner_id > '';
-- No claim has an entry here, and an end only where it was marked. A query that names no condition on controller_id can
-- use no other index of unfinished executions; see sql/queries/cron_jobs.sql.
CREATE INDEX cron_executions_cancelling ON cron_executions (controller_id)
    WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL;
-- What claims have decided, and nobody has ended yet.
CREATE INDEX cron_executions_decided ON cron_executions (controller_id)
    WHERE outcome IS NULL AND started_at IS NOT NULL;
-- The ones people look for. An execution that completes has no entry here.
CREATE INDEX cron_executions_troubled ON cron_executions (outcome, id) WHERE outcome <> 'completed';

-- OFFSET 0 in the next two: whatever leads to an execution, its job is one probe. Else a plan that is made while there
-- are no jobs may begin with all of them (docs/decisions/0002).

-- An execution that has not ended, as a node holds it, with its job after it: in the order of `execution_of` in
-- controller/store/rows.py.
CREATE VIEW cron_unfinished_executions AS
SELECT e.id AS execution_id, e.tick, e.run_at, e.claimed_at, e.attempt, e.trigger, d.key AS execution_deployment,
       e.runner_id, e.missed, e.previous_tick, e.previous_success,
       coalesce(e.payload, j.payload) AS execution_payload, e.holds_job, e.of_schedule,
       j.*,
       e.controller_id, e.hard_deadline
FROM cron_executions e
JOIN deployments d ON d.id = e.deployment_id
CROSS JOIN LATERAL (SELECT * FROM cron_scheduled_jobs WHERE id = e.job_id OFFSET 0) j
WHERE e.outcome IS NULL;

-- An execution as people see it, in the order of ExecutionRow in controller/ports/reads.py. Without what may be long:
-- output, payload, stack and metrics.
CREATE VIEW cron_execution_details AS
SELECT e.id, j.key AS job, d.key AS deployment, e.tick, e.run_at, e.claimed_at, e.started_at, e.ended_at, e.outcome,
       e.attempt, e.trigger, e.controller_id, e.runner_id, e.error_type, e.error_message, e.missed, e.previous_tick,
       e.previous_success, e.holds_job, e.retry_at, e.cancel_requested_at, e.cancel_requested_by, e.cancel_note,
       e.number, e.cpu_us, e.memory_peak_bytes, e.memory_shared, e.job_id
FROM cron_executions e
CROSS JOIN LATERAL (SELECT key FROM cron_jobs WHERE id = e.job_id OFFSET 0) j
JOIN deployments d ON d.id = e.deployment_id;

-- Executions that fit a filter, whose empty texts and lists mean any. PostgreSQL puts it into the statement that asks,
-- and so takes the index that the other conditions there name. `of_jobs`: whether anything is asked of their jobs.
CREATE FUNCTION cron_fitting_executions(
    since timestamptz, until timestamptz, outcomes text[], runner text, of_jobs boolean, namespaces text[],
    of_namespace text, of_module text, of_verb text, of_labels jsonb
) RETURNS SETOF cron_execution_details LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT * FROM cron_execution_details e
    WHERE e.tick >= coalesce(since, '-infinity') AND e.tick <= coalesce(until, 'infinity')
      AND (outcomes = '{}' OR coalesce(e.outcome, 'running') = ANY(outcomes)) AND (runner = '' OR e.runner_id = runner)
      AND (NOT of_jobs OR EXISTS (
          SELECT FROM cron_jobs j
          WHERE j.id = e.job_id AND (namespaces IS NULL OR j.namespace = ANY(namespaces))
            AND (of_namespace = '' OR j.namespace = of_namespace) AND (of_module = '' OR j.module = of_module)
            AND (of_verb = '' OR j.verb = of_verb) AND (of_labels = '{}' OR j.labels @> of_labels)
          OFFSET 0));
END;

-- Jobs that fit a filter with labels, or else a module: by their indexes, so many rows are read as there are of these.
-- Other conditions are as in FindJobs. PostgreSQL puts it into the statement that asks.
CREATE FUNCTION cron_fitting_jobs(
    of_labels jsonb, of_module text, namespaces text[], of_namespace text, of_verb text, outcomes text[],
    contains text[], keys text[], statuses text[]
) RETURNS TABLE (id bigint, key text) LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH chosen AS MATERIALIZED (
        SELECT j.id, j.key, j.namespace, j.module, j.verb, j.removed_at, j.last_outcome FROM cron_jobs j
        WHERE of_labels <> '{}' AND j.labels <> '{}' AND j.labels @> of_labels
        UNION ALL
        SELECT j.id, j.key, j.namespace, j.module, j.verb, j.removed_at, j.last_outcome
        FROM cron_limits l -- has a row for each module that ever was
        CROSS JOIN LATERAL (
            SELECT CASE l.namespace WHEN 'default' THEN '' ELSE l.namespace || '/' END || l.module AS prefix
        ) k
        CROSS JOIN LATERAL ( -- '/' is what comes after '.'
            SELECT * FROM cron_jobs o
            WHERE o.removed_at IS NULL AND o.key > '' AND o.key >= k.prefix || '.' AND o.key < k.prefix || '/' OFFSET 0
        ) j
        WHERE of_labels = '{}' AND l.label = '' AND l.module > '' AND l.module = of_module
    )
    SELECT j.id, j.key FROM chosen j
    WHERE j.removed_at IS NULL AND (namespaces IS NULL OR j.namespace = ANY(namespaces))
      AND (of_namespace = '' OR j.namespace = of_namespace) AND (of_module = '' OR j.module = of_module)
      AND (of_verb = '' OR j.verb = of_verb) AND (outcomes = '{}' OR j.last_outcome = ANY(outcomes))
      AND lower(j.key) LIKE ALL (contains) AND (keys = '{}' OR j.key = ANY(keys))
      AND (statuses = '{}'
           OR EXISTS (SELECT FROM cron_job_status s WHERE s.job_id = j.id AND s.status = ANY(statuses) OFFSET 0));
END;

-- What executions are ranked by, in microseconds. `sort`: "slowest", null until they have ended; or "latest".
CREATE FUNCTION cron_rank(
    sort text, run_at timestamptz, claimed_at timestamptz, started_at timestamptz, ended_at timestamptz
) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (extract(epoch FROM CASE sort WHEN 'slowest' THEN ended_at - started_at
                                     ELSE coalesce(started_at, claimed_at) - run_at END) * 1000000)::bigint;

-- One row for each partition but cron_executions_later.
CREATE TABLE cron_partitions (
    name           text PRIMARY KEY,
    from_at        timestamptz NOT NULL,
    until_at       timestamptz NOT NULL,
    CHECK (from_at < until_at)
);

-- Nobody but ATTACH waits for a lock that claims hold, and that only while it commits.
CREATE FUNCTION cron_make_partition(from_at timestamptz, until_at timestamptz) RETURNS void
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE
    name text := 'cron_executions_' || to_char(from_at, 'YYYYMMDD"t"HH24MISS');
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE cron_executions INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE '
                   'INCLUDING INDEXES) WITH (autovacuum_vacuum_scale_factor = 0.02)', name);
    IF EXISTS (SELECT FROM cron_executions_later l WHERE l.tick < until_at) THEN -- far ahead when they were claimed
        LOCK TABLE cron_executions_later IN ACCESS EXCLUSIVE MODE;
        EXECUTE format('WITH moved AS (DELETE FROM cron_executions_later WHERE tick < %L RETURNING *) '
                       'INSERT INTO %I SELECT * FROM moved', until_at, name);
    END IF;
    EXECUTE format('ALTER TABLE cron_executions ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                   name, from_at, until_at);
    INSERT INTO cron_partitions VALUES (name, from_at, until_at);
END $$;

-- There is always a place. cron_executions_kept holds everything up to the first day: what retention has kept, and what
-- is claimed of long ago. cron_executions_later holds what is beyond the last day. There are three days to begin with;
-- maintenance makes the next ones.
CREATE TABLE cron_executions_later PARTITION OF cron_executions DEFAULT WITH (autovacuum_vacuum_scale_factor = 0.02);
DO $$
DECLARE
    today timestamptz := date_trunc('day', now(), 'UTC');
BEGIN
    EXECUTE format('CREATE TABLE cron_executions_kept PARTITION OF cron_executions FOR VALUES FROM (MINVALUE) TO (%L) '
                   'WITH (autovacuum_vacuum_scale_factor = 0.02)', today);
    INSERT INTO cron_partitions VALUES ('cron_executions_kept', '-infinity', today);
    FOR ahead IN 0..2 LOOP
        PERFORM cron_make_partition(today + ahead * interval '1 day', today + (ahead + 1) * interval '1 day');
    END LOOP;
END $$;

-- What a statement that locks rows wants to know of single ticks. PostgreSQL 18 prunes partitions wrongly, or reads
-- memory that it has freed, in a statement that looks at a changed row again (docs/decisions/0001). In a function a
-- look-up has an executor of its own, to which that never happens. STABLE: it sees what the statement that asks sees.

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

-- The bucket of a histogram that counts so long a time. controller/core/figures.py says where buckets begin and end.
CREATE FUNCTION cron_bucket(microseconds double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN floor(ln(greatest(microseconds, 1::double precision)) * 5.770780163555854)::integer; -- 4 / ln 2

-- `histogram`, with each of `buckets` counted once.
CREATE FUNCTION cron_counted(histogram integer[], buckets integer[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    bucket integer;
BEGIN
    FOREACH bucket IN ARRAY buckets LOOP
        histogram[bucket] := coalesce(histogram[bucket], 0) + 1;
    END LOOP;
    RETURN histogram;
END $$;

-- `histogram`, and what another one has counted.
CREATE FUNCTION cron_merged(histogram integer[], other integer[]) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR bucket IN coalesce(array_lower(other, 1), 1)..coalesce(array_upper(other, 1), 0) LOOP
        IF other[bucket] > 0 THEN
            histogram[bucket] := coalesce(histogram[bucket], 0) + other[bucket];
        END IF;
    END LOOP;
    RETURN histogram;
END $$;

-- Figures of all time, of each job's executions that have ended. No end writes them: they are folded in the background,
-- by id (sql/queries/statistics.sql).
CREATE TABLE cron_figures (
    job_id         bigint PRIMARY KEY,
    -- Ends by outcome: completed, failed, timed_out, cancelled, lost, out_of_memory, out_of_cpu.
    outcomes       bigint[] NOT NULL,
    duration_us    bigint NOT NULL,
    lateness_us    bigint NOT NULL,
    -- How many lasted, or were late, so long: by bucket, each 2^(1/4) times as wide as the one before
    -- (controller/core/figures.py). An array reaches from the first bucket that is used to the last: most are short.
    durations      integer[] NOT NULL,
    latenesses     integer[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- How far the figures have been folded. Ids are drawn before they are committed, so a lower one may turn up later than
-- a higher one. Whoever has drawn one up to `known_id` has a transaction id below `known_by`. Once all such
-- transactions are over, there is nothing more to come up to `known_id`.
CREATE TABLE cron_folding (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    -- What ended up to here is folded, but for what cron_unfolded has.
    folded_id      bigint NOT NULL DEFAULT 0,
    known_id       bigint NOT NULL DEFAULT 0,
    known_by       xid8 NOT NULL DEFAULT '0',
    CHECK (folded_id <= known_id)
) WITH (fillfactor = 50);
INSERT INTO cron_folding DEFAULT VALUES;

-- Executions up to `folded_id` that had not ended yet.
CREATE TABLE cron_unfolded (
    execution_id   bigint PRIMARY KEY,
    job_id         bigint NOT NULL,
    tick           timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX cron_unfolded_job ON cron_unfolded (job_id);

-- What has ended and is not folded yet.
CREATE VIEW cron_unfolded_ends AS
SELECT job_id, outcome, (date_part('epoch', ended_at - started_at) * 1e6)::bigint AS duration_us,
       (date_part('epoch', started_at - run_at) * 1e6)::bigint AS lateness_us
FROM (
    SELECT job_id, outcome, started_at, ended_at, run_at
    FROM cron_executions WHERE id > (SELECT folded_id FROM cron_folding)
    UNION ALL
    SELECT e.job_id, e.outcome, e.started_at, e.ended_at, e.run_at
    FROM cron_unfolded u
    CROSS JOIN LATERAL (SELECT * FROM cron_executions WHERE id = u.execution_id AND tick = u.tick OFFSET 0) e
) found
WHERE outcome IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------------------
-- Runs beside the schedule, ticks that did not run, and what people did
-- ---------------------------------------------------------------------------------------------------------------------

CREATE SEQUENCE cron_activation_ids AS bigint;

-- Runs that wait beside the schedule. A backfill is one row that moves from tick to tick.
CREATE TABLE cron_activations (
    id             bigint NOT NULL DEFAULT nextval('cron_activation_ids') PRIMARY KEY,
    job_id         bigint NOT NULL,
    slot           integer NOT NULL CHECK (slot BETWEEN 0 AND 4095),
    trigger        text NOT NULL CHECK (trigger IN ('retry', 'manual', 'backfill', 'after')),
    tick           timestamptz NOT NULL,
    until_tick     timestamptz,
    attempt        integer NOT NULL CHECK (attempt > 0),
    run_at         timestamptz NOT NULL,
    -- In place of the job's own.
    payload        text CHECK (octet_length(payload) <= 65536),
    beside         boolean NOT NULL DEFAULT false,
    -- Of a backfill: also ticks that completed before.
    again          boolean NOT NULL DEFAULT false,
    -- Both as in cron_executions.
    of_schedule    boolean NOT NULL DEFAULT false,
    counted_before boolean NOT NULL DEFAULT false,
    requested_by   text NOT NULL DEFAULT '',
    CHECK ((trigger = 'backfill') = (until_tick IS NOT NULL)),
    CHECK (until_tick >= tick),
    CONSTRAINT cron_activations_of_schedule CHECK (trigger <> 'backfill' OR NOT of_schedule)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
ALTER SEQUENCE cron_activation_ids OWNED BY cron_activations.id;
CREATE INDEX cron_activations_due ON cron_activations (slot, run_at);
CREATE INDEX cron_activations_job ON cron_activations (job_id);
-- A tick is followed once.
CREATE UNIQUE INDEX cron_activations_after ON cron_activations (job_id, tick) WHERE trigger = 'after';

-- Ticks that did not run, as ranges: one row for however many in a row had the same reason.
CREATE TABLE cron_skips (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id         bigint NOT NULL,
    reason         text NOT NULL CHECK (
        reason IN ('overlap', 'paused', 'no_runner', 'outside_window', 'superseded', 'missed_policy',
                   'deployment_removed', 'cancelled', 'no_verb')),
    first_tick     timestamptz NOT NULL,
    last_tick      timestamptz NOT NULL,
    ticks          bigint NOT NULL CHECK (ticks > 0),
    -- Who decided; empty for a deployment.
    controller_id  text COLLATE "C" NOT NULL,
    decided_at     timestamptz NOT NULL DEFAULT now(),
    CHECK (last_tick >= first_tick)
);
CREATE INDEX cron_skips_job ON cron_skips (job_id, first_tick);

-- What operators did: to a job, a deployment, an execution or a template. It is written with what it changed.
CREATE TABLE cron_actions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL DEFAULT now(),
    job_id         bigint,
    deployment_id  bigint,
    execution_id   bigint,
    -- "namespace/name": it stays when the template is deleted.
    template       text,
    action         text NOT NULL CHECK (action > ''),
    actor          text NOT NULL,
    note           text NOT NULL DEFAULT '',
    -- Instants are ISO 8601 in UTC.
    details        jsonb NOT NULL DEFAULT '{}',
    -- Webhooks are told of jobs that were orphaned, or brought back: until the notifier has taken it.
    untold         boolean NOT NULL DEFAULT false,
    CONSTRAINT cron_actions_of_something CHECK (num_nonnulls(job_id, deployment_id, execution_id, template) > 0)
);
CREATE INDEX cron_actions_at ON cron_actions (at);
CREATE INDEX cron_actions_job ON cron_actions (job_id, id) WHERE job_id IS NOT NULL;
CREATE INDEX cron_actions_deployment ON cron_actions (deployment_id, id) WHERE deployment_id IS NOT NULL;
CREATE INDEX cron_actions_execution ON cron_actions (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX cron_actions_template ON cron_actions (template, id) WHERE template IS NOT NULL;
CREATE INDEX cron_actions_untold ON cron_actions (id) WHERE untold;

-- The audit log: every change that somebody made, written with it, and refusals. Rows stay when what they name is gone.
-- A background pass seals rows into one chain of hashes. Until then `seq` and `hash` are null.
CREATE TABLE cron_audit_log (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL DEFAULT now(),
    -- Null: a change. Else why it was refused, as gRPC names it: PERMISSION_DENIED.
    refused        text,
    -- Refusals that this row stands for: the first one is told, those like it are counted.
    times          bigint NOT NULL DEFAULT 1 CHECK (times > 0),
    -- KIND:NAME, as cronring/schema/identity.py writes it; database:ROLE for who had no controller between.
    principal      text NOT NULL CHECK (principal > ''),
    -- As gRPC names it, /cronring.v1.Jobs/PauseJob; or the command that did it in the database itself.
    method         text NOT NULL CHECK (method > ''),
    -- The address that the call came from.
    origin         text NOT NULL DEFAULT '',
    -- Of what was changed; empty: the cluster's.
    namespace      text COLLATE "C" NOT NULL DEFAULT '',
    -- KIND KEY: "job billing/close.month", "token ci", "limit billing/".
    subject        text NOT NULL,
    -- JSON, of what was changed alone. Null: there was nothing before, or there is nothing now.
    before         text,
    after          text,
    -- What the caller says of who asked for it and why; of a refusal, what it was refused for.
    remark         text NOT NULL DEFAULT '',
    controller_id  text NOT NULL DEFAULT '',
    -- Its position in the chain, from 1 on without a gap, and SHA-256 of the one before and of this row.
    seq            bigint UNIQUE CHECK (seq > 0),
    hash           bytea CHECK (octet_length(hash) = 32),
    CONSTRAINT cron_audit_log_sealed CHECK ((seq IS NULL) = (hash IS NULL))
);
CREATE INDEX cron_audit_log_unsealed ON cron_audit_log (id) WHERE seq IS NULL;
CREATE INDEX cron_audit_log_at ON cron_audit_log (at, id);

-- Where the chain begins, as retention has cut it, and where it ends. Who seals, or cuts, holds this row.
CREATE TABLE cron_audit_chain (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    -- The last row that retention removed: what is left begins behind it.
    cut_seq        bigint NOT NULL DEFAULT 0,
    cut_hash       bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(cut_hash) = 32),
    head_seq       bigint NOT NULL DEFAULT 0,
    head_hash      bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (octet_length(head_hash) = 32),
    CHECK (cut_seq <= head_seq)
);
INSERT INTO cron_audit_chain DEFAULT VALUES;

-- Nobody changes the log by accident. (Whoever owns the table can drop this. The chain shows what was done then.)
CREATE FUNCTION cron_audit_log_kept() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    placed cron_audit_log := NEW;
BEGIN
    placed.seq := OLD.seq;
    placed.hash := OLD.hash;
    IF OLD.seq IS NOT NULL OR placed IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'row % of the audit log is kept as it is: nothing but its position in the chain is ever set',
            OLD.id USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER cron_audit_log_unchanged BEFORE UPDATE ON cron_audit_log
FOR EACH ROW EXECUTE FUNCTION cron_audit_log_kept();

-- Rows go once the chain has been cut behind them, and not before.
CREATE FUNCTION cron_audit_log_cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM gone g JOIN cron_audit_chain c ON coalesce(g.seq > c.cut_seq, true)) THEN
        RAISE EXCEPTION 'rows of the audit log go by retention alone: controller --audit-log-days'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER cron_audit_log_not_deleted AFTER DELETE ON cron_audit_log
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION cron_audit_log_cut();

CREATE FUNCTION cron_audit_log_not_emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is not emptied: its rows go by retention alone, controller --audit-log-days'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;
CREATE TRIGGER cron_audit_log_not_truncated BEFORE TRUNCATE ON cron_audit_log
FOR EACH STATEMENT EXECUTE FUNCTION cron_audit_log_not_emptied();

-- ---------------------------------------------------------------------------------------------------------------------
-- Jobs of the interval scheduler's contract (docs/interval-jobs.md)
-- ---------------------------------------------------------------------------------------------------------------------

-- What such a job has beside its row in cron_jobs, until that is removed.
CREATE TABLE cron_interval_jobs (
    job_id         bigint PRIMARY KEY,
    -- By what callers know the job: also its name, behind the colon of its key.
    id             text COLLATE "C" NOT NULL UNIQUE CHECK (id > ''),
    -- As in cron_jobs: a list, or how many there are, is told without reading jobs.
    namespace      text COLLATE "C" NOT NULL,
    source_id      text COLLATE "C",
    -- What the caller has given, as canonical JSON.
    terms          text NOT NULL
);
CREATE INDEX cron_interval_jobs_listed ON cron_interval_jobs (namespace, job_id);

-- The state of such a job in the contract's words (controller/core/orders/interval_states.py says the same).
-- `waiting`: the trigger of what waits to run at once ("manual"), or again ("retry"). Its first failure pauses such a
-- job: that is `failed`, until somebody retries it. Then it is `pending`; but not if it is run beside its schedule.
CREATE FUNCTION cron_interval_status(
    cancelled_at timestamptz, state text, running smallint, orphaned_at timestamptz, paused_at timestamptz,
    paused_until timestamptz, paused_by text, failures integer, next_tick timestamptz, last_outcome text, waiting text
) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN cancelled_at IS NOT NULL THEN 'cancelled'
            WHEN state = 'executing' OR running > 0 THEN 'running'
            WHEN orphaned_at IS NOT NULL THEN 'failed'
            WHEN paused_at IS NOT NULL AND (paused_until IS NULL OR paused_until > now())
            THEN CASE WHEN paused_by = 'cronring' AND failures > 0 THEN 'failed' ELSE 'paused' END
            WHEN waiting = 'manual'
                 AND (next_tick IS NULL OR coalesce(last_outcome NOT IN ('completed', 'cancelled'), false))
            THEN 'pending'
            WHEN waiting > '' OR next_tick IS NOT NULL THEN 'scheduled'
            WHEN last_outcome IS NULL THEN 'pending'
            WHEN last_outcome = 'completed' THEN 'completed'
            ELSE 'failed' END;

-- Such a job with its state, and what waits to run beside its schedule.
CREATE VIEW cron_interval_job_details AS
SELECT i.id, i.job_id, j.key, i.namespace, i.source_id, i.terms, s.status, j.created_at,
       coalesce(j.changed_at, j.created_at) AS changed_at,
       CASE WHEN s.status IN ('pending', 'scheduled') THEN coalesce(w.run_at, j.next_execution) END AS next_run_at,
       CASE WHEN s.status = 'paused' THEN j.paused_at END AS paused_at, j.cancelled_at,
       j.orphaned_at IS NOT NULL AS orphaned, w.attempt AS waiting_attempt,
       coalesce(j.last_tick, j.created_at) AS latest_from
FROM cron_interval_jobs i
CROSS JOIN LATERAL (SELECT * FROM cron_jobs WHERE id = i.job_id OFFSET 0) j
LEFT JOIN LATERAL (
    SELECT trigger, run_at, attempt FROM cron_activations
    WHERE job_id = ANY (ARRAY[j.id]) AND trigger IN ('manual', 'retry')
    ORDER BY trigger, run_at LIMIT 1
) w ON true
CROSS JOIN LATERAL (
    SELECT cron_interval_status(j.cancelled_at, j.state, j.running, j.orphaned_at, j.paused_at, j.paused_until,
                                j.paused_by, j.failures, j.next_tick, j.last_outcome, w.trigger) AS status
) s;

-- ---------------------------------------------------------------------------------------------------------------------
-- Upkeep: history grows old, and goes
-- ---------------------------------------------------------------------------------------------------------------------

-- What maintenance has come to.
CREATE TABLE cron_maintenance (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    -- How much time a partition of cron_executions holds.
    width          interval NOT NULL DEFAULT '1 day',
    checked_at     timestamptz,
    -- Controllers whose lease ran out and that were forgotten; not those that left.
    leases_cleared bigint NOT NULL DEFAULT 0,
    -- Figures of jobs whose rows are gone: they still count in those of all time. The outcomes in the order of
    -- cron_jobs.
    gone_jobs      bigint NOT NULL DEFAULT 0,
    gone_executions bigint NOT NULL DEFAULT 0,
    gone_outcomes  bigint[] NOT NULL DEFAULT '{0,0,0,0,0,0,0}',
    gone_duration_us bigint NOT NULL DEFAULT 0,
    gone_lateness_us bigint NOT NULL DEFAULT 0
);
INSERT INTO cron_maintenance DEFAULT VALUES;

-- What became of a job's ticks up to `until_at`, of which retention has removed the rows. Those that are left of them
-- are for looking at, and not to be counted again. Row 0 stands for jobs that are gone altogether.
CREATE TABLE cron_closed_books (
    job_id         bigint PRIMARY KEY,
    until_at       timestamptz NOT NULL,
    due            bigint NOT NULL DEFAULT 0,
    -- Ticks that ran; of these, how many were caught up, and how many of the others began late.
    executed       bigint NOT NULL DEFAULT 0,
    caught_up      bigint NOT NULL DEFAULT 0,
    late           bigint NOT NULL DEFAULT 0,
    -- Ticks by reason, as {"overlap": 3}.
    skipped        jsonb NOT NULL DEFAULT '{}',
    -- Executions of all kinds, by outcome and by trigger.
    executions     bigint NOT NULL DEFAULT 0,
    outcomes       jsonb NOT NULL DEFAULT '{}',
    triggers       jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 70);

-- The next two are tables of a round of maintenance, empty in between. They are no temporary ones. What runs with its
-- owner's rights must not read what its caller has made, which may be a view that calls the caller's functions.

-- Jobs whose books this round closes, and what it adds to them.
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
CREATE UNLOGGED TABLE cron_histories (
    job_id         bigint PRIMARY KEY,
    history_ms     bigint NOT NULL,
    runs           bigint NOT NULL
);

-- Only the owner of the tables may make, swap and drop partitions, and others ask for it. So the next four functions
-- run with their owner's rights, and the role that controllers run as owns nothing.

-- Makes the next partition, if the last one ends before `ahead`: false if there is nothing to make. A long time in
-- which no controller was up gets one for all of it.
CREATE FUNCTION cron_add_partition(ahead timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET timezone = 'UTC' AS $$
DECLARE
    step interval := (SELECT m.width FROM cron_maintenance m);
    from_at timestamptz := (SELECT max(p.until_at) FROM cron_partitions p);
    until_at timestamptz := from_at + step;
BEGIN
    IF from_at >= ahead THEN
        RETURN false;
    END IF;
    WHILE until_at + step < now() LOOP
        until_at := until_at + step;
    END LOOP;
    PERFORM cron_make_partition(from_at, until_at);
    RETURN true;
END $$;

-- Copies what stays of all partitions up to `boundary`: what is not closed or not folded yet. Of each job that is
-- not long gone, the newest `runs` executions stay, or how many its policy says (cron_histories). It asks for (SELECT
-- boundary): of a bare parameter, partitions are pruned before execution.
CREATE FUNCTION cron_stage_kept(boundary timestamptz, runs bigint) RETURNS void
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
    LEFT JOIN cron_histories w ON w.job_id = e.job_id
    WHERE e.tick < (SELECT boundary)
      AND (c.job_id IS NULL OR e.tick > c.until_at
           -- What its job's figures don't count yet.
           OR e.id > (SELECT folded_id FROM cron_folding) OR e.id IN (SELECT execution_id FROM cron_unfolded)
           OR e.number > j.executions - coalesce(w.runs, cron_stage_kept.runs)
              AND coalesce(j.removed_at > c.until_at, true));
    ALTER TABLE cron_executions_staged ADD PRIMARY KEY (id, tick), ADD UNIQUE (job_id, tick, attempt);
    CREATE INDEX ON cron_executions_staged (controller_id, hard_deadline) WHERE outcome IS NULL AND controller_id > '';
    CREATE INDEX ON cron_executions_staged (runner_id) WHERE outcome IS NULL AND runner_id > '';
    CREATE INDEX ON cron_executions_staged (outcome, id) WHERE outcome <> 'completed';
    CREATE INDEX ON cron_executions_staged (controller_id) WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL;
    CREATE INDEX ON cron_executions_staged (controller_id) WHERE outcome IS NULL AND started_at IS NOT NULL;
    ANALYZE cron_executions_staged;
END $$;

-- Puts cron_executions_staged in place of all partitions up to `boundary`: false if they have changed since it was
-- filled. That is told by how many of their rows have an id above `recent_id`, and how many are unfinished. What it
-- replaces is renamed, and dropped later: nobody has to wait for that. Claims and ends wait for the lock, and no longer
-- than it takes to change the catalog: neither ATTACH nor DETACH reads a row, as CHECKs say what is where.
CREATE FUNCTION cron_swap_staged(boundary timestamptz, recent_id bigint, recent bigint, unfinished bigint)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET timezone = 'UTC' AS $$
DECLARE
    part text;
BEGIN
    LOCK TABLE ONLY cron_executions IN ACCESS EXCLUSIVE MODE;
    IF recent <> (SELECT count(*) FROM cron_executions WHERE tick < boundary AND id > recent_id)
       OR unfinished <> (SELECT count(*) FROM cron_executions
                         WHERE tick < boundary AND outcome IS NULL AND controller_id > '') THEN
        RETURN false;
    END IF;
    FOR part IN SELECT p.name FROM cron_partitions p WHERE p.until_at <= boundary LOOP
        EXECUTE format('ALTER TABLE cron_executions DETACH PARTITION %I', part);
        EXECUTE format('ALTER TABLE %I RENAME TO %I', part, 'cron_gone_' || txid_current() || '_' || part);
    END LOOP;
    DELETE FROM cron_partitions p WHERE p.until_at <= boundary;
    ALTER TABLE cron_executions_staged RENAME TO cron_executions_kept;
    EXECUTE format('ALTER TABLE cron_executions ATTACH PARTITION cron_executions_kept '
                   'FOR VALUES FROM (MINVALUE) TO (%L)', boundary);
    INSERT INTO cron_partitions VALUES ('cron_executions_kept', '-infinity', boundary);
    RETURN true;
END $$;

-- Drops tables that cron_swap_staged has taken out, and a staged one that was left behind.
CREATE FUNCTION cron_drop_gone() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    part text;
    dropped integer := 0;
BEGIN
    FOR part IN SELECT relname FROM pg_class WHERE relkind = 'r' AND NOT relispartition AND pg_table_is_visible(oid)
                AND (relname LIKE 'cron\_gone\_%' OR relname = 'cron_executions_staged') LOOP
        EXECUTE format('DROP TABLE %I', part);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Who may call, and which runners may join
-- ---------------------------------------------------------------------------------------------------------------------

-- Bearer tokens. What is given out is kept nowhere, only its SHA-256. It is 32 random bytes, which nobody finds by
-- trying: a slow hash would protect nothing more, and every call would pay for it.
CREATE TABLE cron_tokens (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text COLLATE "C" NOT NULL CHECK (name > ''),
    secret_hash    bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    -- Objects with "role" and "namespace", "*" for all of these.
    grants         jsonb NOT NULL CHECK (jsonb_typeof(grants) = 'array'),
    created_at     timestamptz NOT NULL DEFAULT now(),
    created_by     text NOT NULL,
    expires_at     timestamptz,
    revoked_at     timestamptz,
    revoked_by     text NOT NULL DEFAULT '',
    -- To a minute or so: it is written at most once in one.
    last_used_at   timestamptz
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX cron_tokens_name ON cron_tokens (name) WHERE revoked_at IS NULL;

-- What a runner may host whose certificate names the grant.
CREATE TABLE cron_runner_grants (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text COLLATE "C" NOT NULL CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    namespace      text COLLATE "C" NOT NULL CHECK (namespace > ''),
    -- Empty: any of the namespace.
    modules        text[] NOT NULL DEFAULT '{}',
    may_activate   boolean NOT NULL DEFAULT false,
    -- Of its join token, as in cron_tokens. Null: nobody enrolls by it, and only certificates of another PKI name it.
    secret_hash    bytea UNIQUE CHECK (octet_length(secret_hash) = 32),
    -- How many may still enroll; null: any number.
    uses_left      bigint CHECK (uses_left >= 0),
    created_at     timestamptz NOT NULL DEFAULT now(),
    created_by     text NOT NULL,
    -- From then on nobody enrolls. Who has enrolled goes on.
    expires_at     timestamptz,
    revoked_at     timestamptz,
    revoked_by     text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX cron_runner_grants_name ON cron_runner_grants (name) WHERE revoked_at IS NULL;
-- Certificates that are older than the last revocation of their name are worth nothing.
CREATE INDEX cron_runner_grants_freed ON cron_runner_grants (name, revoked_at) WHERE revoked_at IS NOT NULL;

-- Browsers of people who have logged in. The cookie is kept nowhere, only its SHA-256, as in cron_tokens.
CREATE TABLE cron_sessions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    secret_hash    bytea NOT NULL UNIQUE CHECK (octet_length(secret_hash) = 32),
    -- By which it was made: it may do what the token may, and ends with it. Null: an issuer said who it is.
    token_id       bigint REFERENCES cron_tokens (id) ON DELETE CASCADE,
    -- "token:me" or "user:corp/ada".
    principal      text COLLATE "C" NOT NULL CHECK (principal > ''),
    -- Of an issuer's, as in cron_tokens; what they were at the login. Null: those of the token.
    grants         jsonb CHECK (jsonb_typeof(grants) = 'array'),
    issuer         text NOT NULL DEFAULT '',
    -- The address that logged in.
    origin         text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    -- Both to a minute or so, as in cron_tokens: used again before `idle_at`, it lives on, until `expires_at`.
    last_used_at   timestamptz NOT NULL DEFAULT now(),
    idle_at        timestamptz NOT NULL,
    expires_at     timestamptz NOT NULL,
    revoked_at     timestamptz,
    revoked_by     text NOT NULL DEFAULT '',
    CHECK ((token_id IS NULL) = (grants IS NOT NULL)),
    CHECK ((token_id IS NULL) = (issuer > ''))
) WITH (fillfactor = 50);
CREATE INDEX cron_sessions_principal ON cron_sessions (principal, id);
CREATE INDEX cron_sessions_token ON cron_sessions (token_id) WHERE token_id IS NOT NULL;

-- With what counts of their tokens. `ended` '': it lives.
CREATE VIEW cron_known_sessions AS
SELECT s.id, s.principal, coalesce(t.grants, s.grants) AS grants, s.issuer, s.origin, s.created_at, s.last_used_at,
       least(s.idle_at, s.expires_at, t.expires_at) AS expires_at, s.revoked_at, s.revoked_by, s.secret_hash,
       CASE WHEN s.revoked_at IS NOT NULL THEN 'revoked'
            WHEN t.revoked_at IS NOT NULL THEN 'token_revoked'
            WHEN least(s.idle_at, s.expires_at, t.expires_at) <= now() THEN 'expired'
            ELSE '' END AS ended
FROM cron_sessions s
LEFT JOIN LATERAL (
    SELECT grants, expires_at, revoked_at FROM cron_tokens WHERE id = s.token_id
    OFFSET 0  -- so that the token is looked up by its id, however few there were when the plan was made
) t ON true;

-- Requests of HTTP that came with an Idempotency-Key: what was answered, to answer it again. docs/decisions/0080
CREATE TABLE cron_request_keys (
    principal      text COLLATE "C" NOT NULL,
    -- As the API names it, "/cronring.v1.Jobs/TriggerJob".
    method         text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    -- Of the request: with the same key it has to be the same.
    request_hash   bytea NOT NULL CHECK (octet_length(request_hash) = 32),
    begun_at       timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    -- Null: it is being done, or nobody knows what became of it.
    answer         bytea,
    PRIMARY KEY (principal, method, key)
);
CREATE INDEX cron_request_keys_expires ON cron_request_keys (expires_at);

-- What verbs have changed through their runners (ctx.jobs): a row is written in the transaction of its change.
-- docs/decisions/0098
CREATE TABLE cron_verb_calls (
    execution_id   bigint NOT NULL,
    -- Calls are counted within their execution.
    number         integer NOT NULL CHECK (number > 0),
    made_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (execution_id, number)
);
CREATE INDEX cron_verb_calls_made ON cron_verb_calls (made_at);

-- ---------------------------------------------------------------------------------------------------------------------
-- Webhooks: who is told of what, and how far the books have been read for it
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TABLE cron_webhooks (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text COLLATE "C" NOT NULL UNIQUE CHECK (name > ''),
    -- Scheme, host and port of its URL. The rest of that may be a secret.
    origin         text NOT NULL,
    -- Its URL, and the key of its signatures, in an envelope: cronring1$KEY$WRAPPED$CONTENT, where KEY is the id of the
    -- key that opens it, or "plain" (cronring/trust/envelopes.py).
    encrypted      text NOT NULL CHECK (encrypted LIKE 'cronring1$%$%$%'),
    -- What it wants to be told of, and of which jobs. Empty: of all, but of "completed" only where that is named.
    events         text[] NOT NULL DEFAULT '{}',
    reasons        text[] NOT NULL DEFAULT '{}',
    -- How what failed has ended.
    outcomes       text[] NOT NULL DEFAULT '{}',
    namespace      text COLLATE "C" NOT NULL DEFAULT '',
    module         text COLLATE "C" NOT NULL DEFAULT '',
    job            text COLLATE "C" NOT NULL DEFAULT '',
    labels         jsonb NOT NULL DEFAULT '{}',
    created_at     timestamptz NOT NULL DEFAULT now(),
    created_by     text NOT NULL DEFAULT '',
    -- It is told of what has happened since.
    enabled_at     timestamptz NOT NULL DEFAULT now(),
    disabled_at    timestamptz,
    disabled_reason text NOT NULL DEFAULT ''
);

-- The outbox, and the log: one row for each event that a webhook wants. An event has one id, derived from what it says,
-- so that whoever reads the books twice writes it once.
CREATE TABLE cron_deliveries (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id     bigint NOT NULL REFERENCES cron_webhooks (id) ON DELETE CASCADE,
    event_id       text COLLATE "C" NOT NULL,
    event          text NOT NULL,
    job            text COLLATE "C" NOT NULL DEFAULT '',
    body           text NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    state          text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'failed')),
    -- Tried, or being tried: whoever tries moves next_try_at ahead first, and so holds it until then.
    attempts       integer NOT NULL DEFAULT 0,
    next_try_at    timestamptz NOT NULL DEFAULT now(),
    -- Since when it is tried: at first since it was written, and anew when somebody wants it delivered again.
    tried_since    timestamptz NOT NULL DEFAULT now(),
    last_try_at    timestamptz,
    last_status    integer,
    last_error     text NOT NULL DEFAULT '',
    ended_at       timestamptz,
    controller_id  text NOT NULL DEFAULT '',
    UNIQUE (webhook_id, event_id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX cron_deliveries_waiting ON cron_deliveries (webhook_id, next_try_at) WHERE state = 'waiting';
CREATE INDEX cron_deliveries_log ON cron_deliveries (webhook_id, id);
CREATE INDEX cron_deliveries_old ON cron_deliveries (created_at);

-- One controller at a time reads the books. Its lease only saves the others the work. What keeps them apart is the
-- row's lock: it is held while one reads, and until the outbox and `position` are committed together.
CREATE TABLE cron_notifier (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    -- Told to receivers, which may hear of several clusters.
    cluster        text NOT NULL DEFAULT gen_random_uuid()::text,
    holder         text NOT NULL DEFAULT '',
    lease_until    timestamptz NOT NULL DEFAULT '-infinity',
    -- How far the books have been read (controller/store/notices.py); "": nobody wants to be told of anything.
    position       text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
INSERT INTO cron_notifier DEFAULT VALUES;

-- Of each job whose latest ended tick had no success, the execution that failed: the next success is a recovery.
CREATE TABLE cron_failing (
    job_id         bigint PRIMARY KEY,
    execution_id   bigint NOT NULL,
    tick           timestamptz NOT NULL
);
-- Failed attempts whose tick may be tried again, until it is known whether it was.
CREATE TABLE cron_retrying (
    job_id         bigint NOT NULL,
    tick           timestamptz NOT NULL,
    attempt        integer NOT NULL,
    PRIMARY KEY (job_id, tick, attempt)
);
-- Of each job, the latest tick that was told to be late before it had begun.
CREATE TABLE cron_late (
    job_id         bigint PRIMARY KEY,
    tick           timestamptz NOT NULL
);

-- Pauses after failures, until the notifier has taken them. They are in the books for no longer than somebody takes to
-- resume the job, which may be before the notifier looks: so the row that is paused leaves a note.
CREATE TABLE cron_pauses (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id         bigint NOT NULL,
    paused_at      timestamptz NOT NULL,
    failures       integer NOT NULL,
    note           text NOT NULL
);
CREATE FUNCTION cron_note_pause() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM cron_notifier WHERE position <> '') THEN
        INSERT INTO cron_pauses (job_id, paused_at, failures, note)
        VALUES (new.id, new.paused_at, new.failures, coalesce(new.paused_note, ''));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER cron_jobs_note_pause AFTER UPDATE OF paused_at ON cron_jobs
FOR EACH ROW
WHEN (new.paused_by = 'cronring' AND new.paused_at IS DISTINCT FROM old.paused_at AND new.paused_at IS NOT NULL)
EXECUTE FUNCTION cron_note_pause();

-- ---------------------------------------------------------------------------------------------------------------------
-- Fences for authors' own transactions. Their roles may see no table of ours, so these run with their owner's rights.
-- ---------------------------------------------------------------------------------------------------------------------

-- Whether an execution (its id is the fence) still is the one that runs its job. It is not, as soon as anybody has
-- ended it: its runner, or a controller that took it for lost or overdue.
CREATE FUNCTION cron_fence(job_key text, fence bigint) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT EXISTS (
        SELECT FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
        WHERE e.id = fence AND e.ended_at IS NULL AND j.key = job_key
    )
$$;

-- Empty, but for rows of transactions under way.
CREATE UNLOGGED TABLE cron_fence_checks (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_key        text NOT NULL,
    fence          bigint NOT NULL
);

-- The same question, and asked once more while the transaction commits, which it then doesn't if the answer has become
-- no. Only then is the execution's row locked: whoever ends it waits for that commit, and for nothing before it. (Held
-- from here on, the lock would let a transaction that idles stop the ends of everybody's executions.)
CREATE FUNCTION cron_fence_commit(job_key text, fence bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
BEGIN
    IF NOT cron_fence(job_key, fence) THEN
        RETURN false;
    END IF;
    INSERT INTO cron_fence_checks (job_key, fence) VALUES (job_key, fence);
    RETURN true;
END $$;

CREATE FUNCTION cron_fence_check() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
BEGIN
    DELETE FROM cron_fence_checks WHERE id = new.id;
    PERFORM FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
    WHERE e.id = new.fence AND e.ended_at IS NULL AND j.key = new.job_key
    FOR SHARE OF e;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'execution % no longer holds %: it has been ended, so nothing is committed',
            new.fence, new.job_key USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER cron_fence_checks_at_commit AFTER INSERT ON cron_fence_checks
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cron_fence_check();

-- ---------------------------------------------------------------------------------------------------------------------
-- Consumers of queues: docs/message-queues.md. docs/decisions/0090 says why writers leave wakes, and lock no lane.
-- ---------------------------------------------------------------------------------------------------------------------

-- What somebody has set of a queue; without a row the defaults are in force.
CREATE TABLE cron_queues (
    namespace      text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    -- A message whose deliveries failed, or were lost, so often is delivered no more.
    max_deliveries integer NOT NULL DEFAULT 5 CHECK (max_deliveries BETWEEN 1 AND 1000),
    -- A message that waits for its retry blocks its lane, or lets the others pass.
    on_retry       text NOT NULL DEFAULT 'block' CHECK (on_retry IN ('block', 'pass')),
    -- How long dead letters stay.
    dead_kept_days integer NOT NULL DEFAULT 30 CHECK (dead_kept_days BETWEEN 1 AND 3650),
    changed_at     timestamptz NOT NULL DEFAULT now(),
    changed_by     text NOT NULL DEFAULT '',
    note           text NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, queue)
);

-- One row for each workspace of a queue that had messages lately. Who leases it is its one consumer.
CREATE TABLE cron_queue_lanes (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    workspace      text COLLATE "C" NOT NULL,
    -- From when on a consumer may take it. Among those that may be taken, the first one waits longest. Null: nothing
    -- waits in it but what its wakes tell of.
    ready_at       timestamptz,
    -- Nobody takes it before ready_at, whatever comes in: it is leased, or blocked by a retry.
    held           boolean NOT NULL DEFAULT false,
    -- The number of the take that has it, or had it until ready_at. It is the fence of what its consumer does.
    lease          bigint,
    consumer       text NOT NULL DEFAULT '',
    -- The ids that the take gave out, without those that have ended since; in order.
    given          bigint[] NOT NULL DEFAULT '{}',
    changed_at     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (namespace, queue, workspace)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX cron_queue_lanes_ready ON cron_queue_lanes (namespace, queue, ready_at) WHERE ready_at IS NOT NULL;
CREATE INDEX cron_queue_lanes_lease ON cron_queue_lanes (lease) WHERE lease IS NOT NULL;
CREATE SEQUENCE cron_queue_leases;

-- Messages have come into a lane: the row appears with them, in their transaction. It goes once the lane is known to be
-- looked at after that.
CREATE TABLE cron_queue_wakes (
    id             bigint GENERATED ALWAYS AS IDENTITY,
    namespace      text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    workspace      text COLLATE "C" NOT NULL,
    run_at         timestamptz NOT NULL,
    PRIMARY KEY (namespace, queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Somebody waits for messages of the queue, and listens: until then those who insert some notify.
CREATE TABLE cron_queue_listeners (
    namespace      text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    until_at       timestamptz NOT NULL,
    PRIMARY KEY (namespace, queue)
);

-- Messages that are delivered no more. An id is that of the message, and comes back with it.
CREATE TABLE cron_dead_letters (
    id             bigint PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    queue          text COLLATE "C" NOT NULL,
    workspace      text COLLATE "C" NOT NULL,
    job_id         bigint,
    execution_id   bigint,
    tick           timestamptz,
    attempt        integer NOT NULL,
    payload        text NOT NULL,
    enqueued_at    timestamptz NOT NULL,
    died_at        timestamptz NOT NULL,
    failures       integer NOT NULL,
    -- failed or lost: how the last delivery ended.
    outcome        text NOT NULL,
    error_type     text NOT NULL,
    error_message  text NOT NULL
);
CREATE INDEX cron_dead_letters_queue ON cron_dead_letters (namespace, queue, id);
CREATE INDEX cron_dead_letters_workspace ON cron_dead_letters (namespace, workspace, queue, id);

CREATE FUNCTION cron_queue_woken() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cron_queue_wakes (namespace, queue, workspace, run_at)
    SELECT namespace, queue, workspace, min(run_at) FROM added GROUP BY namespace, queue, workspace;
    PERFORM pg_notify(current_schema() || '.queues', l.namespace || '/' || l.queue)
    FROM (SELECT DISTINCT namespace, queue FROM added) a
    JOIN cron_queue_listeners l ON l.namespace = a.namespace AND l.queue = a.queue
    WHERE l.until_at > clock_timestamp();
    RETURN NULL;
END $$;
CREATE TRIGGER cron_queue_wakes_lanes AFTER INSERT ON cron_queue
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cron_queue_woken();

-- Makes lanes ready that the oldest `most` wakes tell of. A wake goes only under a lock of its lane that keeps others
-- from idling it: so no lane is forgotten. What is locked is left for later, with one wake for each lane: nobody waits.
CREATE FUNCTION cron_queue_absorb(namespace text, queue text, most integer) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    asked CONSTANT text[] := ARRAY[cron_queue_absorb.namespace, cron_queue_absorb.queue];
    this_instant CONSTANT timestamptz := clock_timestamp();
BEGIN
    WITH seen AS MATERIALIZED (
        SELECT w.id, w.workspace, w.run_at FROM cron_queue_wakes w
        WHERE w.namespace = asked[1] AND w.queue = asked[2]
        ORDER BY w.id LIMIT most FOR UPDATE SKIP LOCKED
    ), told AS MATERIALIZED (
        SELECT s.workspace, greatest(min(s.run_at), this_instant) AS ready_at,
               (array_agg(s.id ORDER BY s.run_at))[1] AS stays
        FROM seen s GROUP BY s.workspace
    ), looked_at AS MATERIALIZED (
        -- Consumers may take these meanwhile: their lock goes with this one.
        SELECT l.workspace FROM told t JOIN cron_queue_lanes l
        ON l.namespace = asked[1] AND l.queue = asked[2] AND l.workspace = t.workspace
        WHERE l.held OR l.ready_at <= t.ready_at
        FOR KEY SHARE OF l SKIP LOCKED
    ), idle AS MATERIALIZED (
        SELECT l.id, l.workspace, t.ready_at FROM told t JOIN cron_queue_lanes l
        ON l.namespace = asked[1] AND l.queue = asked[2] AND l.workspace = t.workspace
        WHERE NOT l.held AND (l.ready_at IS NULL OR l.ready_at > t.ready_at)
        FOR NO KEY UPDATE OF l SKIP LOCKED
    ), readied AS (
        UPDATE cron_queue_lanes l SET ready_at = i.ready_at FROM idle i WHERE l.id = i.id
    ), made AS (
        -- Who inserts a row waits for another who has just inserted it. The advisory lock lets one of them try.
        INSERT INTO cron_queue_lanes (namespace, queue, workspace, ready_at)
        SELECT asked[1], asked[2], n.workspace, n.ready_at
        FROM (
            SELECT t.workspace, t.ready_at FROM told t
            WHERE NOT EXISTS (SELECT FROM cron_queue_lanes l
                              WHERE l.namespace = asked[1] AND l.queue = asked[2] AND l.workspace = t.workspace)
            LIMIT 100
        ) n
        WHERE pg_try_advisory_xact_lock(
            hashtextextended(concat_ws('/', current_schema(), 'lane', asked[1], asked[2], n.workspace), 0)
        )
        ON CONFLICT DO NOTHING
        RETURNING workspace
    ), known AS (
        SELECT workspace FROM looked_at UNION ALL SELECT workspace FROM idle UNION ALL SELECT workspace FROM made
    )
    DELETE FROM cron_queue_wakes w USING seen s JOIN told t ON t.workspace = s.workspace
    WHERE w.namespace = asked[1] AND w.queue = asked[2] AND w.id = s.id
      AND (s.id <> t.stays OR s.workspace IN (SELECT k.workspace FROM known k));
END $$;

-- A lane that nobody has now: when it may be taken next. Its holder calls this, having ended what it was given.
-- Idling needs a lock that keeps wakes from being absorbed, and then a snapshot that sees all that were before. A
-- transaction that keeps one snapshot has none such: it leaves the lane to be looked at again.
CREATE FUNCTION cron_queue_free(lane cron_queue_lanes) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    next_at timestamptz;
    this_instant CONSTANT timestamptz := clock_timestamp();
    idles boolean := false;
BEGIN
    FOR looked IN 1..2 LOOP
        SELECT m.run_at INTO next_at FROM cron_queue m
        WHERE m.namespace = lane.namespace AND m.queue = lane.queue AND m.workspace = lane.workspace
          AND m.ended_at IS NULL
        ORDER BY m.run_at, m.id LIMIT 1;
        EXIT WHEN next_at IS NOT NULL OR idles OR current_setting('transaction_isolation') <> 'read committed';
        PERFORM FROM cron_queue_lanes l WHERE l.id = lane.id FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        idles := true;
    END LOOP;
    UPDATE cron_queue_lanes l
    SET ready_at = CASE WHEN next_at IS NOT NULL THEN greatest(next_at, this_instant)
                        WHEN NOT idles THEN this_instant END,
        held = false, lease = NULL, consumer = '', given = '{}', changed_at = this_instant
    WHERE l.id = lane.id;
END $$;

-- A delivery of each has failed ('failed'), or its consumer was lost ('lost'). What has failed too often, or at its
-- `last` delivery, becomes a dead letter. An awaited one ends, and its execution by it. What of `ids` is no more is
-- left out.
CREATE FUNCTION cron_queue_strike(ids bigint[], how text, error_type text, error_message text, last boolean)
RETURNS TABLE (id bigint, state text, failures integer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH struck AS MATERIALIZED (
        SELECT m.*, last OR m.failures + 1 >= coalesce(
            (SELECT q.max_deliveries FROM cron_queues q WHERE q.namespace = m.namespace AND q.queue = m.queue), 5
        ) AS over
        FROM cron_queue m WHERE m.id = ANY(ids) AND m.ended_at IS NULL
        ORDER BY m.id FOR NO KEY UPDATE OF m
    ), died AS (
        DELETE FROM cron_queue m USING struck s WHERE m.id = s.id AND s.over AND NOT s.awaited
    ), letters AS (
        INSERT INTO cron_dead_letters
        SELECT s.id, s.namespace, s.queue, s.workspace, s.job_id, s.execution_id, s.tick, s.attempt, s.payload,
               s.enqueued_at, clock_timestamp(), s.failures + 1, how, cron_queue_strike.error_type,
               cron_queue_strike.error_message
        FROM struck s WHERE s.over AND NOT s.awaited
    ), counted AS (
        UPDATE cron_queue m
        SET failures = s.failures + 1, lost = how = 'lost', error_type = cron_queue_strike.error_type,
            error_message = cron_queue_strike.error_message,
            ended_at = CASE WHEN s.over THEN clock_timestamp() END, outcome = CASE WHEN s.over THEN how END
        FROM struck s WHERE m.id = s.id AND (s.awaited OR NOT s.over)
    )
    SELECT s.id, CASE WHEN NOT s.over THEN 'waits' WHEN s.awaited THEN 'ended' ELSE 'dead' END, s.failures + 1
    FROM struck s;
END $$;

-- A lease has run out: its first message counts as lost, and the others as not begun (docs/decisions/0091).
CREATE FUNCTION cron_queue_lose(lane cron_queue_lanes) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    SELECT m.id INTO first FROM cron_queue m WHERE m.id = ANY(lane.given) AND m.ended_at IS NULL
    ORDER BY m.run_at, m.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    PERFORM cron_queue_strike(
        ARRAY[first], 'lost', 'LeaseExpired', format('the lease of consumer %s ran out', lane.consumer), false
    );
END $$;

-- Those of `ids` that the lease still has, with their lanes locked until the transaction ends.
CREATE FUNCTION cron_queue_hold(lease bigint, ids bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    -- Whoever is told of no message would think that all of them are done.
    IF ids IS NULL OR EXISTS (SELECT FROM unnest(ids) u (id) WHERE u.id IS NULL) THEN
        RAISE EXCEPTION 'ids is null, or has a null in it: name the messages that the take gave'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM FROM cron_queue_lanes l WHERE l.lease = cron_queue_hold.lease AND l.given && ids
    ORDER BY l.id FOR NO KEY UPDATE;
    RETURN ARRAY(
        SELECT g.id FROM cron_queue_lanes l CROSS JOIN LATERAL unnest(l.given) g (id)
        WHERE l.lease = cron_queue_hold.lease AND g.id = ANY(ids)
    );
END $$;

-- The lease has nothing more to do with `ids`. A lane of which nothing else is given out is free.
CREATE FUNCTION cron_queue_let_go(lease bigint, ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    lane cron_queue_lanes;
    rest bigint[];
BEGIN
    FOR lane IN SELECT * FROM cron_queue_lanes l WHERE l.lease = cron_queue_let_go.lease AND l.given && ids LOOP
        rest := ARRAY(
            SELECT m.id FROM cron_queue m
            WHERE m.id = ANY(lane.given) AND m.id <> ALL(ids) AND m.ended_at IS NULL ORDER BY m.run_at, m.id
        );
        IF rest = '{}' THEN
            PERFORM cron_queue_free(lane);
        ELSE
            UPDATE cron_queue_lanes l SET given = rest WHERE l.id = lane.id;
        END IF;
    END LOOP;
END $$;

-- Messages that wait for their retries, by id with their seconds: their lanes are blocked so long, unless others pass.
CREATE FUNCTION cron_queue_wait(lease bigint, waits jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    this_instant CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE cron_queue m SET run_at = this_instant + w.value::float * interval '1 s'
    FROM jsonb_each_text(waits) w, cron_queues q
    WHERE m.id = w.key::bigint AND q.namespace = m.namespace AND q.queue = m.queue AND q.on_retry = 'pass';
    UPDATE cron_queue_lanes l
    SET ready_at = b.ready_at, held = true, lease = NULL, consumer = '', given = '{}', changed_at = this_instant
    FROM (
        SELECT h.id, this_instant + max(w.value::float) * interval '1 s' AS ready_at
        FROM cron_queue_lanes h CROSS JOIN LATERAL unnest(h.given) g (id) JOIN jsonb_each_text(waits) w
        ON w.key = g.id::text
        WHERE h.lease = cron_queue_wait.lease AND NOT EXISTS (
            SELECT FROM cron_queues q WHERE q.namespace = h.namespace AND q.queue = h.queue AND q.on_retry = 'pass'
        )
        GROUP BY h.id
    ) b
    WHERE l.id = b.id;
END $$;

-- What became of each of `ids`: as told by `decided`, else gone if the lease had it, else refused.
CREATE FUNCTION cron_queue_answer(ids bigint[], held bigint[], decided jsonb, strict boolean)
RETURNS TABLE (id bigint, state text) LANGUAGE plpgsql AS $$
DECLARE
    undone text;
BEGIN
    RETURN QUERY
    SELECT u.id, coalesce(decided ->> u.id::text, CASE WHEN u.id = ANY(held) THEN 'gone' ELSE 'refused' END)
    FROM unnest(ids) WITH ORDINALITY u (id, position) ORDER BY u.position;
    IF strict THEN
        SELECT string_agg(u.id::text, ', ') INTO undone FROM unnest(ids) u (id) WHERE decided ->> u.id::text IS NULL;
        IF undone IS NOT NULL THEN
            RAISE EXCEPTION 'the lease no longer holds message %, so nothing is committed', undone
                USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'Its lease ran out and another consumer has it, or it was cancelled: leave it.';
        END IF;
    END IF;
END $$;

-- Consumers' roles may see no table of ours, so these run with their owner's rights. What they are given is bounded
-- here: whoever may call them reaches no API before that.

-- Raises for names that schema/queues.py refuses: what the API could not name, nobody could list, replay or delete.
CREATE FUNCTION cron_queue_check_name(namespace text, queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF queue IS NULL OR queue !~ '^[A-Za-z0-9_]([A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?$' THEN
        RAISE EXCEPTION 'the queue''s name % is none: use letters, digits, "_" and "-" (not at its ends), at most 100',
            quote_nullable(left(queue, 200)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF namespace IS NULL OR namespace !~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$' THEN
        RAISE EXCEPTION 'the namespace % is none: use letters, digits, "_" and "-", at most 100',
            quote_nullable(left(namespace, 200)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;

-- The end of an output, in 64 KiB, under a line that says how much is missing: as runners keep it (schema/recorded.py).
CREATE FUNCTION cron_queue_kept(output text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    bytes bytea;
    first integer;
BEGIN
    IF output IS NULL OR octet_length(output) <= 65536 THEN
        RETURN output;
    END IF;
    bytes := convert_to(output, 'UTF8');
    first := length(bytes) - 65536 + 100;  -- room for that line
    WHILE get_byte(bytes, first) & 192 = 128 LOOP  -- inside of a character
        first := first + 1;
    END LOOP;
    RETURN format(E'[… %s bytes of earlier output cut …]\n', first)
        || convert_from(substring(bytes FROM first + 1), 'UTF8');
END $$;

-- Puts messages into a queue, in the caller's transaction; their ids, in order. They are delivered once that is
-- committed. `workspaces`: of each; null: ''. Messages of one workspace come in order of run_at, and then of their ids.
CREATE FUNCTION cron_queue_put_many(
    queue text, payloads json[], workspaces text[] DEFAULT NULL, namespace text DEFAULT 'default',
    not_before timestamptz DEFAULT NULL
) RETURNS bigint[] LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    asked CONSTANT text[] := ARRAY[cron_queue_put_many.namespace, cron_queue_put_many.queue];
    messages bigint[];
BEGIN
    PERFORM cron_queue_check_name(asked[1], asked[2]);
    IF payloads IS NULL THEN
        RAISE EXCEPTION 'payloads is null: give an array of JSON' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF workspaces IS NOT NULL AND cardinality(workspaces) <> cardinality(payloads) THEN
        RAISE EXCEPTION 'there are % payloads and % workspaces: give one for each', cardinality(payloads),
            cardinality(workspaces) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF EXISTS (SELECT FROM unnest(workspaces) w (workspace)
               WHERE w.workspace !~ '^([A-Za-z0-9_]([A-Za-z0-9_.-]{0,98}[A-Za-z0-9_])?)?$') THEN
        RAISE EXCEPTION 'a workspace has letters, digits, "_", "-" and "." (these two not at its ends), at most 100'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF not_before NOT BETWEEN '0001-01-01 00:00Z' AND '9999-12-31 23:59:59.999999Z' THEN
        RAISE EXCEPTION 'not_before is an instant of the years 1 to 9999' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF EXISTS (SELECT FROM unnest(payloads) p (payload) WHERE octet_length(p.payload::text) > 65536) THEN
        RAISE EXCEPTION 'a payload has at most 65536 bytes' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    WITH added AS (
        INSERT INTO cron_queue (namespace, queue, workspace, payload, run_at)
        SELECT asked[1], asked[2], coalesce(m.workspace, ''), coalesce(m.payload::text, 'null'),
               coalesce(not_before, now())
        FROM unnest(payloads, workspaces) WITH ORDINALITY m (payload, workspace, position) ORDER BY m.position
        RETURNING id
    )
    SELECT array_agg(a.id ORDER BY a.id) INTO messages FROM added a;
    RETURN coalesce(messages, '{}');
END $$;

-- Puts one message into a queue; its id. See cron_queue_put_many.
CREATE FUNCTION cron_queue_put(
    queue text, payload json, workspace text DEFAULT '', namespace text DEFAULT 'default',
    not_before timestamptz DEFAULT NULL
) RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    SELECT (cron_queue_put_many(queue, ARRAY[payload], ARRAY[workspace], namespace, not_before))[1]
$$;

-- Takes the lanes that wait longest, one after the other, until `most` messages are found, or 8 MiB of payloads. Each
-- is the consumer's alone for the time of `hold`. Beyond that somebody else may take it, and its first message counts
-- as lost. That one is given out alone from then on: so a message that kills its consumers takes no other along.
CREATE FUNCTION cron_queue_take(
    queue text, consumer text, hold interval DEFAULT '30 s', most integer DEFAULT 10, namespace text DEFAULT 'default'
) RETURNS TABLE (
    lease bigint, id bigint, workspace text, payload text, delivery integer, job_id bigint, execution_id bigint,
    tick timestamptz, run_at timestamptz, attempt integer, enqueued_at timestamptz, leased_until timestamptz
) LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    asked CONSTANT text[] := ARRAY[cron_queue_take.namespace, cron_queue_take.queue];
    this_instant timestamptz;
    waiting CURSOR FOR
        SELECT l.* FROM cron_queue_lanes l
        WHERE l.namespace = asked[1] AND l.queue = asked[2] AND l.ready_at <= this_instant
        ORDER BY l.ready_at FOR NO KEY UPDATE SKIP LOCKED;
    lane cron_queue_lanes;
    message record;
    taken bigint[];
    room integer := most;
    bytes integer := 0;
    full_at CONSTANT integer := 8388608;  -- of payloads: controllers hand on an answer of 32 MiB at most
    held_s CONSTANT float8 := extract(epoch FROM hold);  -- months and days may outweigh each other
BEGIN
    PERFORM cron_queue_check_name(asked[1], asked[2]);
    IF consumer IS NULL OR consumer = '' THEN
        RAISE EXCEPTION 'consumer is empty: give a name, which lists show' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF most IS NULL OR most NOT BETWEEN 1 AND 1000 OR held_s IS NULL OR held_s NOT BETWEEN 1 AND 86400 THEN
        RAISE EXCEPTION 'take 1 to 1000 messages, and hold them for 1 second to 1 day'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM cron_queue_absorb(asked[1], asked[2], 2 * most + 20);
    lease := nextval('cron_queue_leases');
    this_instant := clock_timestamp();  -- after lanes have become ready
    OPEN waiting;
    FOR looked IN 1..1000 LOOP
        FETCH waiting INTO lane;
        EXIT WHEN NOT FOUND;
        IF lane.lease IS NOT NULL THEN
            PERFORM cron_queue_lose(lane);
        END IF;
        taken := '{}';
        leased_until := clock_timestamp() + held_s * interval '1 s';
        FOR message IN
            SELECT m.* FROM cron_queue m
            WHERE m.namespace = asked[1] AND m.queue = asked[2] AND m.workspace = lane.workspace
              AND m.ended_at IS NULL AND m.run_at <= this_instant
            ORDER BY m.run_at, m.id LIMIT room
        LOOP
            EXIT WHEN message.lost AND id IS NOT NULL;
            taken := taken || message.id;
            id := message.id; workspace := message.workspace; payload := message.payload;
            delivery := message.failures + 1; job_id := message.job_id; execution_id := message.execution_id;
            tick := message.tick; run_at := message.run_at; attempt := message.attempt;
            enqueued_at := message.enqueued_at;
            bytes := bytes + octet_length(payload);
            RETURN NEXT;
            EXIT WHEN message.lost OR bytes > full_at;
        END LOOP;
        IF taken = '{}' THEN
            IF message.lost IS NULL OR lane.lease IS NOT NULL THEN
                PERFORM cron_queue_free(lane);
            END IF;
            EXIT WHEN message.lost;
            CONTINUE;
        END IF;
        UPDATE cron_queue_lanes l
        SET ready_at = leased_until, held = true, lease = cron_queue_take.lease,
            consumer = left(cron_queue_take.consumer, 200), given = taken, changed_at = this_instant
        WHERE l.id = lane.id;
        room := room - cardinality(taken);
        EXIT WHEN room = 0 OR message.lost OR bytes > full_at;
    END LOOP;
    CLOSE waiting;
END $$;

-- Holds all lanes of the lease for the time of `hold` from now on. Says of each message that it has given out whether
-- it is still held, or gone: its execution was cancelled, or timed out. No row: the lease holds nothing any more.
CREATE FUNCTION cron_queue_extend(lease bigint, hold interval DEFAULT '30 s') RETURNS TABLE (id bigint, state text)
LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    held_s CONSTANT float8 := extract(epoch FROM hold);
BEGIN
    IF held_s IS NULL OR held_s NOT BETWEEN 1 AND 86400 THEN
        RAISE EXCEPTION 'hold for 1 second to 1 day' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- A lane that is locked is about to end, or to be taken: nobody waits for that.
    UPDATE cron_queue_lanes l SET ready_at = clock_timestamp() + held_s * interval '1 s'
    FROM (
        SELECT h.id FROM cron_queue_lanes h WHERE h.lease = cron_queue_extend.lease FOR NO KEY UPDATE SKIP LOCKED
    ) held
    WHERE l.id = held.id;
    RETURN QUERY
    SELECT g.id, CASE WHEN m.id IS NULL THEN 'gone' ELSE 'held' END
    FROM cron_queue_lanes l CROSS JOIN LATERAL unnest(l.given) WITH ORDINALITY g (id, position)
    LEFT JOIN cron_queue m ON m.id = g.id AND m.ended_at IS NULL
    WHERE l.lease = cron_queue_extend.lease ORDER BY l.id, g.position;
END $$;

-- These messages are done: `done`; or gone, as cron_queue_extend says; or refused: the lease no longer has them. In the
-- transaction of the work, the two are committed together. `strict` fails that transaction unless all are done.
-- `output`: what their executions say, of those that wait for it; of a long one the last 64 KiB.
CREATE FUNCTION cron_queue_done(lease bigint, ids bigint[], output text DEFAULT '', strict boolean DEFAULT false)
RETURNS TABLE (id bigint, state text) LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    held CONSTANT bigint[] := cron_queue_hold(lease, ids);
    kept CONSTANT text := cron_queue_kept(output);
    decided jsonb;
BEGIN
    WITH ending AS MATERIALIZED (
        SELECT m.id, m.awaited FROM cron_queue m WHERE m.id = ANY(held) AND m.ended_at IS NULL
        ORDER BY m.id FOR UPDATE
    ), deleted AS (
        DELETE FROM cron_queue m USING ending e WHERE m.id = e.id AND NOT e.awaited
    ), ended AS (
        UPDATE cron_queue m SET ended_at = clock_timestamp(), outcome = 'completed', output = kept
        FROM ending e WHERE m.id = e.id AND e.awaited
    )
    SELECT jsonb_object_agg(e.id, 'done') INTO decided FROM ending e;
    PERFORM cron_queue_let_go(lease, held);
    RETURN QUERY SELECT * FROM cron_queue_answer(ids, held, decided, strict);
END $$;

-- A delivery of each has failed: it waits for the next one, `delay` from now (by default 1 s, then twice as long each
-- time, up to an hour). Where the queue blocks, its lane waits with it, and what else the lease had of that lane goes
-- back. After the last delivery it is dead, or ended: see cron_queue_strike. `last`: this was the last one. Of texts so
-- much is kept as of what runners say.
CREATE FUNCTION cron_queue_retry(
    lease bigint, ids bigint[], error text, delay interval DEFAULT NULL, error_type text DEFAULT '',
    last boolean DEFAULT false
) RETURNS TABLE (id bigint, state text) LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    held CONSTANT bigint[] := cron_queue_hold(lease, ids);
    decided jsonb;
    waits jsonb;
BEGIN
    IF extract(epoch FROM delay) NOT BETWEEN 0 AND 2592000 THEN
        RAISE EXCEPTION 'a delay lasts from 0 to 30 days' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT jsonb_object_agg(s.id, s.state),
           jsonb_object_agg(s.id, coalesce(
               extract(epoch FROM delay), least(3600, power(2, least(s.failures - 1, 12)))
           )) FILTER (WHERE s.state = 'waits')
    INTO decided, waits
    FROM cron_queue_strike(
        held, 'failed', right(coalesce(error_type, ''), 200), left(coalesce(error, ''), 10000), coalesce(last, false)
    ) s;
    PERFORM cron_queue_wait(lease, waits);
    PERFORM cron_queue_let_go(lease, held);
    RETURN QUERY SELECT * FROM cron_queue_answer(ids, held, decided, false);
END $$;

-- Gives these messages back as they are, null: all that the lease has. Others may take them at once.
CREATE FUNCTION cron_queue_release(lease bigint, ids bigint[] DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
    held CONSTANT bigint[] := cron_queue_hold(lease, coalesce(ids, ARRAY(
        SELECT g.id FROM cron_queue_lanes l CROSS JOIN LATERAL unnest(l.given) g (id)
        WHERE l.lease = cron_queue_release.lease
    )));
BEGIN
    PERFORM cron_queue_let_go(lease, held);
    RETURN cardinality(held);
END $$;

-- For the time of `hold` whoever inserts messages of the queue notifies the channel `cronring.queues`, with
-- `NAMESPACE/QUEUE`. It is a hint for who listens there: a lost one costs time. Call it in a transaction of its own.
CREATE FUNCTION cron_queue_listen(queue text, hold interval DEFAULT '1 min', namespace text DEFAULT 'default')
RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    held_s CONSTANT float8 := extract(epoch FROM hold);
BEGIN
    PERFORM cron_queue_check_name(cron_queue_listen.namespace, cron_queue_listen.queue);
    IF held_s IS NULL OR held_s NOT BETWEEN 1 AND 300 THEN
        RAISE EXCEPTION 'listen for 1 second to 5 minutes, and then again' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO cron_queue_listeners AS l (namespace, queue, until_at)
    VALUES (cron_queue_listen.namespace, cron_queue_listen.queue, clock_timestamp() + held_s * interval '1 s')
    ON CONFLICT (namespace, queue) DO UPDATE SET until_at = excluded.until_at
    WHERE l.until_at < excluded.until_at - interval '10 s';
END $$;

-- Queues by name that have, or had lately, anything: each is found by a look into an index, whatever it holds.
CREATE FUNCTION cron_queue_names() RETURNS TABLE (namespace text, queue text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    latest text[] := ARRAY['', ''];
BEGIN
    LOOP
        SELECT ARRAY[n.namespace, n.queue] INTO latest FROM (
            (SELECT m.namespace, m.queue FROM cron_queue m
             WHERE m.ended_at IS NULL AND (m.namespace, m.queue) > (latest[1], latest[2])
             ORDER BY m.namespace, m.queue LIMIT 1)
            UNION ALL
            (SELECT l.namespace, l.queue FROM cron_queue_lanes l
             WHERE (l.namespace, l.queue) > (latest[1], latest[2]) ORDER BY l.namespace, l.queue LIMIT 1)
            UNION ALL
            (SELECT d.namespace, d.queue FROM cron_dead_letters d
             WHERE (d.namespace, d.queue) > (latest[1], latest[2]) ORDER BY d.namespace, d.queue LIMIT 1)
            UNION ALL
            (SELECT q.namespace, q.queue FROM cron_queues q
             WHERE (q.namespace, q.queue) > (latest[1], latest[2]) ORDER BY q.namespace, q.queue LIMIT 1)
        ) n ORDER BY n.namespace COLLATE "C", n.queue COLLATE "C" LIMIT 1;
        EXIT WHEN NOT FOUND;
        namespace := latest[1];
        queue := latest[2];
        RETURN NEXT;
    END LOOP;
END $$;

-- Workspaces by namespace and name, from after that position on, that have messages or dead letters; at most `most`.
-- Each is found by a look into two indexes, whatever it has, and in however many queues. `spaces`: namespaces; null:
-- all.
CREATE FUNCTION cron_queue_workspaces(spaces text[], after_namespace text, after_workspace text, most bigint)
RETURNS TABLE (namespace text, workspace text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_column
DECLARE
    latest text[] := ARRAY[after_namespace, after_workspace];
    told bigint := 0;
BEGIN
    WHILE told < most LOOP
        SELECT ARRAY[n.namespace, n.workspace] INTO latest FROM (
            (SELECT m.namespace, m.workspace FROM cron_queue m
             WHERE m.ended_at IS NULL AND (m.namespace, m.workspace) > (latest[1], latest[2])
             ORDER BY m.namespace, m.workspace LIMIT 1)
            UNION ALL
            (SELECT d.namespace, d.workspace FROM cron_dead_letters d
             WHERE (d.namespace, d.workspace) > (latest[1], latest[2]) ORDER BY d.namespace, d.workspace LIMIT 1)
        ) n ORDER BY n.namespace COLLATE "C", n.workspace COLLATE "C" LIMIT 1;
        EXIT WHEN NOT FOUND;
        IF latest[1] <> ALL(spaces) THEN  -- it goes on in the next one that is asked for
            latest := ARRAY[(SELECT min(s.space COLLATE "C") FROM unnest(spaces) s (space)
                             WHERE s.space COLLATE "C" > latest[1]), ''];
            EXIT WHEN latest[1] IS NULL;
        ELSIF latest[2] > '' THEN
            namespace := latest[1];
            workspace := latest[2];
            told := told + 1;
            RETURN NEXT;
        END IF;
    END LOOP;
END $$;
