"""A declared job that came back is paused or cancelled as the one of its key was that had been removed before."""

from cronring.controller.store.memory.rows import StoredAction, StoredJob
from cronring.controller.store.memory.tables import MemoryTables


def check_taken_over(store: MemoryTables, slack_us: int) -> None:
    """`slack_us`: how far instants may be apart, as the clock was set. A removed row stays as it was left."""
    kept = {row.job_id: row for row in store.actions if row.action.startswith("keep_")}
    before: dict[str, StoredJob] = {}
    for job in sorted(store.jobs.values(), key=lambda row: row.job_id):
        if job.source == "annotation":
            _judge(job, before.get(job.key), kept.get(job.job_id), store.spans[job.job_id][0].from_at, slack_us)
            before[job.key] = job


def _judge(job: StoredJob, left: StoredJob | None, action: StoredAction | None, came_at: int, slack_us: int) -> None:
    story = f"{job.key} ({job.job_id}), which came back at {came_at}: {action}; what was left: {left}"
    if left is None or (left.cancelled_at is None and left.paused_at is None):
        assert action is None, f"nothing was to be taken over by {story}"
    elif left.cancelled_at is not None:
        assert action is not None, f"it was cancelled: {story}"
        assert action.action == "keep_cancelled", f"it was cancelled: {story}"
    elif left.paused_until is None or left.paused_until > max(came_at + slack_us, left.last_tick or 0):
        assert action is not None, f"it was paused: {story}"
        assert (action.action, action.details["by"]) == ("keep_paused", left.paused_by), f"it was paused: {story}"
    elif left.paused_until < came_at - slack_us:
        assert action is None, f"its pause was over: {story}"
