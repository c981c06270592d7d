"""PostgreSQL fails over under Patroni: synchronous replication, three members, one etcd. In `make soak` only."""

import signal
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

from tests.faults.row import row
from tests.faults.stage import Stage
from tests.integration.cluster.trial import audit_when_settled
from tests.support.cluster import Cluster
from tests.support.patroni import TTL_S, Patroni

PAUSE_S = 6.0
NEXT_RUN_S = 60.0
STILL_S = 10.0  # for how long two take writes
# From the fault to the next run: the key runs out, a standby is promoted, another becomes synchronous, and statements
# that wait for the old primary give up (10 s).
PAUSE_MAX_S = 2 * TTL_S + 15.0


def _missing() -> str:
    lacking = Patroni.missing()
    return f"needs Debian's {lacking}" if lacking else ""


@row(
    "patroni",
    fault="fail-over under Patroni: the primary's host or PostgreSQL dies, its Patroni stands still; switch-over",
    promise="only a pause; audit clean; no committed end lost", short_s=85, long_s=400, needs=_missing, soak_only=True,
)  # fmt: skip
def patroni(stage: Stage) -> None:
    members = stage.stack.enter_context(Patroni())
    members.start()
    stage.tell(f"PostgreSQL 15 under Patroni, ttl {TTL_S} s: {', '.join(members.roles())}")
    cluster = stage.stack.enter_context(Cluster(members.url(), stage.folder, stage.environment))
    stage.cluster = cluster
    cluster.migrate()
    stage.start()
    faults: dict[str, Callable[[Stage, Patroni], None]] = {
        "host dies": _host_dies, "kill -9 of the postmaster": _postmaster_dies,
        "SIGSTOP of Patroni": _patroni_stands_still, "switchover": _switch_over,
    }  # fmt: skip
    pauses: dict[str, list[float]] = {}
    deadline = time.monotonic() + stage.seconds
    for name in _in_turn(list(faults)):
        if time.monotonic() > deadline:
            break
        stage.pass_time(PAUSE_S)
        began = time.time()
        stage.fault(name, members.leader().name)
        faults[name](stage, members)
        pauses.setdefault(name, []).append(_longest_pause(stage, began))
        members.wait_for_all()
        stage.excuse(began, name)
    for name, lasted in pauses.items():
        stage.measured[f"pause, {name}"] = f"{max(lasted):.1f} s"
        stage.expect(max(lasted) < PAUSE_MAX_S, f"{name}: a pause of {max(lasted):.1f} s")
    stage.pass_time(PAUSE_S)
    audit = audit_when_settled(cluster)
    stage.expect(audit.clean, f"cronring audit --thorough: {audit}")


def _in_turn(names: list[str]) -> Iterator[str]:
    while True:
        yield from names


def _host_dies(stage: Stage, members: Patroni) -> None:
    """Power lost: all processes at once. It comes back as a standby."""
    old = members.leader()
    members.kill(old)
    new = members.wait_for_other_leader(old)
    _wait_for_next_run(stage, f"{new.name} leads")
    members.start_member(old)


def _switch_over(stage: Stage, members: Patroni) -> None:
    _, new = members.switch_over()
    _wait_for_next_run(stage, f"{new.name} leads")


def _postmaster_dies(stage: Stage, members: Patroni) -> None:
    """Patroni starts it again, or lets another lead."""
    postmaster = members.leader().postgres()[0]
    postmaster.kill()
    postmaster.wait(timeout=60)
    stage.pass_time(1.0)  # what had been claimed before has begun by then
    _wait_for_next_run(stage, f"{members.leader().name} leads")


def _patroni_stands_still(stage: Stage, members: Patroni) -> None:
    """The old primary goes on taking writes, which no standby confirms any more, until its host is fenced.

    It is not thawed: a Patroni (3.0.2 with etcd 3) that wakes up after such a sleep may take its key back. It may
    rewind those who had led meanwhile, and what they had committed is lost. That is what a watchdog is there for.
    """
    old = members.leader()
    assert old.popen is not None
    old.popen.send_signal(signal.SIGSTOP)
    new = members.wait_for_other_leader(old)
    _wait_for_next_run(stage, f"{new.name} leads, and {old.name} believes that it does")
    stage.pass_time(STILL_S)
    stage.expect(bool(old.postgres()), f"{old.name}'s PostgreSQL ended by itself, so nothing was tried")
    members.kill(old)
    members.start_member(old)


def _wait_for_next_run(stage: Stage, why: str) -> None:
    """What ran on before a standby leads is no proof: a run that begins after that is."""
    now = time.time()
    took = stage.wait_until(f"a run after {why}", lambda: any(r.started_at > now for r in stage.runs()), NEXT_RUN_S)
    stage.tell(f"{why}; the next run {took:.1f} s later")


def _longest_pause(stage: Stage, since: float) -> float:
    """Between two starts of the load's runs, in the journal, from shortly before that instant on."""
    starts = sorted(run.started_at for run in stage.runs() if run.started_at > since - 1.5)
    return max(later - earlier for earlier, later in pairwise(starts))
