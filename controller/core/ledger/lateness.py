"""Why did a run begin late? One sentence, from the lives of members and from the run of the job before it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cronring.controller.core.ledger.lives import CONTROLLER, RUNNER, Life, alive, gap_at, gaps
from cronring.controller.core.ledger.why_words import instant, length


def lateness_us(run_at: int, claimed_at: int, started_at: int | None) -> int:
    """`started_at - run_at`, in microseconds. While a run has not reported its start, its claim counts as such."""
    return (claimed_at if started_at is None else started_at) - run_at


class LateRun(NamedTuple):
    """`before_...`: of the run of its job before it; id 0: there is none. `outcome` "": it runs."""

    execution_id: int
    job: str
    slot: int
    deployment: str
    tick: int
    run_at: int
    claimed_at: int
    started_at: int | None
    outcome: str
    controller_id: str
    runner_id: str
    trigger: str
    before_id: int
    before_ended_at: int | None

    @property
    def lateness_us(self) -> int:
        return lateness_us(self.run_at, self.claimed_at, self.started_at)

    @property
    def claimed_late_us(self) -> int:
        """How late it was claimed."""
        return self.claimed_at - self.run_at


def why_late(run: LateRun, lives: Sequence[Life], primary: str | None) -> str:
    """`primary`: by the ring of those who held a lease at its run_at; None: nobody did."""
    if run.claimed_late_us * 2 < run.lateness_us:
        began = "began" if run.runner_id else "was put into its queue"
        return (f"It was claimed {length(run.claimed_late_us)} after its run_at, and {began} "
                f"{length(run.lateness_us - run.claimed_late_us)} later: its runner was slow to start it.")  # fmt: skip
    return (
        _by_controllers(run, lives, primary)
        or _by_earlier_run(run)
        or _by_runners(run, lives)
        or _by_primary(run, lives, primary)
        or f"Controller {run.controller_id} claimed it {length(run.claimed_late_us)} after its run_at. Members and "
        "runners were there: it waited for a place, as its runners or a limit were full."
    )


def _by_controllers(run: LateRun, lives: Iterable[Life], primary: str | None) -> str:
    gap = None if primary is not None else gap_at(gaps(lives), run.run_at)  # a primary held a lease: no gap
    if gap is None:
        return ""
    until = "" if gap.until_at is None else f" to {instant(gap.until_at)}"
    return f"No controller held a lease from {instant(gap.from_at)}{until}: nobody could claim it."


def _by_earlier_run(run: LateRun) -> str:
    if not run.before_id or (run.before_ended_at is not None and run.before_ended_at <= run.run_at):
        return ""
    if run.before_ended_at is None or run.before_ended_at > run.claimed_at:
        return ""  # both ran at once: the earlier run did not keep it waiting
    return f"It waited for execution {run.before_id} of its job, which ran until {instant(run.before_ended_at)}."


def _by_runners(run: LateRun, lives: Iterable[Life]) -> str:
    hosts = [life for life in lives if life.kind == RUNNER and run.deployment in life.deployments]
    if not run.runner_id or alive(hosts, RUNNER, run.run_at):
        return ""
    came = min((life.from_at for life in hosts if run.run_at < life.from_at <= run.claimed_at), default=None)
    until = "" if came is None else f" until {instant(came)}"
    return f"No runner that has {run.deployment} was connected{until}."


def _by_primary(run: LateRun, lives: Iterable[Life], primary: str | None) -> str:
    if primary is None or primary == run.controller_id:
        return ""
    mine = [life for life in lives if life.kind == CONTROLLER and life.member == primary and life.spans(run.run_at)]
    claimed = f"{run.controller_id} claimed it in its place"
    for life in mine:
        if life.until_at is not None and life.until_at <= run.claimed_at + _LEASE_US and not life.departed:
            return f"Its primary, {primary}, was lost: its lease ran out at {instant(life.until_at)}. {claimed}."
        if life.until_at is not None and life.until_at <= run.claimed_at + _LEASE_US:
            return f"Its primary, {primary}, left at {instant(life.until_at)}. {claimed}."
    return f"Its primary, {primary}, did not claim it: {claimed}."


_LEASE_US = 10_000_000  # a dead controller's lease outlives it by less
