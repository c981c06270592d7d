-- Templates: named defaults that jobs made through the API start from; and what bulk orders look jobs up by.

CREATE TABLE cron_templates (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace      text COLLATE "C" NOT NULL,
    name           text COLLATE "C" NOT NULL CHECK (name > ''),
    description    text NOT NULL DEFAULT '',
    -- What is '', '{}', 0 or null is left to the job. Texts are canonical, as in cron_jobs; the policy is partial.
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

-- The name of the template that a job was made from, in the job's own namespace; its values were copied then.
ALTER TABLE cron_jobs ADD COLUMN template text NOT NULL DEFAULT '';
-- Every end of a run moves its job's row (next_execution), and writes an entry into each index that the row is in: so these
-- hold only jobs that were made from templates, that have labels, or that are gone. Those of a module are found by their keys.
CREATE INDEX cron_jobs_template ON cron_jobs (namespace, template) WHERE template > '' AND removed_at IS NULL;
CREATE INDEX cron_jobs_labels ON cron_jobs USING gin (labels jsonb_path_ops) WHERE labels <> '{}';
CREATE INDEX cron_jobs_removed ON cron_jobs (key, id) WHERE removed_at IS NOT NULL AND key > '';

-- "namespace/name": it stays when the template is deleted.
ALTER TABLE cron_actions
    ADD COLUMN template text,
    DROP CONSTRAINT cron_actions_check,
    ADD CONSTRAINT cron_actions_of_something CHECK (num_nonnulls(job_id, deployment_id, execution_id, template) > 0);
CREATE INDEX cron_actions_template ON cron_actions (template, id) WHERE template IS NOT NULL;

-- The tick of this attempt had counted as one without success before the attempt was made by hand: it counts once.
ALTER TABLE cron_activations ADD COLUMN settled boolean NOT NULL DEFAULT false;
ALTER TABLE cron_executions ADD COLUMN settled boolean NOT NULL DEFAULT false;
