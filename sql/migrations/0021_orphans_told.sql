-- Webhooks are told of jobs that were orphaned, or brought back: their actions wait here until the notifier has taken them.
-- It follows no ids of actions, so that how far it has read still means the same to the release before.
ALTER TABLE cron_actions ADD COLUMN untold boolean NOT NULL DEFAULT false;
CREATE INDEX cron_actions_untold ON cron_actions (id) WHERE untold;
-- works with: 20
