"""What each metric counts, in which unit, and what to do about it: the HELP lines of /metrics, by name."""

from typing import Final

_OPERATIONS: Final = "docs/operations.md"

HELP: Final[dict[str, str]] = {
    # Labelled counts
    "build": "Always 1; the labels say which release runs here, by which Python and tzdata, on which PostgreSQL. "
    "More than one value of a label in a cluster: finish the upgrade",
    "claims": "Due ticks that this controller tried to claim, by result. Lost ones were somebody else's, or not due. A "
    "steady rate of lost ones: controllers disagree on who owns what (cronring doctor: ring)",
    "activation_claims": "Claims of retries, manual runs and backfills, by result: won; the job was busy (waits); "
    "superseded, or somebody else's (gone)",
    "activations_started": "Retries, manual runs, backfills and runs after other jobs begun here, by trigger",
    "executions": "Executions whose end this controller committed, by outcome. Alert on the share of failed ones",
    "refused": "Messages that were not allowed, by what was wrong with them. Should stay 0: find out who sends them",
    "store_failures": "Statements that PostgreSQL refused or did not answer, by what they were for. All are tried "
    "again. Read its log, and cronring doctor",
    "log_lines": "Log events by name and level, those left out of the log too. Alert on warning and error: what each "
    f"one means stands in {_OPERATIONS}",
    # Durations
    "claim_lateness_seconds": "How long after a tick's run_at it was claimed. A p99 above 1 s: PostgreSQL or this "
    "process is short of CPU",
    "start_delay_seconds": "How long after its claim a verb's first line ran. A p99 above 1 s: runners are full, or "
    "start children; give them more places",
    "execution_duration_seconds": "How long verbs ran, from their first line to their end",
    "loop_lag_seconds": "How much later than asked for the event loop woke up. A p99 above 0.25 s: a lack of CPU here",
    # The node's counters
    "node_statements": "Statements that the node asked PostgreSQL for, answered or not",
    "node_store_failures": "Answers of PostgreSQL that were errors or never came; the work is tried again",
    "node_claims_attempted": "Ticks sent to PostgreSQL to be claimed, won or not",
    "node_claims_won": "Ticks that this controller claimed, and so dispatched to a runner",
    "node_claims_wasted": "Ticks that it tried to claim and somebody else had; a few after the ring changed are usual",
    "node_claims_early": "Claims that PostgreSQL refused because its clock had not reached the tick; they are repeated",
    "node_backup_claims": "Ticks that a primary did not claim, and its backup did. Steady: the primary is too slow",
    "node_overdue_queries": "Looks of a backup for ticks that a primary left behind, one for each batch that was due",
    "node_dispatched": "Runs sent to runners over their streams, again after an adoption included",
    "node_reports": "Reports of running and ended executions that runners sent here",
    "node_reports_foreign": "Reports of executions claimed for another runner. Should stay 0: an old copy, or a liar",
    "node_reports_decided": "Reports of executions that had ended before; they come in bursts after a controller died",
    "node_ended": "Executions whose end this controller committed, whatever their outcome",
    "node_ends_wasted": "Ends that somebody else had committed first; nothing is lost by them",
    "node_ticks_skipped": "Ticks that this controller, or an order through it, decided not to run, by reason",
    "node_activated": "Retries, manual runs and backfills claimed here",
    "node_adopted": "Executions taken over from a controller that had died or left",
    "node_lost": "Executions ended because their runner was not seen for too long. Look at that runner's host",
    "node_hard_timeouts": "Executions that outlived their timeout and its grace, and were ended without their runner",
    "node_ring_changes": "How often the owners of slots changed, as controllers came, died or left",
    "node_refetches": "How often the jobs due in the next 90 seconds were read anew",
    "node_drills": "Drills in which this controller claimed nothing on purpose",
    # The node's gauges
    "node_window_jobs": "Jobs due in the next 90 seconds that this controller has in memory",
    "node_held": "Executions claimed here that have not ended yet",
    "node_ends_pending": "Results that wait to be committed, of 50,000 at most. Growing: PostgreSQL is slow or away",
    "node_awaiting_runner": "Due jobs without any runner connected here. Start runners of their deployments",
    "node_activations": "Retries, manual runs and backfills due soon that this controller has in memory",
    "node_runners": "Runners connected to this controller. 0 for long: start some, or look at the network",
    "node_jobs_unread": "Due jobs left to newer controllers, as this one can't read all that they say. Upgrade it",
    "node_waiting_for_place": "Due ticks for which no runner has a place. Above 0 for long: give them more places",
    # Who is there
    "members_alive": "Controllers that this one believes to be alive, itself included. Below what you run: one is down",
    "ring_members": "Controllers that own slots, as this one sees it. Should be equal on all",
    "ring_share": "This controller's part of all slots as their primary, from 0 to 1; 1 / members is even",
    "lease_valid": "1 while this controller may claim. 0, and not draining: PostgreSQL or this host is slow or away",
    "draining": "1 while this controller is stopping: it claims nothing, and waits for what runs",
    "in_drill": "1 during a drill, in which this controller claims nothing on purpose",
    # This process
    "runner_streams": "Streams of runners that are open here, registered or not",
    "runner_queue_items": "Runs, acknowledgements and cancellations that wait to be written to runners. Growing: some "
    "don't read",
    "inbox_events": "Events that wait for the node. Above 1,000 for a minute: this process lacks CPU",
    "host_clock_offset_seconds": "How far this host's clock is ahead of PostgreSQL's. 30 or more, either way: NTP. "
    "Minutes: its certificates don't hold",
    "statements_in_flight": "Statements asked of PostgreSQL that it has not answered yet",
    "peer_channels": "Connections to other controllers that are open for gossip",
    "queue_messages": "Messages of a queue that are not done, of the 100 that hold most; 10,000 is that, or more. "
    "Growing: its consumers are too few, too slow or gone (cronring queues list)",
    "queue_oldest_seconds": "How long the oldest message of a queue is there. Alert on it, rather than on their number",
    "queue_dead_letters": "Messages of a queue that are delivered no more. Look why (cronring queues dead), and replay "
    "or remove them",
    "queue_consumers_waiting": "Consumers whose takes wait here for messages, of 1,000 at most",
    "job_watchers": "Callers that follow changes of jobs here, of 10,000 at most",
    "execution_watchers": "Callers that follow changes of executions here, of 10,000 at most",
    "execution_followers": "Callers that follow the output of a run through this controller, of 500 at most",
    "callers_counted": "Tokens, users, hosts and certificates whose latest calls count against their limit here, of "
    "10,000 of each kind at most. Thousands: somebody calls from everywhere",
    "caller_streams": "Calls that last and are open here: watches, outputs that are followed, streams of runners",
    # Who is who
    "certificate_own_expires_seconds": "For how long the certificate of --certs is valid yet. Negative: it has ended, "
    "and no controller or runner takes this one. Below 14 days: cronring certs renew",
    "certificate_public_expires_seconds": "For how long the certificate that callers see at --grpc and --http is valid "
    "yet (--public-certs, else --certs). Negative: it has ended, and callers refuse this controller",
    "issuer_keys_age_seconds": "How long ago keys were fetched from the issuer of JWTs whose fetch is oldest. Above an "
    "hour: it can't be asked, and new keys are unknown here",
    # The audit log
    "audit_log_sealed_rows": "Rows of the audit log that this controller has sealed",
    "audit_log_unsealed_rows": "Rows that were not sealed at its last look, of 10,000 that it counts",
    "audit_log_unsealed_seconds": "The age of the oldest row that is not sealed. Above 60 for 5 minutes: read "
    "audit_log_not_sealed in the logs, or a transaction stays open in this PostgreSQL",
    "audit_log_refusals_waiting": "Refusals that are counted here and not in the audit log yet; each minute at most",
    "audit_log_refusals_dropped": "Refusals that never came into the audit log: PostgreSQL was away as this left",
    # Secrets
    "secrets_stored": "Secrets in the database, as this controller last saw them; none without --secrets-key",
    "secrets_on_other_keys": "Secrets that are encrypted by another key than this controller's current one. Above 0 "
    "for 5 minutes: a rotation does not end (secrets_locked, secrets_not_looked_at)",
    "secrets_locked": "Secrets that this controller can't decrypt. Above 0: give it the key (cronring doctor: "
    "secrets' keys)",
    # Figures
    "figures_folded_executions": "Ended executions that this controller has added to the figures of their jobs",
    "figures_behind_executions": "Executions that the figures don't have yet; 0 where another controller folds "
    "them. Above 100,000 for 10 minutes: a transaction is open for long in this PostgreSQL, or it is overloaded",
    # Webhooks
    "webhook_deliveries_waiting": "Deliveries to webhooks that are due in the whole cluster, as this controller last "
    "counted them. Above 100 for 10 minutes: a receiver is down (cronring webhook deliveries)",
    "webhook_deliveries_retrying": "Due deliveries to webhooks whose receiver has refused at least once",
    "webhook_notices": "Events that this controller has read out of the books for webhooks",
    "webhook_tries_delivered": "Deliveries from here that their receiver took",
    "webhook_tries_retry": "Deliveries from here that failed and will be tried again",
    "webhook_tries_given_up": "Deliveries from here that failed for as long as is tried. Mend the receiver, then "
    "cronring webhook redeliver NAME",
    "webhook_tries_locked": "Deliveries that this controller can't sign, as their secret does not open here: they wait "
    "(cronring doctor: secrets' keys)",
    "webhook_tries_gone": "Deliveries answered with 410 Gone, so that their webhook was disabled",
}
