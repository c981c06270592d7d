"""Rules about what the tables say of the work: leases, runners, what is overdue, what waits."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from cronring.controller.core.doctor.finding import Finding, found, listed, problem, warning
from cronring.schema.duration import measured
from cronring.schema.queues import puts_messages

OVERDUE_RUN_MS: Final = 15_000  # past the hard timeout, and after leases and runners had their time
PLAIN_KEY: Final = "plain"  # as cronring/trust/envelopes.py has it, which this may not import
LATE_DELIVERY_MS: Final = 600_000
UNREAD_MS: Final = 60_000


class LeaseState(NamedTuple):
    """A row of `controllers`. `left_ms` is negative once the lease is over."""

    id: str
    grpc_address: str
    version: str
    draining: bool
    left_ms: int
    unfinished: int


class RunnerLease(NamedTuple):
    """`unfinished`: executions that are lost when the runner is."""

    id: str
    hostname: str
    pid: int
    seen_ms: int
    unfinished: int
    has_left: bool = False  # drained, with nothing unfinished


class DeploymentState(NamedTuple):
    """An active deployment. `jobs` None: none of its jobs has a tick to come."""

    key: str
    min_replicas: int
    runners: int
    jobs: int | None
    due_ms: int | None


class OverdueExecution(NamedTuple):
    id: int
    job: str
    runner_id: str
    over_ms: int


class OverdueTicks(NamedTuple):
    """Overdue jobs of one deployment. `limited`: how many of them wait because a limit is full."""

    deployment: str
    jobs: int
    over_ms: int
    job: str
    limited: int
    runners: int


class FullLimit(NamedTuple):
    """A full limit. With `label`: `full` of its values are full, and `running` is the sum of their runs."""

    namespace: str
    module: str
    label: str
    max_concurrent: int
    running: int
    full: int = 1

    @property
    def seen(self) -> str:
        group = f"{self.namespace}/{self.module}"
        if self.label:
            return f"{self.full} values of {self.label} in {group} run {self.max_concurrent} at once each, their limit"
        return f"{group} runs {self.running} of {self.max_concurrent} at once"

    @property
    def command(self) -> str:
        by_label = f" --by label:{self.label}" if self.label else ""
        return f"cronring limits set {self.namespace}/{self.module}{by_label} --max-concurrent ..."


class Orphans(NamedTuple):
    """Jobs made by hand that wait until a version has their verb again. `key`: of one of them."""

    namespace: str
    module: str
    verb: str
    jobs: int
    key: str


class WebhookState(NamedTuple):
    """`unread_ms`: how long nobody has read the books for webhooks, negative while one does. None: nobody has to."""

    name: str
    disabled: bool
    disabled_reason: str
    waiting: int
    oldest_ms: int | None
    attempts: int | None
    error: str
    unread_ms: int | None


class EncryptedSecrets(NamedTuple):
    """How many secrets one key encrypts. `key_id` PLAIN_KEY: these are not encrypted."""

    key_id: str
    secrets: int


def check_leases(leases: Sequence[LeaseState]) -> Finding:
    """By PostgreSQL's rows alone, so the check works even if no controller answers."""
    held = [each for each in leases if each.left_ms > 0 and not each.draining]
    troubles = []
    if not held:
        troubles.append(problem("no controller holds a lease: no tick is claimed",
                                "Start controllers (`cronring controller`), or read their logs."))  # fmt: skip
    elif len(held) == 1:
        troubles.append(warning(f"only one controller holds a lease ({held[0].id}): nobody takes over when it dies",
                                "Start at least one more, on another machine."))  # fmt: skip
    for each in leases:
        if each.left_ms <= 0 and not each.draining:
            seen = f"the lease of {each.id} ({each.grpc_address}) is over for {measured(-each.left_ms)}"
            if each.unfinished:
                seen += f", and {each.unfinished} executions still carry its id"
            troubles.append((problem if each.unfinished and each.left_ms < -OVERDUE_RUN_MS else warning)(
                seen, "It was killed, stands still, or is cut off from PostgreSQL: look at its process and its log. "
                "Others take over by themselves, and its row goes a minute later."))  # fmt: skip
    shortest_ms = min((each.left_ms for each in held), default=0)
    return found("leases", troubles, f"{len(held)} held, the shortest for {measured(shortest_ms)} more")


def check_runner_leases(runners: Sequence[RunnerLease], lost_after_ms: int) -> Finding:
    staying = [each for each in runners if not each.has_left]
    alive = [each for each in staying if each.seen_ms < lost_after_ms]
    troubles = [
        problem(f"runner {each.id} ({each.hostname}, pid {each.pid}) was not seen for {measured(each.seen_ms)}, and "
                f"{each.unfinished} executions on it are not declared lost",
                "Some controller must hold a lease, unbroken, for that: see `leases`.")
        for each in staying if each.unfinished and each.seen_ms > lost_after_ms + OVERDUE_RUN_MS
    ]  # fmt: skip
    dead, left = len(staying) - len(alive), len(runners) - len(staying)
    counts = [f"{len(alive)} alive", *([f"{dead} dead"] if dead else []), *([f"{left} left"] if left else [])]
    return found("runners", troubles, ", ".join(counts) + (" in the last day" if dead or left else ""))


def check_deployments(deployments: Sequence[DeploymentState]) -> Finding:
    troubles = []
    for each in deployments:
        remedy = f"Start one that hosts this version: `cronring runner FILE` (`cronring deployments get {each.key}`)."
        if not each.runners and each.jobs:
            due = "" if each.due_ms is None else f", the next tick {_when(each.due_ms)}"
            seen = f"{each.key} has no runner: none of its {each.jobs} jobs runs{due}"
            troubles.append(problem(seen, remedy))
        elif each.runners < each.min_replicas and each.jobs:
            seen = f"{each.key} has {each.runners} runners, fewer than its min_replicas {each.min_replicas}"
            troubles.append(warning(seen, remedy))
    return found("deployments", troubles, f"{len(deployments)} active, each with a runner for its jobs")


def _when(due_ms: int) -> str:
    return f"in {measured(due_ms)}" if due_ms >= 0 else f"due for {measured(-due_ms)}"


def check_overdue_executions(overdue: Sequence[OverdueExecution]) -> Finding:
    troubles = [
        problem(f"execution {each.id} of {each.job} on {each.runner_id} is {measured(each.over_ms)} past its hard "
                "timeout",
                "A controller that holds a lease ends it by itself: see `leases`, and its log for `end_failed`.")
        for each in overdue
    ]  # fmt: skip
    return found("hard timeouts", troubles, "no execution is past its own")


def check_overdue_ticks(overdue: Sequence[OverdueTicks]) -> Finding:
    troubles = []
    for each in overdue:
        seen = f"{each.jobs} jobs of {each.deployment} are due for up to {measured(each.over_ms)} ({each.job}, ...)"
        if each.limited == each.jobs:
            troubles.append(warning(f"{seen}, and wait for a limit", "See `limits`."))
        elif not each.runners and not puts_messages(each.deployment):
            troubles.append(problem(f"{seen}, and have no runner", "See `deployments`."))
        else:
            troubles.append(problem(f"{seen}, and nobody claims them",
                                    "See `leases`, `ring`, `open transactions`. Are its runners full? "
                                    "`cronring why JOB`"))  # fmt: skip
    return found("overdue ticks", troubles, "none")


def check_limits(full: Sequence[FullLimit]) -> Finding:
    troubles = [
        warning(f"{each.seen}: ticks wait",
                f"If that lasts, raise the limit (`{each.command}`), or find what runs for long.")
        for each in full
    ]  # fmt: skip
    return found("limits", troubles, "none is full")


def check_orphans(orphans: Sequence[Orphans]) -> Finding:
    troubles = [
        warning(f"{each.jobs} jobs made by hand ({each.key}, ...) are orphaned: no active version of "
                f"{each.namespace}/{each.module} has their verb {each.verb}",
                "Deploy a version that has it, or `cronring rollback`; `cronring jobs list --status orphaned` names "
                "them, `cronring jobs delete` gives one up.")
        for each in orphans
    ]  # fmt: skip
    return found("orphaned jobs", troubles, "none")


def check_webhooks(states: Sequence[WebhookState]) -> Finding:
    troubles = []
    for each in states:
        if each.disabled:
            troubles.append(warning(f"webhook {each.name} is disabled: {each.disabled_reason or 'by hand'}",
                                    f"Mend its receiver, then `cronring webhook enable {each.name}`."))  # fmt: skip
        elif each.waiting and each.oldest_ms is not None and each.oldest_ms > LATE_DELIVERY_MS:
            seen = f"webhook {each.name} has {each.waiting} undelivered, the oldest for {measured(each.oldest_ms)}"
            troubles.append(warning(f"{seen}: {each.error or 'not tried yet'}",
                                    f"Look at its receiver: `cronring webhook deliveries {each.name}`."))  # fmt: skip
    unread_ms = max((each.unread_ms for each in states if each.unread_ms is not None), default=0)
    if unread_ms > UNREAD_MS and any(not each.disabled for each in states):
        troubles.append(problem(f"nobody has read the books for webhooks for {measured(unread_ms)}",
                                "A controller does, if it can: look for `books_not_read` in its log."))  # fmt: skip
    names = listed([each.name for each in states])
    return found("webhooks", troubles, f"{len(states)}: {names}" if states else "none")


def check_secrets(encrypted: Sequence[EncryptedSecrets]) -> Finding:
    """Which keys encrypt the secrets, by the database alone. Only controllers know whether they have those keys."""
    troubles = [
        warning(f"{each.secrets} secrets are not encrypted",
                "Give all controllers --secrets-key: then these are encrypted by themselves.")
        for each in encrypted if each.key_id == PLAIN_KEY
    ]  # fmt: skip
    by_key = [f"{each.secrets} by key {each.key_id}" for each in encrypted if each.key_id != PLAIN_KEY]
    if len(by_key) > 1:
        troubles.append(warning(f"a rotation is not over: {listed(by_key)}",
                                "Keep all these keys until one is left. If it takes longer than a minute, see "
                                "`secrets' keys`, and the controllers' logs."))  # fmt: skip
    return found("secrets", troubles, listed(by_key) or "none")
