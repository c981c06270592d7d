-- An experiment of bench.citus in a scratch database, no migration: what would have to change before the tables of jobs
-- and of what they run could be distributed by slot.
-- Citus distributes no table with an identity column, with a unique key that lacks the distribution column, or (unless
-- told that it is safe) with a trigger.
DROP TRIGGER cron_jobs_limit ON cron_jobs;
DROP TRIGGER cron_jobs_note_pause ON cron_jobs;
ALTER TABLE cron_jobs ALTER COLUMN id DROP IDENTITY;
CREATE SEQUENCE cron_job_ids;
ALTER TABLE cron_jobs ALTER COLUMN id SET DEFAULT nextval('cron_job_ids');
ALTER TABLE cron_jobs DROP CONSTRAINT cron_jobs_pkey, ADD PRIMARY KEY (id, slot);
DROP INDEX cron_jobs_key;
CREATE UNIQUE INDEX cron_jobs_key ON cron_jobs (key, slot) WHERE removed_at IS NULL AND key > '';
-- What has no slot gets one.
ALTER TABLE cron_executions ADD COLUMN slot integer NOT NULL DEFAULT 0;
ALTER TABLE cron_executions DROP CONSTRAINT cron_executions_pkey, DROP CONSTRAINT cron_executions_once;
ALTER TABLE cron_executions ADD PRIMARY KEY (id, tick, slot), ADD CONSTRAINT cron_executions_once UNIQUE (job_id, tick, attempt, slot);
ALTER TABLE cron_schedules ADD COLUMN slot integer NOT NULL DEFAULT 0;
ALTER TABLE cron_schedules DROP CONSTRAINT cron_schedules_pkey, ADD PRIMARY KEY (job_id, revision, slot);
ALTER TABLE cron_skips ADD COLUMN slot integer NOT NULL DEFAULT 0;
ALTER TABLE cron_skips ALTER COLUMN id DROP IDENTITY;
CREATE SEQUENCE cron_skip_ids;
ALTER TABLE cron_skips ALTER COLUMN id SET DEFAULT nextval('cron_skip_ids');
ALTER TABLE cron_skips DROP CONSTRAINT cron_skips_pkey, ADD PRIMARY KEY (id, slot);
ALTER TABLE cron_uncounted ADD COLUMN slot integer NOT NULL DEFAULT 0;
ALTER TABLE cron_activations DROP CONSTRAINT cron_activations_pkey, ADD PRIMARY KEY (id, slot);
DROP INDEX cron_activations_after;
CREATE UNIQUE INDEX cron_activations_after ON cron_activations (job_id, tick, slot) WHERE trigger = 'after';
-- On every node whole: small, and read beside jobs.
SELECT create_reference_table('deployments');
SELECT create_reference_table('controllers');
SELECT create_reference_table('runners');
SELECT create_reference_table('cron_limits');
SELECT create_reference_table('cron_followers');
SELECT create_distributed_table('cron_jobs', 'slot', shard_count => 8);
SELECT create_distributed_table('cron_executions', 'slot', colocate_with => 'cron_jobs');
SELECT create_distributed_table('cron_schedules', 'slot', colocate_with => 'cron_jobs');
SELECT create_distributed_table('cron_skips', 'slot', colocate_with => 'cron_jobs');
SELECT create_distributed_table('cron_uncounted', 'slot', colocate_with => 'cron_jobs');
SELECT create_distributed_table('cron_activations', 'slot', colocate_with => 'cron_jobs');
INSERT INTO deployments (key, namespace, module, digest, schema_text, min_replicas) VALUES ('m@1', 'default', 'm', '1', '', 1);
INSERT INTO controllers (id, grpc_address, http_address, pid, version, lease_expires_at)
VALUES ('c1', '', '', 1, '', now() + interval '1 hour');
INSERT INTO cron_jobs (key, namespace, module, verb, slot, deployment_id, schedule, anchor, timeout_ms, on_disconnect,
                       next_tick, next_execution)
SELECT 'm.v' || i, 'default', 'm', 'v' || i, i % 4, 1, 'every 1h', t.at, 300000, 'stop', t.at, t.at
FROM generate_series(1, 100) i, (SELECT date_trunc('second', now()) AS at) t;

-- name: lock jobs of one slot, under a valid lease
WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::timestamptz[]) AS w (job_id, tick))
SELECT j.id FROM wanted w CROSS JOIN LATERAL (
    SELECT id FROM cron_jobs WHERE id = w.job_id AND slot = 3 AND next_tick = w.tick
      AND EXISTS (SELECT FROM controllers WHERE id = 'c1' AND lease_expires_at > now())
    FOR NO KEY UPDATE SKIP LOCKED
) j

-- name: the same, by ids alone
WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::timestamptz[]) AS w (job_id, tick))
SELECT j.id FROM wanted w CROSS JOIN LATERAL (
    SELECT id FROM cron_jobs WHERE id = w.job_id AND next_tick = w.tick FOR NO KEY UPDATE SKIP LOCKED
) j

-- name: lock them, and draw ids of executions
WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::timestamptz[]) AS w (job_id, tick))
SELECT j.id, nextval('cron_execution_ids')
FROM cron_jobs j JOIN wanted w ON j.id = w.job_id AND j.next_tick = w.tick
WHERE j.slot = 3 FOR NO KEY UPDATE OF j SKIP LOCKED

-- name: lock and claim them
WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::timestamptz[]) AS w (job_id, tick)
), open AS MATERIALIZED (
    SELECT j.id FROM cron_jobs j JOIN wanted w ON j.id = w.job_id AND j.next_tick = w.tick
    WHERE j.slot = 3 FOR NO KEY UPDATE OF j SKIP LOCKED
), claimed AS (
    UPDATE cron_jobs j SET state = 'executing', start_time = now(), execution_id = j.id + 1000 FROM open o
    WHERE j.id = o.id AND j.slot = 3 RETURNING j.id, j.deployment_id, j.next_tick
)
SELECT * FROM claimed

-- name: lock and claim them, and insert their executions
WITH wanted AS MATERIALIZED (SELECT * FROM unnest($1::bigint[], $2::timestamptz[]) AS w (job_id, tick)
), open AS MATERIALIZED (
    SELECT j.id FROM cron_jobs j JOIN wanted w ON j.id = w.job_id AND j.next_tick = w.tick
    WHERE j.slot = 3 FOR NO KEY UPDATE OF j SKIP LOCKED
), claimed AS (
    UPDATE cron_jobs j SET state = 'executing', start_time = now(), execution_id = j.id + 1000 FROM open o
    WHERE j.id = o.id AND j.slot = 3 RETURNING j.id, j.deployment_id, j.next_tick
), inserted AS (
    INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                                 hard_deadline, slot)
    SELECT id + 1000, id, deployment_id, next_tick, next_tick, now(), 'c1', 'r1', now(), 3 FROM claimed
)
SELECT * FROM claimed

-- name: insert executions of one slot out of arrays
INSERT INTO cron_executions (id, job_id, deployment_id, tick, run_at, claimed_at, controller_id, runner_id,
                             hard_deadline, slot)
SELECT job_id + 1000, job_id, 1, tick, tick, now(), 'c1', 'r1', now(), 3
FROM unnest($1::bigint[], $2::timestamptz[]) AS w (job_id, tick)

-- name: end executions of one slot
UPDATE cron_executions e SET outcome = 'completed', started_at = now(), ended_at = now()
FROM unnest($1::bigint[], $2::timestamptz[]) AS r (job_id, tick)
WHERE e.id = r.job_id + 1000 AND e.tick = r.tick AND e.slot = 3
RETURNING e.id

-- name: end executions of one slot, and free their jobs
WITH ended AS (
    UPDATE cron_executions e SET outcome = 'completed', started_at = now(), ended_at = now()
    FROM unnest($1::bigint[], $2::timestamptz[]) AS r (job_id, tick)
    WHERE e.id = r.job_id + 1000 AND e.tick = r.tick AND e.slot = 3
    RETURNING e.job_id, r.tick
), freed AS (
    UPDATE cron_jobs j SET state = 'idle', start_time = NULL, execution_id = NULL, next_tick = e.tick, next_execution = e.tick
    FROM ended e WHERE j.id = e.job_id AND j.slot = 3 RETURNING j.id
)
SELECT * FROM freed

-- name: what is due of a third of the slots
SELECT id FROM cron_jobs
WHERE slot = ANY(ARRAY(SELECT generate_series(0, 4095, 3))) AND next_execution <= now() AND $1::bigint[] IS NOT NULL AND $2::timestamptz[] IS NOT NULL
