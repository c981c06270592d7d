-- History by tick, what an execution keeps, figures of each job, and what retention leaves of the books.

ALTER TABLE cron_jobs
    -- Executions claimed so far: the number of the latest one.
    ADD COLUMN executions bigint NOT NULL DEFAULT 0,
    -- Ends by outcome: completed, failed, timed_out, cancelled, lost.
    ADD COLUMN outcomes bigint[] NOT NULL DEFAULT '{0,0,0,0,0}',
    ADD COLUMN duration_us bigint NOT NULL DEFAULT 0,
    ADD COLUMN lateness_us bigint NOT NULL DEFAULT 0,
    -- How many lasted, or were late, so long: by bucket, each 2^(1/4) times as wide as the one before
    -- (controller/core/figures.py). An array reaches from the first bucket that is used to the last, so most are short.
    ADD COLUMN durations integer[] NOT NULL DEFAULT '{}',
    ADD COLUMN latenesses integer[] NOT NULL DEFAULT '{}';

ALTER TABLE cron_executions
    -- Of its job: 1, 2, 3...
    ADD COLUMN number bigint NOT NULL DEFAULT 0,
    ADD COLUMN stack text,
    ADD COLUMN cpu_us bigint,
    ADD COLUMN memory_peak_bytes bigint,
    -- Whether the process whose memory that is ran others meanwhile.
    ADD COLUMN memory_shared boolean,
    -- JSON, what the verb reported of itself.
    ADD COLUMN metrics text;
UPDATE cron_executions e SET number = n.number
FROM (SELECT id, row_number() OVER (PARTITION BY job_id ORDER BY id) AS number FROM cron_executions) n
WHERE e.id = n.id;
UPDATE cron_jobs j
SET executions = e.executions, outcomes = e.outcomes, duration_us = e.duration_us, lateness_us = e.lateness_us
FROM (
    SELECT job_id, count(*) AS executions,
           ARRAY[count(*) FILTER (WHERE outcome = 'completed'), count(*) FILTER (WHERE outcome = 'failed'),
                 count(*) FILTER (WHERE outcome = 'timed_out'), count(*) FILTER (WHERE outcome = 'cancelled'),
                 count(*) FILTER (WHERE outcome = 'lost')] AS outcomes,
           coalesce(sum((date_part('epoch', ended_at - started_at) * 1e6)::bigint), 0) AS duration_us,
           coalesce(sum((date_part('epoch', started_at - run_at) * 1e6)::bigint) FILTER (WHERE outcome IS NOT NULL), 0)
               AS lateness_us
    FROM cron_executions GROUP BY job_id
) e
WHERE j.id = e.job_id;

-- Where a bucket of a histogram begins and ends is said in controller/core/figures.py.
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

UPDATE cron_jobs j
SET durations = cron_counted('{}', e.durations), latenesses = cron_counted('{}', e.latenesses)
FROM (
    SELECT job_id, array_agg(cron_bucket(date_part('epoch', ended_at - started_at) * 1e6)) AS durations,
           array_agg(cron_bucket(date_part('epoch', started_at - run_at) * 1e6)) AS latenesses
    FROM cron_executions WHERE outcome IS NOT NULL AND started_at IS NOT NULL GROUP BY job_id
) e
WHERE j.id = e.job_id;

-- Ends that their job's row does not count yet: of those that ran beside, and of several in one statement. Maintenance
-- adds them up.
CREATE TABLE cron_uncounted (
    job_id         bigint NOT NULL,
    outcome        text NOT NULL,
    duration_us    bigint NOT NULL,
    lateness_us    bigint NOT NULL
);
CREATE INDEX cron_uncounted_job ON cron_uncounted (job_id);

-- What maintenance has come to. `width`: how much time a partition of cron_executions holds.
CREATE TABLE cron_maintenance (
    single         boolean PRIMARY KEY DEFAULT true CHECK (single),
    width          interval NOT NULL DEFAULT '1 day',
    checked_at     timestamptz,
    -- Controllers whose lease ran out and that were forgotten; not those that left.
    leases_cleared bigint NOT NULL DEFAULT 0
);
INSERT INTO cron_maintenance DEFAULT VALUES;

-- History is cut by tick, so that old partitions can be dropped whole and the key that makes "once" true stays a key:
-- cron_executions_kept holds everything up to the first partition, what retention has kept and what is claimed of long
-- ago; cron_executions_later what is beyond the last one. So there is always a place.
ALTER TABLE cron_executions DROP CONSTRAINT cron_executions_pkey, DROP CONSTRAINT cron_executions_once;
DROP INDEX cron_executions_of_controller, cron_executions_of_runner, cron_executions_troubled, cron_executions_cancelling;
ALTER TABLE cron_executions RENAME TO cron_executions_whole;
CREATE TABLE cron_executions (
    LIKE cron_executions_whole INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE,
    CONSTRAINT cron_executions_pkey PRIMARY KEY (id, tick),
    CONSTRAINT cron_executions_once UNIQUE (job_id, tick, attempt)
) PARTITION BY RANGE (tick);
ALTER SEQUENCE cron_execution_ids OWNED BY cron_executions.id;
CREATE INDEX cron_executions_of_controller ON cron_executions (controller_id, hard_deadline)
    WHERE outcome IS NULL AND controller_id > '';
CREATE INDEX cron_executions_of_runner ON cron_executions (runner_id) WHERE outcome IS NULL AND runner_id > '';
CREATE INDEX cron_executions_troubled ON cron_executions (outcome, id) WHERE outcome <> 'completed';
CREATE INDEX cron_executions_cancelling ON cron_executions (controller_id)
    WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL;
CREATE TABLE cron_executions_later PARTITION OF cron_executions DEFAULT WITH (autovacuum_vacuum_scale_factor = 0.02);

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

-- Makes the next partition, if the last one ends before `ahead`: false if there is nothing to make. A long time in which
-- no controller was up gets one for all of it.
CREATE FUNCTION cron_add_partition(ahead timestamptz) RETURNS boolean
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
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

DO $$
DECLARE
    today timestamptz := date_trunc('day', now(), 'UTC');
    first_day timestamptz;
BEGIN
    SELECT least(today, CASE WHEN count(*) > 0
                             THEN greatest(date_trunc('day', min(tick), 'UTC'), today - interval '30 days') END)
    INTO first_day FROM cron_executions_whole;
    EXECUTE format('CREATE TABLE cron_executions_kept PARTITION OF cron_executions FOR VALUES FROM (MINVALUE) TO (%L) '
                   'WITH (autovacuum_vacuum_scale_factor = 0.02)', first_day);
    INSERT INTO cron_partitions VALUES ('cron_executions_kept', '-infinity', first_day);
    WHILE first_day < today + interval '3 days' LOOP
        PERFORM cron_make_partition(first_day, first_day + interval '1 day');
        first_day := first_day + interval '1 day';
    END LOOP;
END $$;
INSERT INTO cron_executions SELECT * FROM cron_executions_whole;
DROP TABLE cron_executions_whole;

-- What became of a job's ticks up to `until_at`, of which retention has removed the rows: those that are left of them are
-- for looking at, and not to be counted again. Row 0 stands for jobs that are gone altogether.
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

-- Puts cron_executions_staged in place of all partitions up to `boundary`: false if they have changed since it was filled,
-- which is told by how many of their rows have an id above `recent_id`, and how many of these have ended. What it replaces
-- is renamed, and dropped later: nobody has to wait for that. Claims and ends wait for the lock, and no longer than it
-- takes to change the catalog: neither ATTACH nor DETACH reads a row, as CHECKs say what is where.
CREATE FUNCTION cron_swap_staged(boundary timestamptz, recent_id bigint, recent bigint, unfinished bigint) RETURNS boolean
LANGUAGE plpgsql SET timezone = 'UTC' AS $$
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

-- Tables that cron_swap_staged has taken out, and a staged one that was left behind.
CREATE FUNCTION cron_drop_gone() RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    part text;
    dropped integer := 0;
BEGIN
    FOR part IN SELECT relname FROM pg_class WHERE relkind = 'r' AND NOT relispartition
                AND pg_table_is_visible(oid) AND (relname LIKE 'cron\_gone\_%' OR relname = 'cron_executions_staged') LOOP
        EXECUTE format('DROP TABLE %I', part);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
