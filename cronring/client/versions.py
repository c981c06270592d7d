"""What the API tells of the versions of modules, as plain values like those of `model`."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Deployment:
    """One version of a module."""

    key: str
    namespace: str
    module: str
    digest: str
    active: bool
    min_replicas: int
    created_at: datetime | None
    runners: int  # alive ones that host it
    jobs: int
    schema_text: str
    activated_at: datetime | None  # the latest time
    deactivated_at: datetime | None
    etag: str = ""  # for `activate` and `kill`: also of which version is active; not from `list`


@dataclass(frozen=True, slots=True)
class Misfit:
    """A job whose runs would fail, and why its payload is none for its verb."""

    key: str
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a deployment changed. `created` False: this digest was already the active one."""

    deployment: Deployment
    created: bool
    jobs_added: tuple[str, ...]
    jobs_removed: tuple[str, ...]
    jobs_carried_over: tuple[str, ...]
    jobs_orphaned: tuple[str, ...] = ()  # made by `jobs create`, and without their verb now
    jobs_back: tuple[str, ...] = ()  # orphaned before, and with their verb again
    jobs_misfit: tuple[Misfit, ...] = ()  # of a dry run: made by `jobs create`, and their payload would no longer fit


@dataclass(frozen=True, slots=True)
class Activated:
    """What an activation changed. `activated` False: it was the active one. `previous`: whose place it took.

    `previous_running`: executions of the module's other versions that go on to their end, on those' runners.
    """

    deployment: Deployment
    activated: bool
    previous: Deployment | None
    previous_running: int
    jobs_added: tuple[str, ...]
    jobs_removed: tuple[str, ...]
    jobs_carried_over: tuple[str, ...]
    jobs_orphaned: tuple[str, ...] = ()
    jobs_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Killed:
    """What ending a deployment did: its declared jobs are removed, those that `jobs create` made are orphaned."""

    deployment: Deployment
    jobs_removed: tuple[str, ...]
    jobs_orphaned: tuple[str, ...]
