"""What a node counts. The shell shows them as metrics; nothing in the core depends on them."""

from dataclasses import dataclass


@dataclass(slots=True)
class Stats:
    """Counters since the start, and a few gauges that Node.stats() fills in."""

    statements: int = 0
    store_failures: int = 0
    claims_attempted: int = 0
    claims_won: int = 0
    claims_wasted: int = 0
    claims_early: int = 0
    backup_claims: int = 0
    overdue_queries: int = 0
    dispatched: int = 0
    reports: int = 0
    reports_foreign: int = 0  # of executions that were claimed for another runner, or under another claim
    reports_decided: int = 0  # of those that had ended before, or never were
    ended: int = 0
    ends_wasted: int = 0
    activated: int = 0
    adopted: int = 0
    lost: int = 0
    hard_timeouts: int = 0
    ring_changes: int = 0
    refetches: int = 0
    drills: int = 0
    # gauges
    window_jobs: int = 0
    held: int = 0
    ends_pending: int = 0
    awaiting_runner: int = 0
    activations: int = 0
    runners: int = 0
    waiting_for_place: int = 0
    jobs_unread: int = 0  # left to controllers that read all of their policies
