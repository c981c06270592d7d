-- Control of single executions: who wants one cancelled, and fences for authors' own transactions.

ALTER TABLE cron_executions
    -- Somebody wants it to stop. The mark stays whatever becomes of it; it is not retried by its job's policy.
    ADD COLUMN cancel_requested_at timestamptz,
    ADD COLUMN cancel_requested_by text,
    ADD COLUMN cancel_note text;

-- Any that has ended may be retried by now, so that of those, too, it counts whose ticks they were.
UPDATE cron_executions e SET of_schedule = false
WHERE e.trigger IN ('manual', 'backfill')
   OR e.trigger = 'retry' AND NOT EXISTS (SELECT FROM cron_executions o WHERE o.job_id = e.job_id AND o.tick = e.tick
                                          AND o.trigger IN ('schedule', 'catch_up'));

-- No claim has an entry here, and an end only where it was marked. A query that names no condition on controller_id can
-- use none of the other indexes of unfinished executions; see cron_jobs.sql.
CREATE INDEX cron_executions_cancelling ON cron_executions (controller_id)
    WHERE outcome IS NULL AND cancel_requested_at IS NOT NULL;

-- Whether an execution (its id is the fence) still is the one that runs its job: as soon as anybody has ended it (its
-- runner, or a controller that took it for lost or overdue), it is not. For authors, whose roles may see no table of ours.
CREATE FUNCTION cron_fence(job_key text, fence bigint) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
    AS $$
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
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
    AS $$
        BEGIN
            IF NOT cron_fence(job_key, fence) THEN
                RETURN false;
            END IF;
            INSERT INTO cron_fence_checks (job_key, fence) VALUES (job_key, fence);
            RETURN true;
        END
    $$;

CREATE FUNCTION cron_fence_check() RETURNS trigger
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path FROM CURRENT
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
        END
    $$;

CREATE CONSTRAINT TRIGGER cron_fence_checks_at_commit AFTER INSERT ON cron_fence_checks
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cron_fence_check();
