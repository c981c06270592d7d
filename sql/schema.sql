-- The tables after all migrations, as pg_dump says: written by `make schema`, held fresh by tests/migration. Why they
-- are so is said in sql/migrations. Not here: partitions of cron_executions, and the few rows that migrations insert.

CREATE SCHEMA cronring;

CREATE DOMAIN cronring.cron_outcome AS text
	CONSTRAINT cron_outcome_known CHECK ((VALUE = ANY (ARRAY['completed'::text, 'failed'::text, 'timed_out'::text, 'cancelled'::text, 'lost'::text, 'out_of_memory'::text, 'out_of_cpu'::text])));

CREATE FUNCTION cronring.cron_active(removed_at timestamp with time zone, cancelled_at timestamp with time zone, orphaned_at timestamp with time zone, paused_at timestamp with time zone, paused_until timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((removed_at IS NULL) AND (cancelled_at IS NULL) AND (orphaned_at IS NULL) AND ((paused_at IS NULL) OR COALESCE((paused_until <= now()), false)));

CREATE FUNCTION cronring.cron_add_partition(ahead timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET "TimeZone" TO 'UTC'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_after(policy text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (policy ~~ '%"after":%'::text) THEN ((policy)::json ->> 'after'::text) ELSE NULL::text END;

CREATE FUNCTION cronring.cron_attempts(of_job bigint, of_tick timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    RETURN (SELECT count(*) FROM cron_executions WHERE job_id = of_job AND tick = of_tick);
END $$;

CREATE FUNCTION cronring.cron_audit_log_cut() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT FROM gone g JOIN cron_audit_chain c ON coalesce(g.seq > c.cut_seq, true)) THEN
        RAISE EXCEPTION 'rows of the audit log go by retention alone: controller --audit-log-days'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION cronring.cron_audit_log_kept() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_audit_log_not_emptied() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is not emptied: its rows go by retention alone, controller --audit-log-days'
        USING ERRCODE = 'object_not_in_prerequisite_state';
END $$;

CREATE FUNCTION cronring.cron_awaits(policy text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (policy ~~ '%"completes":"consumed"%'::text);

CREATE FUNCTION cronring.cron_bucket(microseconds double precision) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (floor((ln(GREATEST(microseconds, (1)::double precision)) * (5.770780163555854)::double precision)))::integer;

CREATE FUNCTION cronring.cron_counted(histogram integer[], buckets integer[]) RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
DECLARE
    bucket integer;
BEGIN
    FOREACH bucket IN ARRAY buckets LOOP
        histogram[bucket] := coalesce(histogram[bucket], 0) + 1;
    END LOOP;
    RETURN histogram;
END $$;

CREATE FUNCTION cronring.cron_drop_gone() RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_fence(job_key text, fence bigint) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
    SELECT EXISTS (
        SELECT FROM cron_executions e JOIN cron_jobs j ON j.id = e.job_id
        WHERE e.id = fence AND e.ended_at IS NULL AND j.key = job_key
    )
$$;

CREATE FUNCTION cronring.cron_fence_check() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_fence_commit(job_key text, fence bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    IF NOT cron_fence(job_key, fence) THEN
        RETURN false;
    END IF;
    INSERT INTO cron_fence_checks (job_key, fence) VALUES (job_key, fence);
    RETURN true;
END $$;

CREATE TABLE cronring.cron_executions (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    deployment_id bigint NOT NULL,
    number bigint DEFAULT 0 NOT NULL,
    tick timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    attempt integer DEFAULT 1 NOT NULL,
    trigger text DEFAULT 'schedule'::text NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    hard_deadline timestamp with time zone NOT NULL,
    controller_id text NOT NULL COLLATE pg_catalog."C",
    runner_id text NOT NULL COLLATE pg_catalog."C",
    holds_job boolean DEFAULT true NOT NULL,
    counted boolean DEFAULT false NOT NULL,
    of_schedule boolean DEFAULT true NOT NULL,
    counted_before boolean DEFAULT false NOT NULL,
    missed bigint DEFAULT 0 NOT NULL,
    previous_tick timestamp with time zone,
    previous_success timestamp with time zone,
    payload text,
    places bigint[],
    cancel_requested_at timestamp with time zone,
    cancel_requested_by text,
    cancel_note text,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    outcome cronring.cron_outcome,
    retry_at timestamp with time zone,
    error_type text,
    error_message text,
    stack text,
    output text,
    metrics text,
    cpu_us bigint,
    memory_peak_bytes bigint,
    memory_shared boolean,
    CONSTRAINT cron_executions_sound CHECK (((attempt > 0) AND (controller_id > ''::text) AND (NOT (holds_job AND counted)) AND ((outcome IS NULL) = (ended_at IS NULL)) AND (claimed_at >= run_at) AND (started_at >= claimed_at) AND (ended_at >= started_at)))
)
PARTITION BY RANGE (tick);

CREATE TABLE cronring.cron_jobs (
    id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    namespace text NOT NULL COLLATE pg_catalog."C",
    module text NOT NULL COLLATE pg_catalog."C",
    verb text NOT NULL COLLATE pg_catalog."C",
    slot integer NOT NULL,
    deployment_id bigint NOT NULL,
    source text DEFAULT 'annotation'::text NOT NULL,
    template text DEFAULT ''::text NOT NULL,
    set_name text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    payload text DEFAULT ''::text NOT NULL,
    timeout_ms bigint NOT NULL,
    on_disconnect text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    removed_at timestamp with time zone,
    changed_at timestamp with time zone,
    changed_by text,
    schedule text NOT NULL,
    anchor timestamp with time zone NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    policy text DEFAULT ''::text NOT NULL,
    concurrency smallint DEFAULT 0 NOT NULL,
    pause_after integer DEFAULT 0 NOT NULL,
    limits bigint[],
    paused_at timestamp with time zone,
    paused_tick timestamp with time zone,
    paused_until timestamp with time zone,
    paused_by text,
    paused_note text,
    ahead_from timestamp with time zone,
    ahead_until timestamp with time zone,
    cancelled_at timestamp with time zone,
    cancelled_by text,
    cancelled_note text,
    orphaned_at timestamp with time zone,
    orphaned_tick timestamp with time zone,
    state text DEFAULT 'idle'::text NOT NULL,
    next_tick timestamp with time zone,
    next_execution timestamp with time zone,
    start_time timestamp with time zone,
    execution_id bigint,
    running smallint DEFAULT 0 NOT NULL,
    last_tick timestamp with time zone,
    missed bigint DEFAULT 0 NOT NULL,
    last_run_at timestamp with time zone,
    last_started_at timestamp with time zone,
    last_ended_at timestamp with time zone,
    last_outcome text,
    last_success timestamp with time zone,
    failures integer DEFAULT 0 NOT NULL,
    executions bigint DEFAULT 0 NOT NULL,
    CONSTRAINT cron_jobs_sound CHECK ((((next_tick IS NULL) = (next_execution IS NULL)) AND ((next_tick IS NULL) OR (COALESCE(removed_at, cancelled_at, orphaned_at,
CASE
    WHEN (paused_until IS NULL) THEN paused_at
    ELSE NULL::timestamp with time zone
END) IS NULL)) AND ((start_time IS NULL) = (execution_id IS NULL)) AND (state =
CASE
    WHEN (execution_id IS NULL) THEN 'idle'::text
    ELSE 'executing'::text
END) AND
CASE
    WHEN (execution_id IS NULL) THEN (running >= 0)
    ELSE (running = 0)
END))
)
WITH (fillfactor='45', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE cronring.deployments (
    id bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    namespace text NOT NULL COLLATE pg_catalog."C",
    module text NOT NULL COLLATE pg_catalog."C",
    digest text NOT NULL,
    schema_text text NOT NULL,
    async_verbs text[] DEFAULT '{}'::text[] NOT NULL,
    fingerprint text DEFAULT ''::text NOT NULL,
    min_replicas integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    activated_at timestamp with time zone,
    deactivated_at timestamp with time zone,
    CONSTRAINT deployments_min_replicas_check CHECK ((min_replicas >= 0))
);

CREATE VIEW cronring.cron_execution_details AS
 SELECT e.id,
    j.key AS job,
    d.key AS deployment,
    e.tick,
    e.run_at,
    e.claimed_at,
    e.started_at,
    e.ended_at,
    e.outcome,
    e.attempt,
    e.trigger,
    e.controller_id,
    e.runner_id,
    e.error_type,
    e.error_message,
    e.missed,
    e.previous_tick,
    e.previous_success,
    e.holds_job,
    e.retry_at,
    e.cancel_requested_at,
    e.cancel_requested_by,
    e.cancel_note,
    e.number,
    e.cpu_us,
    e.memory_peak_bytes,
    e.memory_shared,
    e.job_id
   FROM ((cronring.cron_executions e
     CROSS JOIN LATERAL ( SELECT cron_jobs.key
           FROM cronring.cron_jobs
          WHERE (cron_jobs.id = e.job_id)
         OFFSET 0) j)
     JOIN cronring.deployments d ON ((d.id = e.deployment_id)));

CREATE FUNCTION cronring.cron_fitting_executions(since timestamp with time zone, until timestamp with time zone, outcomes text[], runner text, of_jobs boolean, namespaces text[], of_namespace text, of_module text, of_verb text, of_labels jsonb) RETURNS SETOF cronring.cron_execution_details
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT e.id,
     e.job,
     e.deployment,
     e.tick,
     e.run_at,
     e.claimed_at,
     e.started_at,
     e.ended_at,
     e.outcome,
     e.attempt,
     e.trigger,
     e.controller_id,
     e.runner_id,
     e.error_type,
     e.error_message,
     e.missed,
     e.previous_tick,
     e.previous_success,
     e.holds_job,
     e.retry_at,
     e.cancel_requested_at,
     e.cancel_requested_by,
     e.cancel_note,
     e.number,
     e.cpu_us,
     e.memory_peak_bytes,
     e.memory_shared,
     e.job_id
    FROM cronring.cron_execution_details e
   WHERE ((e.tick >= COALESCE(cron_fitting_executions.since, '-infinity'::timestamp with time zone)) AND (e.tick <= COALESCE(cron_fitting_executions.until, 'infinity'::timestamp with time zone)) AND ((cron_fitting_executions.outcomes = '{}'::text[]) OR (COALESCE((e.outcome)::text, 'running'::text) = ANY (cron_fitting_executions.outcomes))) AND ((cron_fitting_executions.runner = ''::text) OR (e.runner_id = cron_fitting_executions.runner)) AND ((NOT cron_fitting_executions.of_jobs) OR (EXISTS ( SELECT
            FROM cronring.cron_jobs j
           WHERE ((j.id = e.job_id) AND ((cron_fitting_executions.namespaces IS NULL) OR (j.namespace = ANY (cron_fitting_executions.namespaces))) AND ((cron_fitting_executions.of_namespace = ''::text) OR (j.namespace = cron_fitting_executions.of_namespace)) AND ((cron_fitting_executions.of_module = ''::text) OR (j.module = cron_fitting_executions.of_module)) AND ((cron_fitting_executions.of_verb = ''::text) OR (j.verb = cron_fitting_executions.of_verb)) AND ((cron_fitting_executions.of_labels = '{}'::jsonb) OR (j.labels @> cron_fitting_executions.of_labels)))
          OFFSET 0))));
END;

CREATE FUNCTION cronring.cron_paused(paused_at timestamp with time zone, paused_until timestamp with time zone) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((paused_at IS NOT NULL) AND ((paused_until IS NULL) OR (paused_until > now())));

CREATE TABLE cronring.cron_defaults (
    single boolean DEFAULT true NOT NULL,
    timeout_ms bigint,
    late_after_ms bigint,
    retries integer DEFAULT 0 NOT NULL,
    revision bigint DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone,
    changed_by text DEFAULT ''::text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_defaults_late_after_ms_check CHECK ((late_after_ms > 0)),
    CONSTRAINT cron_defaults_retries_check CHECK (((retries >= 0) AND (retries <= 100))),
    CONSTRAINT cron_defaults_single_check CHECK (single),
    CONSTRAINT cron_defaults_timeout_ms_check CHECK ((timeout_ms > 0))
);

CREATE VIEW cronring.cron_job_details AS
 SELECT j.id,
    j.key,
    j.namespace,
    j.module,
    j.verb,
        CASE
            WHEN ((j.cancelled_at IS NOT NULL) OR (j.removed_at IS NOT NULL)) THEN 'cancelled'::text
            WHEN (j.orphaned_at IS NOT NULL) THEN 'orphaned'::text
            WHEN cronring.cron_paused(j.paused_at, j.paused_until) THEN 'paused'::text
            WHEN ((j.state = 'executing'::text) OR (j.running > 0)) THEN 'running'::text
            WHEN (j.next_tick IS NOT NULL) THEN 'scheduled'::text
            WHEN ((j.last_outcome IS NULL) OR (j.schedule = 'manual'::text)) THEN 'pending'::text
            WHEN (j.last_outcome = 'completed'::text) THEN 'completed'::text
            ELSE 'failed'::text
        END AS status,
    j.slot,
    d.key AS deployment,
    j.created_at,
    j.removed_at,
    j.next_tick,
    j.next_execution,
    j.last_outcome,
    j.last_run_at,
    j.last_started_at,
    j.last_ended_at,
    j.execution_id,
    j.source,
        CASE
            WHEN cronring.cron_paused(j.paused_at, j.paused_until) THEN j.paused_at
            ELSE NULL::timestamp with time zone
        END AS paused_at,
    j.paused_by,
    j.paused_note,
    j.failures,
    j.last_success,
    j.running,
    j.last_tick,
    j.paused_tick,
    j.paused_until,
    j.cancelled_at,
    j.cancelled_by,
    j.cancelled_note,
    j.template,
    j.set_name,
    j.orphaned_at,
    ( SELECT cron_defaults.timeout_ms
           FROM cronring.cron_defaults) AS default_timeout_ms,
    ( SELECT cron_defaults.late_after_ms
           FROM cronring.cron_defaults) AS default_late_after_ms,
    ( SELECT cron_defaults.retries
           FROM cronring.cron_defaults) AS default_retries,
    j.schedule,
    j.anchor,
    j.timeout_ms,
    j.on_disconnect,
    j.policy,
    j.labels
   FROM (cronring.cron_jobs j
     LEFT JOIN cronring.deployments d ON ((d.id = j.deployment_id)));

CREATE VIEW cronring.cron_job_status AS
 SELECT id AS job_id,
    key,
    namespace,
    module,
    verb,
    status,
    schedule,
    next_tick,
        CASE
            WHEN (policy !~~ '%"window":%'::text) THEN next_execution
            ELSE NULL::timestamp with time zone
        END AS next_execution,
    last_outcome,
    last_started_at,
    last_ended_at,
    last_success,
    failures,
    labels,
    template,
    set_name,
    paused_by,
    paused_note,
    deployment
   FROM cronring.cron_job_details
  WHERE (removed_at IS NULL);

CREATE TABLE cronring.cron_limits (
    id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    module text NOT NULL COLLATE pg_catalog."C",
    label text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    rule bigint,
    value text COLLATE pg_catalog."C",
    max_concurrent integer,
    running integer DEFAULT 0 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_by text DEFAULT ''::text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_limits_check CHECK ((((rule IS NULL) = (value IS NULL)) AND ((rule IS NULL) OR (label > ''::text)))),
    CONSTRAINT cron_limits_max_concurrent_check CHECK ((max_concurrent > 0)),
    CONSTRAINT cron_limits_running_check CHECK ((running >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000');

CREATE FUNCTION cronring.cron_fitting_jobs(of_labels jsonb, of_module text, namespaces text[], of_namespace text, of_verb text, outcomes text[], contains text[], keys text[], statuses text[]) RETURNS TABLE(id bigint, key text)
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 WITH chosen AS MATERIALIZED (
          SELECT j_1.id,
             j_1.key,
             j_1.namespace,
             j_1.module,
             j_1.verb,
             j_1.removed_at,
             j_1.last_outcome
            FROM cronring.cron_jobs j_1
           WHERE ((cron_fitting_jobs.of_labels <> '{}'::jsonb) AND (j_1.labels <> '{}'::jsonb) AND (j_1.labels @> cron_fitting_jobs.of_labels))
         UNION ALL
          SELECT j_1.id,
             j_1.key,
             j_1.namespace,
             j_1.module,
             j_1.verb,
             j_1.removed_at,
             j_1.last_outcome
            FROM ((cronring.cron_limits l
              CROSS JOIN LATERAL ( SELECT (
                         CASE l.namespace
                             WHEN 'default'::text THEN ''::text
                             ELSE (l.namespace || '/'::text)
                         END || l.module) AS prefix) k)
              CROSS JOIN LATERAL ( SELECT o.id,
                     o.key,
                     o.namespace,
                     o.module,
                     o.verb,
                     o.slot,
                     o.deployment_id,
                     o.source,
                     o.template,
                     o.set_name,
                     o.labels,
                     o.payload,
                     o.timeout_ms,
                     o.on_disconnect,
                     o.created_at,
                     o.removed_at,
                     o.changed_at,
                     o.changed_by,
                     o.schedule,
                     o.anchor,
                     o.revision,
                     o.policy,
                     o.concurrency,
                     o.pause_after,
                     o.limits,
                     o.paused_at,
                     o.paused_tick,
                     o.paused_until,
                     o.paused_by,
                     o.paused_note,
                     o.ahead_from,
                     o.ahead_until,
                     o.cancelled_at,
                     o.cancelled_by,
                     o.cancelled_note,
                     o.orphaned_at,
                     o.orphaned_tick,
                     o.state,
                     o.next_tick,
                     o.next_execution,
                     o.start_time,
                     o.execution_id,
                     o.running,
                     o.last_tick,
                     o.missed,
                     o.last_run_at,
                     o.last_started_at,
                     o.last_ended_at,
                     o.last_outcome,
                     o.last_success,
                     o.failures,
                     o.executions
                    FROM cronring.cron_jobs o
                   WHERE ((o.removed_at IS NULL) AND (o.key > ''::text) AND (o.key >= (k.prefix || '.'::text)) AND (o.key < (k.prefix || '/'::text)))
                  OFFSET 0) j_1)
           WHERE ((cron_fitting_jobs.of_labels = '{}'::jsonb) AND (l.label = ''::text) AND (l.module > ''::text) AND (l.module = cron_fitting_jobs.of_module))
         )
  SELECT j.id,
     j.key
    FROM chosen j
   WHERE ((j.removed_at IS NULL) AND ((cron_fitting_jobs.namespaces IS NULL) OR (j.namespace = ANY (cron_fitting_jobs.namespaces))) AND ((cron_fitting_jobs.of_namespace = ''::text) OR (j.namespace = cron_fitting_jobs.of_namespace)) AND ((cron_fitting_jobs.of_module = ''::text) OR (j.module = cron_fitting_jobs.of_module)) AND ((cron_fitting_jobs.of_verb = ''::text) OR (j.verb = cron_fitting_jobs.of_verb)) AND ((cron_fitting_jobs.outcomes = '{}'::text[]) OR (j.last_outcome = ANY (cron_fitting_jobs.outcomes))) AND (lower(j.key) ~~ ALL (cron_fitting_jobs.contains)) AND ((cron_fitting_jobs.keys = '{}'::text[]) OR (j.key = ANY (cron_fitting_jobs.keys))) AND ((cron_fitting_jobs.statuses = '{}'::text[]) OR (EXISTS ( SELECT
            FROM cronring.cron_job_status s
           WHERE ((s.job_id = j.id) AND (s.status = ANY (cron_fitting_jobs.statuses)))
          OFFSET 0))));
END;

CREATE FUNCTION cronring.cron_full(state text, running smallint, concurrency smallint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((state = 'executing'::text) OR (running >= GREATEST((concurrency)::integer, 1)));

CREATE FUNCTION cronring.cron_interval_status(cancelled_at timestamp with time zone, state text, running smallint, orphaned_at timestamp with time zone, paused_at timestamp with time zone, paused_until timestamp with time zone, paused_by text, failures integer, next_tick timestamp with time zone, last_outcome text, waiting text) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN (cancelled_at IS NOT NULL) THEN 'cancelled'::text WHEN ((state = 'executing'::text) OR (running > 0)) THEN 'running'::text WHEN (orphaned_at IS NOT NULL) THEN 'failed'::text WHEN ((paused_at IS NOT NULL) AND ((paused_until IS NULL) OR (paused_until > now()))) THEN CASE WHEN ((paused_by = 'cronring'::text) AND (failures > 0)) THEN 'failed'::text ELSE 'paused'::text END WHEN ((waiting = 'manual'::text) AND ((next_tick IS NULL) OR COALESCE((last_outcome <> ALL (ARRAY['completed'::text, 'cancelled'::text])), false))) THEN 'pending'::text WHEN ((waiting > ''::text) OR (next_tick IS NOT NULL)) THEN 'scheduled'::text WHEN (last_outcome IS NULL) THEN 'pending'::text WHEN (last_outcome = 'completed'::text) THEN 'completed'::text ELSE 'failed'::text END;

CREATE FUNCTION cronring.cron_limit_job() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    NEW.limits := cron_limits_of(NEW.namespace, NEW.module, NEW.labels);
    RETURN NEW;
END $$;

CREATE FUNCTION cronring.cron_limit_labels() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
DECLARE
    under bigint[] := cron_limits_of(NEW.namespace, NEW.module, NEW.labels);
BEGIN
    IF under IS NULL AND OLD.limits IS NOT NULL THEN
        under := '{}';
    END IF;
    UPDATE cron_jobs SET limits = under WHERE id = NEW.id AND limits IS DISTINCT FROM under;
    RETURN NULL;
END $$;

CREATE FUNCTION cronring.cron_limits_of(of_namespace text, of_module text, of_labels jsonb) RETURNS bigint[]
    LANGUAGE sql STABLE
    RETURN (SELECT array_agg(cron_limits.id ORDER BY cron_limits.label, (cron_limits.module = ''::text), cron_limits.id) AS array_agg FROM cronring.cron_limits WHERE ((cron_limits.namespace = cron_limits_of.of_namespace) AND (cron_limits.module = ANY (ARRAY[cron_limits_of.of_module, ''::text])) AND (cron_limits.rule IS NULL) AND (cron_limits.max_concurrent IS NOT NULL) AND ((cron_limits.label = ''::text) OR jsonb_exists(cron_limits_of.of_labels, cron_limits.label))));

CREATE FUNCTION cronring.cron_make_partition(from_at timestamp with time zone, until_at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET "TimeZone" TO 'UTC'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_merged(histogram integer[], other integer[]) RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    FOR bucket IN coalesce(array_lower(other, 1), 1)..coalesce(array_upper(other, 1), 0) LOOP
        IF other[bucket] > 0 THEN
            histogram[bucket] := coalesce(histogram[bucket], 0) + other[bucket];
        END IF;
    END LOOP;
    RETURN histogram;
END $$;

CREATE FUNCTION cronring.cron_note_controllers_life() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO cron_lives (kind, member, from_at, until_at, departed, address, version)
    VALUES ('controller', old.id, old.held_since, old.lease_expires_at, old.draining, old.grpc_address, old.version);
    IF tg_op = 'DELETE' THEN
        RETURN old;
    END IF;
    new.held_since := now();
    RETURN new;
END $$;

CREATE FUNCTION cronring.cron_note_pause() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    IF EXISTS (SELECT FROM cron_notifier WHERE position <> '') THEN
        INSERT INTO cron_pauses (job_id, paused_at, failures, note)
        VALUES (new.id, new.paused_at, new.failures, coalesce(new.paused_note, ''));
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION cronring.cron_note_payload() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_note_runners_life() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_priority(policy text) RETURNS smallint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (policy ~~ '%"priority":%'::text) THEN ((((policy)::json ->> 'priority'::text))::smallint)::integer ELSE 0 END;

CREATE FUNCTION cronring.cron_queue_absorb(namespace text, queue text, most integer) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_answer(ids bigint[], held bigint[], decided jsonb, strict boolean) RETURNS TABLE(id bigint, state text)
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_check_name(namespace text, queue text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $_$
BEGIN
    IF queue IS NULL OR queue !~ '^[A-Za-z0-9_]([A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?$' THEN
        RAISE EXCEPTION 'the queue''s name % is none: use letters, digits, "_" and "-" (not at its ends), at most 100',
            quote_nullable(left(queue, 200)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF namespace IS NULL OR namespace !~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$' THEN
        RAISE EXCEPTION 'the namespace % is none: use letters, digits, "_" and "-", at most 100',
            quote_nullable(left(namespace, 200)) USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $_$;

CREATE FUNCTION cronring.cron_queue_done(lease bigint, ids bigint[], output text DEFAULT ''::text, strict boolean DEFAULT false) RETURNS TABLE(id bigint, state text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_extend(lease bigint, hold interval DEFAULT '00:00:30'::interval) RETURNS TABLE(id bigint, state text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE TABLE cronring.cron_queue_lanes (
    id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    workspace text NOT NULL COLLATE pg_catalog."C",
    ready_at timestamp with time zone,
    held boolean DEFAULT false NOT NULL,
    lease bigint,
    consumer text DEFAULT ''::text NOT NULL,
    given bigint[] DEFAULT '{}'::bigint[] NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');

CREATE FUNCTION cronring.cron_queue_free(lane cronring.cron_queue_lanes) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_hold(lease bigint, ids bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_kept(output text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    AS $$
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

CREATE FUNCTION cronring.cron_queue_let_go(lease bigint, ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_listen(queue text, hold interval DEFAULT '00:01:00'::interval, namespace text DEFAULT 'default'::text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_lose(lane cronring.cron_queue_lanes) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
DECLARE
    first bigint;
BEGIN
    SELECT m.id INTO first FROM cron_queue m WHERE m.id = ANY(lane.given) AND m.ended_at IS NULL
    ORDER BY m.run_at, m.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    PERFORM cron_queue_strike(
        ARRAY[first], 'lost', 'LeaseExpired', format('the lease of consumer %s ran out', lane.consumer), false
    );
END $$;

CREATE FUNCTION cronring.cron_queue_name(module text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN substr(module, 2);

CREATE FUNCTION cronring.cron_queue_names() RETURNS TABLE(namespace text, queue text)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_put(queue text, payload json, workspace text DEFAULT ''::text, namespace text DEFAULT 'default'::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
    SELECT (cron_queue_put_many(queue, ARRAY[payload], ARRAY[workspace], namespace, not_before))[1]
$$;

CREATE FUNCTION cronring.cron_queue_put_many(queue text, payloads json[], workspaces text[] DEFAULT NULL::text[], namespace text DEFAULT 'default'::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone) RETURNS bigint[]
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'cronring', 'pg_temp'
    AS $_$
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
END $_$;

CREATE FUNCTION cronring.cron_queue_release(lease bigint, ids bigint[] DEFAULT NULL::bigint[]) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_retry(lease bigint, ids bigint[], error text, delay interval DEFAULT NULL::interval, error_type text DEFAULT ''::text, last boolean DEFAULT false) RETURNS TABLE(id bigint, state text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_strike(ids bigint[], how text, error_type text, error_message text, last boolean) RETURNS TABLE(id bigint, state text, failures integer)
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_take(queue text, consumer text, hold interval DEFAULT '00:00:30'::interval, most integer DEFAULT 10, namespace text DEFAULT 'default'::text) RETURNS TABLE(lease bigint, id bigint, workspace text, payload text, delivery integer, job_id bigint, execution_id bigint, tick timestamp with time zone, run_at timestamp with time zone, attempt integer, enqueued_at timestamp with time zone, leased_until timestamp with time zone)
    LANGUAGE plpgsql SECURITY DEFINER
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    SET jit TO 'off'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_wait(lease bigint, waits jsonb) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_queue_woken() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO cron_queue_wakes (namespace, queue, workspace, run_at)
    SELECT namespace, queue, workspace, min(run_at) FROM added GROUP BY namespace, queue, workspace;
    PERFORM pg_notify(current_schema() || '.queues', l.namespace || '/' || l.queue)
    FROM (SELECT DISTINCT namespace, queue FROM added) a
    JOIN cron_queue_listeners l ON l.namespace = a.namespace AND l.queue = a.queue
    WHERE l.until_at > clock_timestamp();
    RETURN NULL;
END $$;

CREATE FUNCTION cronring.cron_queue_workspaces(spaces text[], after_namespace text, after_workspace text, most bigint) RETURNS TABLE(namespace text, workspace text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_rank(sort text, run_at timestamp with time zone, claimed_at timestamp with time zone, started_at timestamp with time zone, ended_at timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((EXTRACT(epoch FROM CASE sort WHEN 'slowest'::text THEN (ended_at - started_at) ELSE (COALESCE(started_at, claimed_at) - run_at) END) * (1000000)::numeric))::bigint;

CREATE FUNCTION cronring.cron_refuse() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    RAISE EXCEPTION 'new row for relation "%" violates check constraint "%"', TG_TABLE_NAME, TG_NAME
        USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_NAME;
END $$;

CREATE FUNCTION cronring.cron_stage_kept(boundary timestamp with time zone, runs bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET "TimeZone" TO 'UTC'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_swap_staged(boundary timestamp with time zone, recent_id bigint, recent bigint, unfinished bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET "TimeZone" TO 'UTC'
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
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

CREATE FUNCTION cronring.cron_tell_ended() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    PERFORM pg_notify(TG_TABLE_SCHEMA || '.consumed', '');
    RETURN NULL;
END $$;

CREATE FUNCTION cronring.cron_tenth_runs(of_job bigint, of_tick timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    RETURN coalesce((SELECT ended_at IS NULL FROM cron_executions WHERE job_id = of_job AND tick < of_tick
                     ORDER BY tick DESC, attempt DESC LIMIT 1 OFFSET 9), false);
END $$;

CREATE FUNCTION cronring.cron_tick(of_job bigint, of_tick timestamp with time zone, OUT attempts integer, OUT missed bigint, OUT previous_tick timestamp with time zone, OUT previous_success timestamp with time zone, OUT completed boolean, OUT running boolean) RETURNS record
    LANGUAGE plpgsql STABLE
    SET search_path TO 'cronring', 'pg_temp'
    AS $$
BEGIN
    SELECT coalesce(max(e.attempt), 0), coalesce(max(e.missed), 0), max(e.previous_tick), max(e.previous_success),
           coalesce(bool_or(e.outcome = 'completed'), false), coalesce(bool_or(e.ended_at IS NULL), false)
    INTO attempts, missed, previous_tick, previous_success, completed, running
    FROM cron_executions e WHERE e.job_id = of_job AND e.tick = of_tick;
END $$;

CREATE FUNCTION cronring.cron_timeout(own bigint, of_cluster bigint) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (own > 0) THEN own ELSE COALESCE(of_cluster, (- own)) END;

CREATE FUNCTION cronring.cron_workspace(verb text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (verb = '-'::text) THEN ''::text ELSE verb END;

CREATE TABLE cronring.controllers (
    id text NOT NULL COLLATE pg_catalog."C",
    grpc_address text NOT NULL,
    peer_address text DEFAULT ''::text NOT NULL,
    http_address text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    zone_data text DEFAULT ''::text NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    draining boolean DEFAULT false NOT NULL,
    drill_until timestamp with time zone,
    lease_expires_at timestamp with time zone NOT NULL,
    held_since timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000');

CREATE TABLE cronring.cron_actions (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    job_id bigint,
    deployment_id bigint,
    execution_id bigint,
    template text,
    action text NOT NULL,
    actor text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    details jsonb DEFAULT '{}'::jsonb NOT NULL,
    untold boolean DEFAULT false NOT NULL,
    CONSTRAINT cron_actions_action_check CHECK ((action > ''::text)),
    CONSTRAINT cron_actions_of_something CHECK ((num_nonnulls(job_id, deployment_id, execution_id, template) > 0))
);

ALTER TABLE cronring.cron_actions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_actions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_activations (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    slot integer NOT NULL,
    trigger text NOT NULL,
    tick timestamp with time zone NOT NULL,
    until_tick timestamp with time zone,
    attempt integer NOT NULL,
    run_at timestamp with time zone NOT NULL,
    payload text,
    beside boolean DEFAULT false NOT NULL,
    again boolean DEFAULT false NOT NULL,
    of_schedule boolean DEFAULT false NOT NULL,
    counted_before boolean DEFAULT false NOT NULL,
    requested_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_activations_attempt_check CHECK ((attempt > 0)),
    CONSTRAINT cron_activations_check CHECK (((trigger = 'backfill'::text) = (until_tick IS NOT NULL))),
    CONSTRAINT cron_activations_check1 CHECK ((until_tick >= tick)),
    CONSTRAINT cron_activations_of_schedule CHECK (((trigger <> 'backfill'::text) OR (NOT of_schedule))),
    CONSTRAINT cron_activations_payload_check CHECK ((octet_length(payload) <= 65536)),
    CONSTRAINT cron_activations_slot_check CHECK (((slot >= 0) AND (slot <= 4095))),
    CONSTRAINT cron_activations_trigger_check CHECK ((trigger = ANY (ARRAY['retry'::text, 'manual'::text, 'backfill'::text, 'after'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.05');

CREATE SEQUENCE cronring.cron_activation_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE cronring.cron_activation_ids OWNED BY cronring.cron_activations.id;

CREATE TABLE cronring.cron_audit_chain (
    single boolean DEFAULT true NOT NULL,
    cut_seq bigint DEFAULT 0 NOT NULL,
    cut_hash bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
    head_seq bigint DEFAULT 0 NOT NULL,
    head_hash bytea DEFAULT decode(repeat('00'::text, 32), 'hex'::text) NOT NULL,
    CONSTRAINT cron_audit_chain_check CHECK ((cut_seq <= head_seq)),
    CONSTRAINT cron_audit_chain_cut_hash_check CHECK ((octet_length(cut_hash) = 32)),
    CONSTRAINT cron_audit_chain_head_hash_check CHECK ((octet_length(head_hash) = 32)),
    CONSTRAINT cron_audit_chain_single_check CHECK (single)
);

CREATE TABLE cronring.cron_audit_log (
    id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    refused text,
    times bigint DEFAULT 1 NOT NULL,
    principal text NOT NULL,
    method text NOT NULL,
    origin text DEFAULT ''::text NOT NULL,
    namespace text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    subject text NOT NULL,
    before text,
    after text,
    remark text DEFAULT ''::text NOT NULL,
    controller_id text DEFAULT ''::text NOT NULL,
    seq bigint,
    hash bytea,
    CONSTRAINT cron_audit_log_hash_check CHECK ((octet_length(hash) = 32)),
    CONSTRAINT cron_audit_log_method_check CHECK ((method > ''::text)),
    CONSTRAINT cron_audit_log_principal_check CHECK ((principal > ''::text)),
    CONSTRAINT cron_audit_log_sealed CHECK (((seq IS NULL) = (hash IS NULL))),
    CONSTRAINT cron_audit_log_seq_check CHECK ((seq > 0)),
    CONSTRAINT cron_audit_log_times_check CHECK ((times > 0))
);

ALTER TABLE cronring.cron_audit_log ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_closed_books (
    job_id bigint NOT NULL,
    until_at timestamp with time zone NOT NULL,
    due bigint DEFAULT 0 NOT NULL,
    executed bigint DEFAULT 0 NOT NULL,
    caught_up bigint DEFAULT 0 NOT NULL,
    late bigint DEFAULT 0 NOT NULL,
    skipped jsonb DEFAULT '{}'::jsonb NOT NULL,
    executions bigint DEFAULT 0 NOT NULL,
    outcomes jsonb DEFAULT '{}'::jsonb NOT NULL,
    triggers jsonb DEFAULT '{}'::jsonb NOT NULL
)
WITH (fillfactor='70');

CREATE UNLOGGED TABLE cronring.cron_closings (
    job_id bigint NOT NULL,
    closed_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone NOT NULL,
    executed bigint DEFAULT 0 NOT NULL,
    caught_up bigint DEFAULT 0 NOT NULL,
    late bigint DEFAULT 0 NOT NULL,
    executions bigint DEFAULT 0 NOT NULL,
    outcomes jsonb DEFAULT '{}'::jsonb NOT NULL,
    triggers jsonb DEFAULT '{}'::jsonb NOT NULL
);

CREATE TABLE cronring.cron_dead_letters (
    id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    workspace text NOT NULL COLLATE pg_catalog."C",
    job_id bigint,
    execution_id bigint,
    tick timestamp with time zone,
    attempt integer NOT NULL,
    payload text NOT NULL,
    enqueued_at timestamp with time zone NOT NULL,
    died_at timestamp with time zone NOT NULL,
    failures integer NOT NULL,
    outcome text NOT NULL,
    error_type text NOT NULL,
    error_message text NOT NULL
);

CREATE TABLE cronring.cron_deliveries (
    id bigint NOT NULL,
    webhook_id bigint NOT NULL,
    event_id text NOT NULL COLLATE pg_catalog."C",
    event text NOT NULL,
    job text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    next_try_at timestamp with time zone DEFAULT now() NOT NULL,
    tried_since timestamp with time zone DEFAULT now() NOT NULL,
    last_try_at timestamp with time zone,
    last_status integer,
    last_error text DEFAULT ''::text NOT NULL,
    ended_at timestamp with time zone,
    controller_id text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_deliveries_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text])))
)
WITH (fillfactor='80', autovacuum_vacuum_scale_factor='0.05');

ALTER TABLE cronring.cron_deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE cronring.cron_execution_ids
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE cronring.cron_execution_ids OWNED BY cronring.cron_executions.id;

CREATE TABLE cronring.cron_failing (
    job_id bigint NOT NULL,
    execution_id bigint NOT NULL,
    tick timestamp with time zone NOT NULL
);

CREATE UNLOGGED TABLE cronring.cron_fence_checks (
    id bigint NOT NULL,
    job_key text NOT NULL,
    fence bigint NOT NULL
);

ALTER TABLE cronring.cron_fence_checks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_fence_checks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_figures (
    job_id bigint NOT NULL,
    outcomes bigint[] NOT NULL,
    duration_us bigint NOT NULL,
    lateness_us bigint NOT NULL,
    durations integer[] NOT NULL,
    latenesses integer[] NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE cronring.cron_folding (
    single boolean DEFAULT true NOT NULL,
    folded_id bigint DEFAULT 0 NOT NULL,
    known_id bigint DEFAULT 0 NOT NULL,
    known_by xid8 DEFAULT '0'::xid8 NOT NULL,
    CONSTRAINT cron_folding_check CHECK ((folded_id <= known_id)),
    CONSTRAINT cron_folding_single_check CHECK (single)
)
WITH (fillfactor='50');

CREATE TABLE cronring.cron_followers (
    job_id bigint NOT NULL,
    after text NOT NULL COLLATE pg_catalog."C"
);

CREATE UNLOGGED TABLE cronring.cron_histories (
    job_id bigint NOT NULL,
    history_ms bigint NOT NULL,
    runs bigint NOT NULL
);

CREATE TABLE cronring.cron_interval_jobs (
    job_id bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    namespace text NOT NULL COLLATE pg_catalog."C",
    source_id text COLLATE pg_catalog."C",
    terms text NOT NULL,
    CONSTRAINT cron_interval_jobs_id_check CHECK ((id > ''::text))
);

CREATE VIEW cronring.cron_interval_job_details AS
 SELECT i.id,
    i.job_id,
    j.key,
    i.namespace,
    i.source_id,
    i.terms,
    s.status,
    j.created_at,
    COALESCE(j.changed_at, j.created_at) AS changed_at,
        CASE
            WHEN (s.status = ANY (ARRAY['pending'::text, 'scheduled'::text])) THEN COALESCE(w.run_at, j.next_execution)
            ELSE NULL::timestamp with time zone
        END AS next_run_at,
        CASE
            WHEN (s.status = 'paused'::text) THEN j.paused_at
            ELSE NULL::timestamp with time zone
        END AS paused_at,
    j.cancelled_at,
    (j.orphaned_at IS NOT NULL) AS orphaned,
    w.attempt AS waiting_attempt,
    COALESCE(j.last_tick, j.created_at) AS latest_from
   FROM (((cronring.cron_interval_jobs i
     CROSS JOIN LATERAL ( SELECT cron_jobs.id,
            cron_jobs.key,
            cron_jobs.namespace,
            cron_jobs.module,
            cron_jobs.verb,
            cron_jobs.slot,
            cron_jobs.deployment_id,
            cron_jobs.source,
            cron_jobs.template,
            cron_jobs.set_name,
            cron_jobs.labels,
            cron_jobs.payload,
            cron_jobs.timeout_ms,
            cron_jobs.on_disconnect,
            cron_jobs.created_at,
            cron_jobs.removed_at,
            cron_jobs.changed_at,
            cron_jobs.changed_by,
            cron_jobs.schedule,
            cron_jobs.anchor,
            cron_jobs.revision,
            cron_jobs.policy,
            cron_jobs.concurrency,
            cron_jobs.pause_after,
            cron_jobs.limits,
            cron_jobs.paused_at,
            cron_jobs.paused_tick,
            cron_jobs.paused_until,
            cron_jobs.paused_by,
            cron_jobs.paused_note,
            cron_jobs.ahead_from,
            cron_jobs.ahead_until,
            cron_jobs.cancelled_at,
            cron_jobs.cancelled_by,
            cron_jobs.cancelled_note,
            cron_jobs.orphaned_at,
            cron_jobs.orphaned_tick,
            cron_jobs.state,
            cron_jobs.next_tick,
            cron_jobs.next_execution,
            cron_jobs.start_time,
            cron_jobs.execution_id,
            cron_jobs.running,
            cron_jobs.last_tick,
            cron_jobs.missed,
            cron_jobs.last_run_at,
            cron_jobs.last_started_at,
            cron_jobs.last_ended_at,
            cron_jobs.last_outcome,
            cron_jobs.last_success,
            cron_jobs.failures,
            cron_jobs.executions
           FROM cronring.cron_jobs
          WHERE (cron_jobs.id = i.job_id)
         OFFSET 0) j)
     LEFT JOIN LATERAL ( SELECT cron_activations.trigger,
            cron_activations.run_at,
            cron_activations.attempt
           FROM cronring.cron_activations
          WHERE ((cron_activations.job_id = ANY (ARRAY[j.id])) AND (cron_activations.trigger = ANY (ARRAY['manual'::text, 'retry'::text])))
          ORDER BY cron_activations.trigger, cron_activations.run_at
         LIMIT 1) w ON (true))
     CROSS JOIN LATERAL ( SELECT cronring.cron_interval_status(j.cancelled_at, j.state, j.running, j.orphaned_at, j.paused_at, j.paused_until, j.paused_by, j.failures, j.next_tick, j.last_outcome, w.trigger) AS status) s);

ALTER TABLE cronring.cron_jobs ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_keys (
    name text NOT NULL,
    key bytea NOT NULL,
    CONSTRAINT cron_keys_key_check CHECK ((octet_length(key) >= 32))
);

CREATE TABLE cronring.cron_sessions (
    id bigint NOT NULL,
    secret_hash bytea NOT NULL,
    token_id bigint,
    principal text NOT NULL COLLATE pg_catalog."C",
    grants jsonb,
    issuer text DEFAULT ''::text NOT NULL,
    origin text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    last_used_at timestamp with time zone DEFAULT now() NOT NULL,
    idle_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    revoked_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_sessions_check CHECK (((token_id IS NULL) = (grants IS NOT NULL))),
    CONSTRAINT cron_sessions_check1 CHECK (((token_id IS NULL) = (issuer > ''::text))),
    CONSTRAINT cron_sessions_grants_check CHECK ((jsonb_typeof(grants) = 'array'::text)),
    CONSTRAINT cron_sessions_principal_check CHECK ((principal > ''::text)),
    CONSTRAINT cron_sessions_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
)
WITH (fillfactor='50');

CREATE TABLE cronring.cron_tokens (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    secret_hash bytea NOT NULL,
    grants jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text DEFAULT ''::text NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT cron_tokens_grants_check CHECK ((jsonb_typeof(grants) = 'array'::text)),
    CONSTRAINT cron_tokens_name_check CHECK ((name > ''::text)),
    CONSTRAINT cron_tokens_secret_hash_check CHECK ((octet_length(secret_hash) = 32))
)
WITH (fillfactor='50');

CREATE VIEW cronring.cron_known_sessions AS
 SELECT s.id,
    s.principal,
    COALESCE(t.grants, s.grants) AS grants,
    s.issuer,
    s.origin,
    s.created_at,
    s.last_used_at,
    LEAST(s.idle_at, s.expires_at, t.expires_at) AS expires_at,
    s.revoked_at,
    s.revoked_by,
    s.secret_hash,
        CASE
            WHEN (s.revoked_at IS NOT NULL) THEN 'revoked'::text
            WHEN (t.revoked_at IS NOT NULL) THEN 'token_revoked'::text
            WHEN (LEAST(s.idle_at, s.expires_at, t.expires_at) <= now()) THEN 'expired'::text
            ELSE ''::text
        END AS ended
   FROM (cronring.cron_sessions s
     LEFT JOIN LATERAL ( SELECT cron_tokens.grants,
            cron_tokens.expires_at,
            cron_tokens.revoked_at
           FROM cronring.cron_tokens
          WHERE (cron_tokens.id = s.token_id)
         OFFSET 0) t ON (true));

CREATE TABLE cronring.cron_late (
    job_id bigint NOT NULL,
    tick timestamp with time zone NOT NULL
);

ALTER TABLE cronring.cron_limits ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_limits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_lives (
    id bigint NOT NULL,
    kind text NOT NULL,
    member text NOT NULL COLLATE pg_catalog."C",
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone NOT NULL,
    departed boolean NOT NULL,
    address text NOT NULL,
    version text NOT NULL,
    deployments text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT cron_lives_kind_check CHECK ((kind = ANY (ARRAY['controller'::text, 'runner'::text])))
);

ALTER TABLE cronring.cron_lives ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_lives_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_maintenance (
    single boolean DEFAULT true NOT NULL,
    width interval DEFAULT '1 day'::interval NOT NULL,
    checked_at timestamp with time zone,
    leases_cleared bigint DEFAULT 0 NOT NULL,
    gone_jobs bigint DEFAULT 0 NOT NULL,
    gone_executions bigint DEFAULT 0 NOT NULL,
    gone_outcomes bigint[] DEFAULT '{0,0,0,0,0,0,0}'::bigint[] NOT NULL,
    gone_duration_us bigint DEFAULT 0 NOT NULL,
    gone_lateness_us bigint DEFAULT 0 NOT NULL,
    CONSTRAINT cron_maintenance_single_check CHECK (single)
);

CREATE TABLE cronring.cron_notifier (
    single boolean DEFAULT true NOT NULL,
    cluster text DEFAULT (gen_random_uuid())::text NOT NULL,
    holder text DEFAULT ''::text NOT NULL,
    lease_until timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    "position" text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_notifier_single_check CHECK (single)
)
WITH (fillfactor='50');

CREATE TABLE cronring.cron_partitions (
    name text NOT NULL,
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone NOT NULL,
    CONSTRAINT cron_partitions_check CHECK ((from_at < until_at))
);

CREATE TABLE cronring.cron_pauses (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    paused_at timestamp with time zone NOT NULL,
    failures integer NOT NULL,
    note text NOT NULL
);

ALTER TABLE cronring.cron_pauses ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_pauses_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_payloads (
    job_id bigint NOT NULL,
    until_at timestamp with time zone NOT NULL,
    payload text
);

CREATE TABLE cronring.cron_queue (
    id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    workspace text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    job_id bigint,
    execution_id bigint,
    tick timestamp with time zone,
    run_at timestamp with time zone DEFAULT now() NOT NULL,
    attempt integer DEFAULT 1 NOT NULL,
    payload text DEFAULT ''::text NOT NULL,
    awaited boolean DEFAULT false NOT NULL,
    hard_deadline timestamp with time zone,
    enqueued_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    error_type text,
    error_message text,
    output text,
    failures integer DEFAULT 0 NOT NULL,
    lost boolean DEFAULT false NOT NULL,
    CONSTRAINT cron_queue_check CHECK (((ended_at IS NULL) = (outcome IS NULL)))
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');

ALTER TABLE cronring.cron_queue ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_queue_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE cronring.cron_queue_lanes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_queue_lanes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE SEQUENCE cronring.cron_queue_leases
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

CREATE TABLE cronring.cron_queue_listeners (
    namespace text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    until_at timestamp with time zone NOT NULL
);

CREATE TABLE cronring.cron_queue_wakes (
    id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    workspace text NOT NULL COLLATE pg_catalog."C",
    run_at timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='1000');

ALTER TABLE cronring.cron_queue_wakes ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_queue_wakes_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_queues (
    namespace text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    max_deliveries integer DEFAULT 5 NOT NULL,
    on_retry text DEFAULT 'block'::text NOT NULL,
    dead_kept_days integer DEFAULT 30 NOT NULL,
    changed_at timestamp with time zone DEFAULT now() NOT NULL,
    changed_by text DEFAULT ''::text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_queues_dead_kept_days_check CHECK (((dead_kept_days >= 1) AND (dead_kept_days <= 3650))),
    CONSTRAINT cron_queues_max_deliveries_check CHECK (((max_deliveries >= 1) AND (max_deliveries <= 1000))),
    CONSTRAINT cron_queues_on_retry_check CHECK ((on_retry = ANY (ARRAY['block'::text, 'pass'::text])))
);

CREATE TABLE cronring.cron_request_keys (
    principal text NOT NULL COLLATE pg_catalog."C",
    method text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    request_hash bytea NOT NULL,
    begun_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    answer bytea,
    CONSTRAINT cron_request_keys_request_hash_check CHECK ((octet_length(request_hash) = 32))
);

CREATE TABLE cronring.cron_retrying (
    job_id bigint NOT NULL,
    tick timestamp with time zone NOT NULL,
    attempt integer NOT NULL
);

CREATE TABLE cronring.cron_runner_grants (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    namespace text NOT NULL COLLATE pg_catalog."C",
    modules text[] DEFAULT '{}'::text[] NOT NULL,
    may_activate boolean DEFAULT false NOT NULL,
    secret_hash bytea,
    uses_left bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_runner_grants_name_check CHECK ((name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'::text)),
    CONSTRAINT cron_runner_grants_namespace_check CHECK ((namespace > ''::text)),
    CONSTRAINT cron_runner_grants_secret_hash_check CHECK ((octet_length(secret_hash) = 32)),
    CONSTRAINT cron_runner_grants_uses_left_check CHECK ((uses_left >= 0))
)
WITH (fillfactor='50');

ALTER TABLE cronring.cron_runner_grants ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_runner_grants_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW cronring.cron_scheduled_jobs AS
 SELECT j.id,
    j.key,
    j.slot,
    d.key AS deployment,
    j.verb,
    j.schedule,
    j.anchor,
    j.revision,
    cronring.cron_timeout(j.timeout_ms, ( SELECT cron_defaults.timeout_ms
           FROM cronring.cron_defaults)) AS timeout_ms,
    j.on_disconnect,
    cronring.cron_full(j.state, j.running, j.concurrency) AS executing,
    j.next_tick,
    j.next_execution,
    j.policy,
    j.payload,
    COALESCE((j.labels ->> 'workspace'::text), ''::text) AS share,
    ( SELECT cron_defaults.retries
           FROM cronring.cron_defaults) AS default_retries,
    (d.min_replicas > 0) AS active,
    j.namespace,
    j.module,
    j.removed_at,
    j.orphaned_at,
    j.paused_at,
    j.paused_until
   FROM (cronring.cron_jobs j
     JOIN cronring.deployments d ON ((d.id = j.deployment_id)));

CREATE TABLE cronring.cron_schedules (
    job_id bigint NOT NULL,
    revision integer NOT NULL,
    schedule text NOT NULL,
    anchor timestamp with time zone NOT NULL,
    policy text DEFAULT ''::text NOT NULL,
    from_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone,
    CONSTRAINT cron_schedules_check CHECK ((until_at >= from_at))
);

ALTER TABLE cronring.cron_sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_sets (
    namespace text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    revision bigint NOT NULL,
    applied_at timestamp with time zone NOT NULL,
    applied_by text NOT NULL,
    note text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_sets_name_check CHECK ((name > ''::text))
);

CREATE TABLE cronring.cron_skips (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    reason text NOT NULL,
    first_tick timestamp with time zone NOT NULL,
    last_tick timestamp with time zone NOT NULL,
    ticks bigint NOT NULL,
    controller_id text NOT NULL COLLATE pg_catalog."C",
    decided_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT cron_skips_check CHECK ((last_tick >= first_tick)),
    CONSTRAINT cron_skips_reason_check CHECK ((reason = ANY (ARRAY['overlap'::text, 'paused'::text, 'no_runner'::text, 'outside_window'::text, 'superseded'::text, 'missed_policy'::text, 'deployment_removed'::text, 'cancelled'::text, 'no_verb'::text]))),
    CONSTRAINT cron_skips_ticks_check CHECK ((ticks > 0))
);

ALTER TABLE cronring.cron_skips ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_skips_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_templates (
    id bigint NOT NULL,
    namespace text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    description text DEFAULT ''::text NOT NULL,
    schedule text DEFAULT ''::text NOT NULL,
    anchor timestamp with time zone,
    policy text DEFAULT ''::text NOT NULL,
    payload text DEFAULT ''::text NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    timeout_ms bigint DEFAULT 0 NOT NULL,
    on_disconnect text DEFAULT ''::text NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text NOT NULL,
    CONSTRAINT cron_templates_check CHECK (((anchor IS NULL) OR (schedule > ''::text))),
    CONSTRAINT cron_templates_name_check CHECK ((name > ''::text)),
    CONSTRAINT cron_templates_on_disconnect_check CHECK ((on_disconnect = ANY (ARRAY[''::text, 'stop'::text, 'finish'::text]))),
    CONSTRAINT cron_templates_payload_check CHECK ((octet_length(payload) <= 65536)),
    CONSTRAINT cron_templates_timeout_ms_check CHECK ((timeout_ms >= 0))
);

ALTER TABLE cronring.cron_templates ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_templates_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE cronring.cron_tokens ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE VIEW cronring.cron_unfinished_executions AS
 SELECT e.id AS execution_id,
    e.tick,
    e.run_at,
    e.claimed_at,
    e.attempt,
    e.trigger,
    d.key AS execution_deployment,
    e.runner_id,
    e.missed,
    e.previous_tick,
    e.previous_success,
    COALESCE(e.payload, j.payload) AS execution_payload,
    e.holds_job,
    e.of_schedule,
    j.id,
    j.key,
    j.slot,
    j.deployment,
    j.verb,
    j.schedule,
    j.anchor,
    j.revision,
    j.timeout_ms,
    j.on_disconnect,
    j.executing,
    j.next_tick,
    j.next_execution,
    j.policy,
    j.payload,
    j.share,
    j.default_retries,
    j.active,
    j.namespace,
    j.module,
    j.removed_at,
    j.orphaned_at,
    j.paused_at,
    j.paused_until,
    e.controller_id,
    e.hard_deadline
   FROM ((cronring.cron_executions e
     JOIN cronring.deployments d ON ((d.id = e.deployment_id)))
     CROSS JOIN LATERAL ( SELECT cron_scheduled_jobs.id,
            cron_scheduled_jobs.key,
            cron_scheduled_jobs.slot,
            cron_scheduled_jobs.deployment,
            cron_scheduled_jobs.verb,
            cron_scheduled_jobs.schedule,
            cron_scheduled_jobs.anchor,
            cron_scheduled_jobs.revision,
            cron_scheduled_jobs.timeout_ms,
            cron_scheduled_jobs.on_disconnect,
            cron_scheduled_jobs.executing,
            cron_scheduled_jobs.next_tick,
            cron_scheduled_jobs.next_execution,
            cron_scheduled_jobs.policy,
            cron_scheduled_jobs.payload,
            cron_scheduled_jobs.share,
            cron_scheduled_jobs.default_retries,
            cron_scheduled_jobs.active,
            cron_scheduled_jobs.namespace,
            cron_scheduled_jobs.module,
            cron_scheduled_jobs.removed_at,
            cron_scheduled_jobs.orphaned_at,
            cron_scheduled_jobs.paused_at,
            cron_scheduled_jobs.paused_until
           FROM cronring.cron_scheduled_jobs
          WHERE (cron_scheduled_jobs.id = e.job_id)
         OFFSET 0) j)
  WHERE (e.outcome IS NULL);

CREATE TABLE cronring.cron_unfolded (
    execution_id bigint NOT NULL,
    job_id bigint NOT NULL,
    tick timestamp with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');

CREATE VIEW cronring.cron_unfolded_ends AS
 SELECT job_id,
    outcome,
    ((date_part('epoch'::text, (ended_at - started_at)) * ('1000000'::numeric)::double precision))::bigint AS duration_us,
    ((date_part('epoch'::text, (started_at - run_at)) * ('1000000'::numeric)::double precision))::bigint AS lateness_us
   FROM ( SELECT cron_executions.job_id,
            cron_executions.outcome,
            cron_executions.started_at,
            cron_executions.ended_at,
            cron_executions.run_at
           FROM cronring.cron_executions
          WHERE (cron_executions.id > ( SELECT cron_folding.folded_id
                   FROM cronring.cron_folding))
        UNION ALL
         SELECT e.job_id,
            e.outcome,
            e.started_at,
            e.ended_at,
            e.run_at
           FROM (cronring.cron_unfolded u
             CROSS JOIN LATERAL ( SELECT cron_executions.id,
                    cron_executions.job_id,
                    cron_executions.deployment_id,
                    cron_executions.number,
                    cron_executions.tick,
                    cron_executions.run_at,
                    cron_executions.attempt,
                    cron_executions.trigger,
                    cron_executions.claimed_at,
                    cron_executions.hard_deadline,
                    cron_executions.controller_id,
                    cron_executions.runner_id,
                    cron_executions.holds_job,
                    cron_executions.counted,
                    cron_executions.of_schedule,
                    cron_executions.counted_before,
                    cron_executions.missed,
                    cron_executions.previous_tick,
                    cron_executions.previous_success,
                    cron_executions.payload,
                    cron_executions.places,
                    cron_executions.cancel_requested_at,
                    cron_executions.cancel_requested_by,
                    cron_executions.cancel_note,
                    cron_executions.started_at,
                    cron_executions.ended_at,
                    cron_executions.outcome,
                    cron_executions.retry_at,
                    cron_executions.error_type,
                    cron_executions.error_message,
                    cron_executions.stack,
                    cron_executions.output,
                    cron_executions.metrics,
                    cron_executions.cpu_us,
                    cron_executions.memory_peak_bytes,
                    cron_executions.memory_shared
                   FROM cronring.cron_executions
                  WHERE ((cron_executions.id = u.execution_id) AND (cron_executions.tick = u.tick))
                 OFFSET 0) e)) found
  WHERE (outcome IS NOT NULL);

CREATE TABLE cronring.cron_verb_calls (
    execution_id bigint NOT NULL,
    number integer NOT NULL,
    made_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT cron_verb_calls_number_check CHECK ((number > 0))
);

CREATE TABLE cronring.cron_webhooks (
    id bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    origin text NOT NULL,
    encrypted text NOT NULL,
    events text[] DEFAULT '{}'::text[] NOT NULL,
    reasons text[] DEFAULT '{}'::text[] NOT NULL,
    outcomes text[] DEFAULT '{}'::text[] NOT NULL,
    namespace text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    module text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    job text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    created_by text DEFAULT ''::text NOT NULL,
    enabled_at timestamp with time zone DEFAULT now() NOT NULL,
    disabled_at timestamp with time zone,
    disabled_reason text DEFAULT ''::text NOT NULL,
    CONSTRAINT cron_webhooks_encrypted_check CHECK ((encrypted ~~ 'cronring1$%$%$%'::text)),
    CONSTRAINT cron_webhooks_name_check CHECK ((name > ''::text))
);

ALTER TABLE cronring.cron_webhooks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.cron_webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.cron_zone_data (
    version text NOT NULL,
    first_used_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE cronring.cronring_migrations (
    version integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL,
    works_with integer
);

ALTER TABLE cronring.deployments ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME cronring.deployments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE cronring.runners (
    id text NOT NULL COLLATE pg_catalog."C",
    hostname text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    deployments text[] NOT NULL,
    sync_places integer DEFAULT 0 NOT NULL,
    async_places integer DEFAULT 0 NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    left_at timestamp with time zone,
    held_since timestamp with time zone DEFAULT now() NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_threshold='1000');

ALTER TABLE ONLY cronring.cron_activations ALTER COLUMN id SET DEFAULT nextval('cronring.cron_activation_ids'::regclass);

ALTER TABLE ONLY cronring.cron_executions ALTER COLUMN id SET DEFAULT nextval('cronring.cron_execution_ids'::regclass);

ALTER TABLE ONLY cronring.controllers
    ADD CONSTRAINT controllers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_actions
    ADD CONSTRAINT cron_actions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_activations
    ADD CONSTRAINT cron_activations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_audit_chain
    ADD CONSTRAINT cron_audit_chain_pkey PRIMARY KEY (single);

ALTER TABLE ONLY cronring.cron_audit_log
    ADD CONSTRAINT cron_audit_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_audit_log
    ADD CONSTRAINT cron_audit_log_seq_key UNIQUE (seq);

ALTER TABLE ONLY cronring.cron_closed_books
    ADD CONSTRAINT cron_closed_books_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_closings
    ADD CONSTRAINT cron_closings_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_dead_letters
    ADD CONSTRAINT cron_dead_letters_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_defaults
    ADD CONSTRAINT cron_defaults_pkey PRIMARY KEY (single);

ALTER TABLE ONLY cronring.cron_deliveries
    ADD CONSTRAINT cron_deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_deliveries
    ADD CONSTRAINT cron_deliveries_webhook_id_event_id_key UNIQUE (webhook_id, event_id);

ALTER TABLE ONLY cronring.cron_executions
    ADD CONSTRAINT cron_executions_once UNIQUE (job_id, tick, attempt);

ALTER TABLE ONLY cronring.cron_executions
    ADD CONSTRAINT cron_executions_pkey PRIMARY KEY (id, tick);

ALTER TABLE ONLY cronring.cron_failing
    ADD CONSTRAINT cron_failing_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_fence_checks
    ADD CONSTRAINT cron_fence_checks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_figures
    ADD CONSTRAINT cron_figures_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_folding
    ADD CONSTRAINT cron_folding_pkey PRIMARY KEY (single);

ALTER TABLE ONLY cronring.cron_followers
    ADD CONSTRAINT cron_followers_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_histories
    ADD CONSTRAINT cron_histories_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_interval_jobs
    ADD CONSTRAINT cron_interval_jobs_id_key UNIQUE (id);

ALTER TABLE ONLY cronring.cron_interval_jobs
    ADD CONSTRAINT cron_interval_jobs_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_jobs
    ADD CONSTRAINT cron_jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_keys
    ADD CONSTRAINT cron_keys_pkey PRIMARY KEY (name);

ALTER TABLE ONLY cronring.cron_late
    ADD CONSTRAINT cron_late_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY cronring.cron_limits
    ADD CONSTRAINT cron_limits_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_lives
    ADD CONSTRAINT cron_lives_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_maintenance
    ADD CONSTRAINT cron_maintenance_pkey PRIMARY KEY (single);

ALTER TABLE ONLY cronring.cron_notifier
    ADD CONSTRAINT cron_notifier_pkey PRIMARY KEY (single);

ALTER TABLE ONLY cronring.cron_partitions
    ADD CONSTRAINT cron_partitions_pkey PRIMARY KEY (name);

ALTER TABLE ONLY cronring.cron_pauses
    ADD CONSTRAINT cron_pauses_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_payloads
    ADD CONSTRAINT cron_payloads_pkey PRIMARY KEY (job_id, until_at);

ALTER TABLE ONLY cronring.cron_queue_lanes
    ADD CONSTRAINT cron_queue_lanes_namespace_queue_workspace_key UNIQUE (namespace, queue, workspace);

ALTER TABLE ONLY cronring.cron_queue_lanes
    ADD CONSTRAINT cron_queue_lanes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_queue_listeners
    ADD CONSTRAINT cron_queue_listeners_pkey PRIMARY KEY (namespace, queue);

ALTER TABLE ONLY cronring.cron_queue
    ADD CONSTRAINT cron_queue_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_queue_wakes
    ADD CONSTRAINT cron_queue_wakes_pkey PRIMARY KEY (namespace, queue, id);

ALTER TABLE ONLY cronring.cron_queues
    ADD CONSTRAINT cron_queues_pkey PRIMARY KEY (namespace, queue);

ALTER TABLE ONLY cronring.cron_request_keys
    ADD CONSTRAINT cron_request_keys_pkey PRIMARY KEY (principal, method, key);

ALTER TABLE ONLY cronring.cron_retrying
    ADD CONSTRAINT cron_retrying_pkey PRIMARY KEY (job_id, tick, attempt);

ALTER TABLE ONLY cronring.cron_runner_grants
    ADD CONSTRAINT cron_runner_grants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_runner_grants
    ADD CONSTRAINT cron_runner_grants_secret_hash_key UNIQUE (secret_hash);

ALTER TABLE ONLY cronring.cron_schedules
    ADD CONSTRAINT cron_schedules_pkey PRIMARY KEY (job_id, revision);

ALTER TABLE ONLY cronring.cron_sessions
    ADD CONSTRAINT cron_sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_sessions
    ADD CONSTRAINT cron_sessions_secret_hash_key UNIQUE (secret_hash);

ALTER TABLE ONLY cronring.cron_sets
    ADD CONSTRAINT cron_sets_pkey PRIMARY KEY (namespace, name);

ALTER TABLE ONLY cronring.cron_skips
    ADD CONSTRAINT cron_skips_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_templates
    ADD CONSTRAINT cron_templates_namespace_name_key UNIQUE (namespace, name);

ALTER TABLE ONLY cronring.cron_templates
    ADD CONSTRAINT cron_templates_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_tokens
    ADD CONSTRAINT cron_tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_tokens
    ADD CONSTRAINT cron_tokens_secret_hash_key UNIQUE (secret_hash);

ALTER TABLE ONLY cronring.cron_unfolded
    ADD CONSTRAINT cron_unfolded_pkey PRIMARY KEY (execution_id);

ALTER TABLE ONLY cronring.cron_verb_calls
    ADD CONSTRAINT cron_verb_calls_pkey PRIMARY KEY (execution_id, number);

ALTER TABLE ONLY cronring.cron_webhooks
    ADD CONSTRAINT cron_webhooks_name_key UNIQUE (name);

ALTER TABLE ONLY cronring.cron_webhooks
    ADD CONSTRAINT cron_webhooks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.cron_zone_data
    ADD CONSTRAINT cron_zone_data_pkey PRIMARY KEY (version);

ALTER TABLE ONLY cronring.cronring_migrations
    ADD CONSTRAINT cronring_migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY cronring.deployments
    ADD CONSTRAINT deployments_key_key UNIQUE (key);

ALTER TABLE ONLY cronring.deployments
    ADD CONSTRAINT deployments_namespace_module_digest_key UNIQUE (namespace, module, digest);

ALTER TABLE ONLY cronring.deployments
    ADD CONSTRAINT deployments_pkey PRIMARY KEY (id);

ALTER TABLE ONLY cronring.runners
    ADD CONSTRAINT runners_pkey PRIMARY KEY (id);

CREATE INDEX cron_actions_at ON cronring.cron_actions USING btree (at);

CREATE INDEX cron_actions_deployment ON cronring.cron_actions USING btree (deployment_id, id) WHERE (deployment_id IS NOT NULL);

CREATE INDEX cron_actions_execution ON cronring.cron_actions USING btree (execution_id) WHERE (execution_id IS NOT NULL);

CREATE INDEX cron_actions_job ON cronring.cron_actions USING btree (job_id, id) WHERE (job_id IS NOT NULL);

CREATE INDEX cron_actions_template ON cronring.cron_actions USING btree (template, id) WHERE (template IS NOT NULL);

CREATE INDEX cron_actions_untold ON cronring.cron_actions USING btree (id) WHERE untold;

CREATE UNIQUE INDEX cron_activations_after ON cronring.cron_activations USING btree (job_id, tick) WHERE (trigger = 'after'::text);

CREATE INDEX cron_activations_due ON cronring.cron_activations USING btree (slot, run_at);

CREATE INDEX cron_activations_job ON cronring.cron_activations USING btree (job_id);

CREATE INDEX cron_audit_log_at ON cronring.cron_audit_log USING btree (at, id);

CREATE INDEX cron_audit_log_unsealed ON cronring.cron_audit_log USING btree (id) WHERE (seq IS NULL);

CREATE INDEX cron_dead_letters_queue ON cronring.cron_dead_letters USING btree (namespace, queue, id);

CREATE INDEX cron_dead_letters_workspace ON cronring.cron_dead_letters USING btree (namespace, workspace, queue, id);

CREATE INDEX cron_deliveries_log ON cronring.cron_deliveries USING btree (webhook_id, id);

CREATE INDEX cron_deliveries_old ON cronring.cron_deliveries USING btree (created_at);

CREATE INDEX cron_deliveries_waiting ON cronring.cron_deliveries USING btree (webhook_id, next_try_at) WHERE (state = 'waiting'::text);

CREATE INDEX cron_executions_cancelling ON ONLY cronring.cron_executions USING btree (controller_id) WHERE ((outcome IS NULL) AND (cancel_requested_at IS NOT NULL));

CREATE INDEX cron_executions_decided ON ONLY cronring.cron_executions USING btree (controller_id) WHERE ((outcome IS NULL) AND (started_at IS NOT NULL));

CREATE INDEX cron_executions_of_controller ON ONLY cronring.cron_executions USING btree (controller_id, hard_deadline) WHERE ((outcome IS NULL) AND (controller_id > ''::text));

CREATE INDEX cron_executions_of_runner ON ONLY cronring.cron_executions USING btree (runner_id) WHERE ((outcome IS NULL) AND (runner_id > ''::text));

CREATE INDEX cron_executions_troubled ON ONLY cronring.cron_executions USING btree (outcome, id) WHERE ((outcome)::text <> 'completed'::text);

CREATE INDEX cron_followers_after ON cronring.cron_followers USING btree (after);

CREATE INDEX cron_interval_jobs_listed ON cronring.cron_interval_jobs USING btree (namespace, job_id);

CREATE INDEX cron_jobs_changed ON cronring.cron_jobs USING btree (changed_at) WHERE (changed_at IS NOT NULL);

CREATE INDEX cron_jobs_due ON cronring.cron_jobs USING btree (slot, next_execution) WHERE (next_execution IS NOT NULL);

CREATE UNIQUE INDEX cron_jobs_key ON cronring.cron_jobs USING btree (key) WHERE ((removed_at IS NULL) AND (key > ''::text));

CREATE INDEX cron_jobs_labels ON cronring.cron_jobs USING gin (labels jsonb_path_ops) WHERE (labels <> '{}'::jsonb);

CREATE INDEX cron_jobs_late ON cronring.cron_jobs USING btree (next_execution) WHERE ((next_execution IS NOT NULL) AND (policy ~~ '%"late_after":%'::text));

CREATE INDEX cron_jobs_orphaned ON cronring.cron_jobs USING btree (module, verb) WHERE (orphaned_at IS NOT NULL);

CREATE INDEX cron_jobs_paused_until ON cronring.cron_jobs USING btree (paused_until) WHERE (paused_until IS NOT NULL);

CREATE INDEX cron_jobs_removed ON cronring.cron_jobs USING btree (key, id) WHERE ((removed_at IS NOT NULL) AND (key > ''::text));

CREATE INDEX cron_jobs_set ON cronring.cron_jobs USING btree (namespace, set_name, key) WHERE ((set_name > ''::text) AND (removed_at IS NULL));

CREATE INDEX cron_jobs_template ON cronring.cron_jobs USING btree (namespace, template) WHERE ((template > ''::text) AND (removed_at IS NULL));

CREATE INDEX cron_limits_module ON cronring.cron_limits USING btree (module) WHERE (label = ''::text);

CREATE UNIQUE INDEX cron_limits_rule ON cronring.cron_limits USING btree (namespace, module, label) WHERE (rule IS NULL);

CREATE UNIQUE INDEX cron_limits_value ON cronring.cron_limits USING btree (rule, value) WHERE (rule IS NOT NULL);

CREATE INDEX cron_lives_until ON cronring.cron_lives USING btree (until_at);

CREATE INDEX cron_queue_age ON cronring.cron_queue USING btree (namespace, queue, id) WHERE (ended_at IS NULL);

CREATE INDEX cron_queue_ended ON cronring.cron_queue USING btree (id) WHERE ((ended_at IS NOT NULL) AND awaited);

CREATE INDEX cron_queue_execution ON cronring.cron_queue USING btree (execution_id) WHERE awaited;

CREATE INDEX cron_queue_lane ON cronring.cron_queue USING btree (namespace, workspace, queue, run_at, id) WHERE (ended_at IS NULL);

CREATE INDEX cron_queue_lanes_lease ON cronring.cron_queue_lanes USING btree (lease) WHERE (lease IS NOT NULL);

CREATE INDEX cron_queue_lanes_ready ON cronring.cron_queue_lanes USING btree (namespace, queue, ready_at) WHERE (ready_at IS NOT NULL);

CREATE INDEX cron_request_keys_expires ON cronring.cron_request_keys USING btree (expires_at);

CREATE INDEX cron_runner_grants_freed ON cronring.cron_runner_grants USING btree (name, revoked_at) WHERE (revoked_at IS NOT NULL);

CREATE UNIQUE INDEX cron_runner_grants_name ON cronring.cron_runner_grants USING btree (name) WHERE (revoked_at IS NULL);

CREATE INDEX cron_schedules_open ON cronring.cron_schedules USING btree (job_id) WHERE (until_at IS NULL);

CREATE INDEX cron_sessions_principal ON cronring.cron_sessions USING btree (principal, id);

CREATE INDEX cron_sessions_token ON cronring.cron_sessions USING btree (token_id) WHERE (token_id IS NOT NULL);

CREATE INDEX cron_skips_job ON cronring.cron_skips USING btree (job_id, first_tick);

CREATE UNIQUE INDEX cron_tokens_name ON cronring.cron_tokens USING btree (name) WHERE (revoked_at IS NULL);

CREATE INDEX cron_unfolded_job ON cronring.cron_unfolded USING btree (job_id);

CREATE INDEX cron_verb_calls_made ON cronring.cron_verb_calls USING btree (made_at);

CREATE UNIQUE INDEX deployments_one_active ON cronring.deployments USING btree (namespace, module) WHERE (min_replicas > 0);

CREATE TRIGGER controllers_came_back BEFORE UPDATE OF lease_expires_at ON cronring.controllers FOR EACH ROW WHEN (((old.lease_expires_at <= now()) AND (new.lease_expires_at > now()))) EXECUTE FUNCTION cronring.cron_note_controllers_life();

CREATE TRIGGER controllers_forgotten BEFORE DELETE ON cronring.controllers FOR EACH ROW EXECUTE FUNCTION cronring.cron_note_controllers_life();

CREATE TRIGGER cron_audit_log_not_deleted AFTER DELETE ON cronring.cron_audit_log REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION cronring.cron_audit_log_cut();

CREATE TRIGGER cron_audit_log_not_truncated BEFORE TRUNCATE ON cronring.cron_audit_log FOR EACH STATEMENT EXECUTE FUNCTION cronring.cron_audit_log_not_emptied();

CREATE TRIGGER cron_audit_log_unchanged BEFORE UPDATE ON cronring.cron_audit_log FOR EACH ROW EXECUTE FUNCTION cronring.cron_audit_log_kept();

CREATE CONSTRAINT TRIGGER cron_fence_checks_at_commit AFTER INSERT ON cronring.cron_fence_checks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cronring.cron_fence_check();

CREATE TRIGGER cron_jobs_limit BEFORE INSERT ON cronring.cron_jobs FOR EACH ROW EXECUTE FUNCTION cronring.cron_limit_job();

CREATE TRIGGER cron_jobs_limit_labels AFTER UPDATE OF labels ON cronring.cron_jobs FOR EACH ROW WHEN ((new.labels IS DISTINCT FROM old.labels)) EXECUTE FUNCTION cronring.cron_limit_labels();

CREATE TRIGGER cron_jobs_note_pause AFTER UPDATE OF paused_at ON cronring.cron_jobs FOR EACH ROW WHEN (((new.paused_by = 'cronring'::text) AND (new.paused_at IS DISTINCT FROM old.paused_at) AND (new.paused_at IS NOT NULL))) EXECUTE FUNCTION cronring.cron_note_pause();

CREATE TRIGGER cron_jobs_note_payload AFTER UPDATE OF payload ON cronring.cron_jobs FOR EACH ROW WHEN ((new.payload IS DISTINCT FROM old.payload)) EXECUTE FUNCTION cronring.cron_note_payload();

CREATE TRIGGER cron_jobs_sound AFTER INSERT OR UPDATE OF key, slot, timeout_ms, on_disconnect, paused_at, paused_tick, paused_until, orphaned_at, orphaned_tick ON cronring.cron_jobs FOR EACH ROW WHEN ((NOT ((new.key > ''::text) AND ((new.slot >= 0) AND (new.slot <= 4095)) AND (new.timeout_ms <> 0) AND (new.on_disconnect = ANY (ARRAY['stop'::text, 'finish'::text])) AND ((new.orphaned_tick IS NULL) OR (new.orphaned_at IS NOT NULL)) AND
        CASE
            WHEN (new.paused_at IS NULL) THEN ((new.paused_tick IS NULL) AND (new.paused_until IS NULL))
            ELSE ((new.paused_until IS NOT NULL) OR (new.orphaned_tick IS NULL))
        END))) EXECUTE FUNCTION cronring.cron_refuse();

CREATE TRIGGER cron_queue_tell_ended AFTER UPDATE OF ended_at ON cronring.cron_queue FOR EACH ROW WHEN ((new.awaited AND (new.ended_at IS NOT NULL) AND (old.ended_at IS NULL))) EXECUTE FUNCTION cronring.cron_tell_ended();

CREATE TRIGGER cron_queue_wakes_lanes AFTER INSERT ON cronring.cron_queue REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION cronring.cron_queue_woken();

CREATE TRIGGER runners_came_back BEFORE UPDATE OF last_seen_at ON cronring.runners FOR EACH ROW WHEN (((new.left_at IS NULL) AND ((old.left_at IS NOT NULL) OR (old.last_seen_at < (new.last_seen_at - '00:00:10'::interval))))) EXECUTE FUNCTION cronring.cron_note_runners_life();

CREATE TRIGGER runners_forgotten BEFORE DELETE ON cronring.runners FOR EACH ROW EXECUTE FUNCTION cronring.cron_note_runners_life();

ALTER TABLE ONLY cronring.cron_deliveries
    ADD CONSTRAINT cron_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES cronring.cron_webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY cronring.cron_jobs
    ADD CONSTRAINT cron_jobs_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES cronring.deployments(id);

ALTER TABLE ONLY cronring.cron_payloads
    ADD CONSTRAINT cron_payloads_job_id_fkey FOREIGN KEY (job_id) REFERENCES cronring.cron_jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY cronring.cron_sessions
    ADD CONSTRAINT cron_sessions_token_id_fkey FOREIGN KEY (token_id) REFERENCES cronring.cron_tokens(id) ON DELETE CASCADE;

REVOKE ALL ON FUNCTION cronring.cron_active(removed_at timestamp with time zone, cancelled_at timestamp with time zone, orphaned_at timestamp with time zone, paused_at timestamp with time zone, paused_until timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_add_partition(ahead timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_after(policy text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_attempts(of_job bigint, of_tick timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_audit_log_cut() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_audit_log_kept() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_audit_log_not_emptied() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_awaits(policy text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_bucket(microseconds double precision) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_counted(histogram integer[], buckets integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_drop_gone() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_fence(job_key text, fence bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_fence_check() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_fence_commit(job_key text, fence bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_fitting_executions(since timestamp with time zone, until timestamp with time zone, outcomes text[], runner text, of_jobs boolean, namespaces text[], of_namespace text, of_module text, of_verb text, of_labels jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_paused(paused_at timestamp with time zone, paused_until timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_fitting_jobs(of_labels jsonb, of_module text, namespaces text[], of_namespace text, of_verb text, outcomes text[], contains text[], keys text[], statuses text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_full(state text, running smallint, concurrency smallint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_interval_status(cancelled_at timestamp with time zone, state text, running smallint, orphaned_at timestamp with time zone, paused_at timestamp with time zone, paused_until timestamp with time zone, paused_by text, failures integer, next_tick timestamp with time zone, last_outcome text, waiting text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_limit_job() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_limit_labels() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_limits_of(of_namespace text, of_module text, of_labels jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_make_partition(from_at timestamp with time zone, until_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_merged(histogram integer[], other integer[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_note_controllers_life() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_note_pause() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_note_payload() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_note_runners_life() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_priority(policy text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_absorb(namespace text, queue text, most integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_answer(ids bigint[], held bigint[], decided jsonb, strict boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_check_name(namespace text, queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_done(lease bigint, ids bigint[], output text, strict boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_extend(lease bigint, hold interval) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_free(lane cronring.cron_queue_lanes) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_hold(lease bigint, ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_kept(output text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_let_go(lease bigint, ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_listen(queue text, hold interval, namespace text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_lose(lane cronring.cron_queue_lanes) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_name(module text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_names() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_put(queue text, payload json, workspace text, namespace text, not_before timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_put_many(queue text, payloads json[], workspaces text[], namespace text, not_before timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_release(lease bigint, ids bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_retry(lease bigint, ids bigint[], error text, delay interval, error_type text, last boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_strike(ids bigint[], how text, error_type text, error_message text, last boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_take(queue text, consumer text, hold interval, most integer, namespace text) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_wait(lease bigint, waits jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_woken() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_queue_workspaces(spaces text[], after_namespace text, after_workspace text, most bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_rank(sort text, run_at timestamp with time zone, claimed_at timestamp with time zone, started_at timestamp with time zone, ended_at timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_refuse() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_stage_kept(boundary timestamp with time zone, runs bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_swap_staged(boundary timestamp with time zone, recent_id bigint, recent bigint, unfinished bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_tell_ended() FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_tenth_runs(of_job bigint, of_tick timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_tick(of_job bigint, of_tick timestamp with time zone, OUT attempts integer, OUT missed bigint, OUT previous_tick timestamp with time zone, OUT previous_success timestamp with time zone, OUT completed boolean, OUT running boolean) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_timeout(own bigint, of_cluster bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION cronring.cron_workspace(verb text) FROM PUBLIC;
