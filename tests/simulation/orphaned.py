"""Jobs made by hand are there until an order deletes them; without their verb they don't run, and the books say so."""

from itertools import pairwise

from cronring.controller.store.memory.rows import SkipRow
from cronring.controller.store.memory.tables import MemoryTables
from cronring.schema.execution import SkipReason


def check_orphans(store: MemoryTables, slack_us: int) -> None:
    """`slack_us`: how far instants may be apart, as the clock was set."""
    deleted = {action.job_id for action in store.actions if action.action == "delete"}
    for job in store.jobs.values():
        assert job.source != "api" or not job.removed or job.job_id in deleted, f"nobody deleted {job.key}"
        assert not job.orphaned or job.next_tick is None, f"{job.key} is orphaned, and has a next tick"
        assert job.orphaned or job.orphaned_tick is None, f"{job.key} isn't orphaned, and its ticks are kept"
        has_verb = job.deployment.min_replicas > 0 and any(
            verb.name == job.verb for verb in job.deployment.schema.verbs
        )
        assert job.removed or job.orphaned != has_verb, f"{job.key}: is orphaned {job.orphaned}, has a verb {has_verb}"
    for execution in store.executions.values():
        key, at = execution.job.key, execution.claimed_at
        lacking = [
            each for each in _absences(store, execution.job.job_id) if each[0] + slack_us < at < each[1] - slack_us
        ]
        assert not lacking, f"{execution} of {key} was claimed while it had no verb: {lacking}"
    for row in store.skips:
        if row.skipped.reason is SkipReason.NO_VERB:
            assert _lacked_its_verb(store, row, slack_us), f"{row}: its verb was there"


def _lacked_its_verb(store: MemoryTables, row: SkipRow, slack_us: int) -> bool:
    """It was written while its job had no verb, or as that came back; and what was to come isn't in it."""
    absent = any(
        gone - slack_us <= row.decided_at <= back + slack_us and row.skipped.last_tick <= back + slack_us
        for gone, back in _absences(store, row.job_id)
    )
    return absent and row.controller_id == "" and row.skipped.last_tick <= row.decided_at + slack_us


def _absences(store: MemoryTables, job_id: int) -> list[tuple[int, int]]:
    """From when to when it had no verb, in the store's clock."""
    changes = [row for row in store.actions if row.job_id == job_id and row.action in {"orphan", "bring_back"}]
    ends = [*((row.action, row.at) for row in changes), ("", store.now_us())]
    return [(at, until) for (action, at), (_, until) in pairwise(ends) if action == "orphan"]
