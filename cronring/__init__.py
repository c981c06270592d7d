"""Write a verb, put a schedule on it. Standard library only: this is what runs inside an author's own process.

from cronring import Context, cron, every, verb

@cron("0 6 1 * *", timeout="5m")
async def close_month(ctx: Context) -> None: ...
"""

TYPE_CHECKING = False  # as type checkers know it; `typing` itself is a quarter of what an import of this costs
if TYPE_CHECKING:
    from cronring.context import Context, VerbStopped
    from cronring.declare import cron, every, manual, once, verb
    from cronring.jobs import JobInfo, JobKey, JobNotFound, JobRefused, JobsError, JobsUnavailable

__all__ = [
    "Context",
    "JobInfo",
    "JobKey",
    "JobNotFound",
    "JobRefused",
    "JobsError",
    "JobsUnavailable",
    "VerbStopped",
    "cron",
    "every",
    "manual",
    "once",
    "verb",
]


def __getattr__(name: str) -> object:
    # Imported only when a name is used: the command line lives in this package, and must hear Ctrl-C early.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cronring import context, declare, jobs  # noqa: PLC0415  (this is what the function is for)

    home = jobs if name.startswith("Job") else context if name in ("Context", "VerbStopped") else declare
    value: object = getattr(home, name)
    globals()[name] = value
    return value
