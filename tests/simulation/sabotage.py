"""Do the checkers bite? Each protection of the core is taken away in turn, and a seed is known that fails without it.

python -m tests.simulation.sabotage [--only fence,backup] [--seeds 0-200]: hunts for such seeds, and lists them.
`KNOWN` is what test_table_faults.py holds: with the protection the seed's world is sound, without it the checker
says so.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from cronring.controller.core.node import ending
from cronring.controller.core.node.effects import ReportRefusal
from cronring.controller.core.node.ending import Ending
from cronring.controller.core.node.events import ReportsReceived
from cronring.controller.core.node.follow_ups import FollowUps
from cronring.controller.core.node.lease import Lease
from cronring.controller.core.node.refetch import BackupLooks, Refetching
from cronring.controller.core.node.sweeping import Sweeping
from cronring.controller.core.node.verifying import Verifying
from cronring.controller.store.memory.rows import StoredJob
from cronring.controller.store.memory.store import MemoryStore
from cronring.runner.core.clock import DispatchClock
from cronring.runner.core.contact import Contact
from cronring.runner.core.ledger import RunLedger
from cronring.runner.core.machine import RunnerCore
from tests.simulation.runners import Runner
from tests.simulation.takeover import TakeoverWorld
from tests.simulation.world import World

DRAWN: Final = ""  # as the seed has it
TAKEOVER: Final = "takeover"  # instead of faults: a world in which nothing happens but deaths of controllers


class Sabotage(NamedTuple):
    """`faults`: under which it shows soonest. `takes_away`: what stands in the place of which attributes."""

    name: str
    faults: str
    takes_away: Callable[[], dict[tuple[Any, str], Any]]

    def world(self, seed: int) -> World:
        if self.faults == TAKEOVER:
            return TakeoverWorld(seed)
        if self.faults == DRAWN:
            return World(seed)
        return World(seed, faults=tuple(self.faults.split(",")))

    @contextmanager
    def done(self) -> Iterator[None]:
        """For as long as it lasts."""
        with ExitStack() as stack:
            for (owner, name), replacement in self.takes_away().items():
                stack.enter_context(patch.object(owner, name, replacement))
            yield


def _looks_away(self: BackupLooks) -> None:
    self._window.pop_backup(self._context.now_us)
    self._asked_slots.pop_due(self._context.now_ns)


def _not_stopped(self: RunnerCore) -> None:
    self._fenced = True


def _nothing(*_: object, **__: object) -> None:
    """In the place of what would do something."""


def _lease_for_ever() -> dict[tuple[Any, str], Any]:
    """Once it has been held. That nothing is lost whose runner is seen would hold its world alone, and goes, too."""
    return {
        (MemoryStore, "_is_back"): lambda *_: False,
        (Lease, "valid"): property(
            lambda self: self.held_since_ns is not None or self.valid_until_ns > self._context.now_ns
        ),
        (Lease, "next_deadline"): lambda self: self._renew_at_ns if self._renewing is None else None,
        (MemoryStore, "_lease_is_valid"): lambda *_: True,
    }


def _acknowledged_at_once() -> dict[tuple[Any, str], Any]:
    received = Ending.received

    def receive(self: Ending, event: ReportsReceived) -> None:
        received(self, event)
        for report in event.reports:
            self._refuse(event.runner_id, report.execution_id, ReportRefusal.DECIDED)
        self._tell_refused()

    return {(Ending, "received"): receive}


def _ends_not_repeated() -> dict[tuple[Any, str], Any]:
    failed = Ending.failed

    def fail(self: Ending, event: Any) -> None:
        batch = self._ending.get(event.request_id, [])
        failed(self, event)
        for pending in batch:
            self._ready.pop(pending.report.execution_id, None)
        self._settle(batch)

    return {(Ending, "failed"): fail}


def _read_once() -> dict[tuple[Any, str], Any]:
    ask_soon, act = Refetching.ask_soon, Refetching.act

    def ask_once(self: Refetching, *arguments: int) -> None:
        if not self.fetched_once:
            ask_soon(self, *arguments)

    def act_once(self: Refetching) -> FollowUps:
        sent = act(self)
        if sent:
            self._at_ns = None
        return sent

    return {(Refetching, "ask_soon"): ask_once, (Refetching, "act"): act_once}


def _begun_again() -> dict[tuple[Any, str], Any]:
    take = RunLedger.take

    def take_all(self: RunLedger, address: str, runs: list[Any]) -> Any:
        for run in runs:
            self._acked.discard(run.execution_id)
            self.held.pop(run.execution_id, None)
            self.offers.pop(run.execution_id, None)
        return take(self, address, runs)

    return {(RunLedger, "take"): take_all}


def _one_blind_is_enough() -> dict[tuple[Any, str], Any]:
    def any_blind(self: Contact, now_ns: int) -> None:
        blind = [link.blind_since_ns for link in self.links.values() if link.blind_since_ns is not None]
        self.contact_ns = max([self.contact_ns, *(min(since_ns, now_ns) for since_ns in blind)])

    return {(Contact, "_all_blind"): any_blind}


def _dispatches_unseen() -> dict[tuple[Any, str], Any]:
    """What is held is sent to a runner that is back without looking whether it has ended meanwhile."""
    joined = Verifying.dispatch_again

    def join(self: Verifying, executions: list[Any]) -> None:
        joined(self, executions)
        self._holding.dispatch(executions)

    return {(Verifying, "dispatch_again"): join}


def _clock_of_old() -> dict[tuple[Any, str], Any]:
    sample = DispatchClock.sample

    def trust(self: DispatchClock, now_us: int, sent_after_ns: int, now_ns: int) -> None:  # is the point
        sample(self, now_us, 0, now_ns)

    return {(DispatchClock, "sample"): trust}


SABOTAGES: Final = (
    # Who may claim, and who may say that somebody is lost
    Sabotage("lease of whoever declares", "database_away,cut_runner", lambda: {
        (Sweeping, "_may_declare_lost"): lambda _: True, (Sweeping, "_had_time_to_return"): lambda _: True,
    }),
    Sabotage("steady clock before lost", "step_clock_far", lambda: {
        (Sweeping, "_may_declare_lost"): lambda self: self._had_time_to_return(),
    }),
    Sabotage("lease before anything", "silence_controller,stop_controller,cut_controllers", _lease_for_ever),
    Sabotage("lost only while unseen", DRAWN, lambda: {
        (MemoryStore, "_is_back"): lambda *_: False,
    }),
    Sabotage("a claim only of what is due", "kill_controller,cut_controllers", lambda: {
        (StoredJob, "is_due"): lambda row, *_: row.next_run_at is not None and not row.executing,
    }),
    Sabotage("a job that runs isn't claimed", "stop_controller,cut_controllers", lambda: {
        (StoredJob, "full"): property(lambda _: False),
    }),
    # What must not be forgotten
    Sabotage("doubt after a lost answer", "connection_storm,crash_database", lambda: {(Sweeping, "doubt"): _nothing}),
    Sabotage("adoption", "kill_controller,database_slow", lambda: {(Sweeping, "adopt_from"): _nothing}),
    Sabotage("ends are repeated", "connections_break", _ends_not_repeated),
    Sabotage("acknowledged after the commit", "kill_controller,database_away", _acknowledged_at_once),
    Sabotage("backup", TAKEOVER, lambda: {(BackupLooks, "act"): _looks_away}),
    Sabotage("refetch", "kill_controller,cut_controllers", _read_once),
    Sabotage("looked up when its runner is back", "flap,cut_runner", lambda: {(Verifying, "dispatch_again"): _nothing}),
    # Runners
    Sabotage("fence", "cut_runner", lambda: {
        (RunnerCore, "_fence"): _not_stopped, (Runner, "_fence_children"): _nothing,
    }),
    Sabotage("children's fence", "stop_runner", lambda: {(Runner, "_fence_children"): _nothing}),
    Sabotage("once on the runner", "kill_controller", _begun_again),
    Sabotage("all must be blind", "cut_controller_from_database,cut_runner", _one_blind_is_enough),
    Sabotage("whose report it is", "lie", lambda: {(ending, "_belongs"): lambda *_: True}),
    Sabotage("a clock that was set back", "shake_clock", _clock_of_old),
)  # fmt: skip
BY_NAME: Final = {sabotage.name: sabotage for sabotage in SABOTAGES}
# By name: the seed, and what is said of its world. Some protections are not here, because others stand behind them: a
# result that is not offered again is asked for by whoever adopts.
KNOWN: Final[dict[str, tuple[int, str]]] = {
    "lease of whoever declares": (12, "lost: "),
    "steady clock before lost": (12, "lost: "),
    "lease before anything": (137, "no overlap: "),
    "lost only while unseen": (2_000_527, "no overlap: "),
    "a claim only of what is due": (0, "cron_executions_once"),
    "a job that runs isn't claimed": (0, "no overlap: "),
    "doubt after a lost answer": (162, "stuck: execution"),
    "adoption": (0, "stuck: execution"),
    "ends are repeated": (3, "result lost: "),
    "acknowledged after the commit": (12, "result lost: "),
    "backup": (0, "late: "),
    "refetch": (4, "stuck: "),
    "looked up when its runner is back": (0, "stuck: execution"),
    "fence": (38, "no overlap: "),
    "children's fence": (51, "no overlap: "),
    "once on the runner": (0, "once: "),
    "all must be blind": (19, "lost: "),
    "whose report it is": (1, "no overlap: "),
    "a clock that was set back": (12, "not begun: "),
}


def found(sabotage: Sabotage, seed: int) -> str:
    """What is wrong with the world of this seed once the protection is gone; "": nothing."""
    with sabotage.done():
        try:
            sabotage.world(seed).run()
        except Exception as error:  # a core that breaks down is found, too
            return f"{type(error).__name__} {error}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--seeds", default="0-60")
    arguments = parser.parse_args()
    first, last = arguments.seeds.split("-")
    only = [name for name in arguments.only.split(",") if name]
    missing = 0
    for sabotage in SABOTAGES:
        if only and sabotage.name not in only:
            continue
        seeds = range(int(first), int(last) + 1)
        hit = next(((seed, why) for seed in seeds if (why := found(sabotage, seed))), None)
        missing += hit is None
        sys.stdout.write(f"{sabotage.name}: {hit and f'{hit[0]}, {hit[1][:110]!r}'}\n")
        sys.stdout.flush()
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
