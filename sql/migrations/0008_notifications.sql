-- Webhooks: who is told of what, the outbox in which it waits, and how far the books have been read for it.

CREATE TABLE cron_webhooks (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name           text COLLATE "C" NOT NULL UNIQUE CHECK (name > ''),
    url            text NOT NULL,
    -- whsec_ and base64: the key of the signatures. It has to be here as it is, as one who signs needs it.
    secret         text NOT NULL,
    -- What it wants to be told of, and of which jobs. Empty: of all.
    events         text[] NOT NULL DEFAULT '{}',
    reasons        text[] NOT NULL DEFAULT '{}',
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

-- One controller at a time reads the books. Its lease only saves the others the work: the row's lock, held while it reads
-- and until the outbox and `position` are committed together, is what keeps them apart.
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

-- Jobs that want to be watched for late ticks, by when they are due. Hot statements name no such condition, and no claim
-- changes these columns: it stays HOT. Who doesn't use it has no entry.
CREATE INDEX cron_jobs_late ON cron_jobs (next_execution) WHERE next_execution IS NOT NULL AND policy LIKE '%"late_after"%';

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
FOR EACH ROW WHEN (new.paused_by = 'cronring' AND new.paused_at IS DISTINCT FROM old.paused_at AND new.paused_at IS NOT NULL)
EXECUTE FUNCTION cron_note_pause();
