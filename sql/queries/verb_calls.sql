-- What verbs change through their runners. Each call is done once. docs/decisions/0098

-- name: GetVerbCall
-- The job that a call's execution is of, whose it is, whether it goes on, and whether the call was done.
SELECT j.key, e.runner_id, e.ended_at IS NULL AS runs,
       EXISTS (SELECT FROM cron_verb_calls c WHERE c.execution_id = e.id AND c.number = :number) AS done
FROM cron_executions e
JOIN cron_jobs j ON j.id = e.job_id
WHERE e.id = :execution_id;

-- name: KeepVerbCall
-- Comes last in a call's transaction, as jobs are locked before executions. The execution can't end before the
-- transaction does. No row: the execution has ended or is another runner's, or the call was done before.
WITH running AS MATERIALIZED (
    SELECT id FROM cron_executions
    WHERE id = :execution_id AND runner_id = :runner_id AND ended_at IS NULL
    FOR SHARE
)
INSERT INTO cron_verb_calls (execution_id, number) SELECT id, :number FROM running
ON CONFLICT (execution_id, number) DO NOTHING
RETURNING number;

-- name: ForgetVerbCalls
-- Nobody asks for them again: a runner gives a call up within an hour.
DELETE FROM cron_verb_calls WHERE made_at < now() - interval '1 day';
