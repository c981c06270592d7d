"""The past: the ring of the controllers that held a lease, runs with why they were late, and a timeline."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cronring.controller.core.ledger.happenings import Happened, of_deeds, of_lives, of_troubles
from cronring.controller.core.ledger.lateness import LateRun, why_late
from cronring.controller.core.ledger.lives import CONTROLLER, RUNNER, Life, alive
from cronring.controller.core.node.ring import Owners, Ring
from cronring.controller.ports.history import History
from cronring.controller.ports.reads import ExecutionRow, Namespaces, within

RUNS_MAX: Final = 200
HOUR_US: Final = 3_600_000_000


class MomentThen(NamedTuple):
    """`late`: each with why. `known_since`: of lives; `looked_to`: of runs."""

    members: list[Life]
    ring: Ring
    runners: list[Life]
    running: list[ExecutionRow]
    late: list[tuple[LateRun, str]]
    known_since: int | None
    looked_to: int | None


class Timeline(NamedTuple):
    """The latest first. `looked_to`: nothing older than this instant was looked at; None: all was."""

    happenings: list[Happened]
    looked_to: int | None


class Past:
    """Every method raises cronring.controller.errors.StoreUnavailable or StoreError."""

    def __init__(self, history: History) -> None:
        self._history = history

    async def moment(self, at: int, namespaces: Namespaces) -> MomentThen:
        """How the cluster stood at an instant."""
        # An hour around it: a run may have been late because of a controller that had gone, or came later.
        lives = await self._history.lives(at - HOUR_US, at + HOUR_US)
        runs = await self._history.runs_at(at, namespaces, RUNS_MAX)
        members = alive(lives, CONTROLLER, at)
        rings = _Rings(lives)
        late = [(run, why_late(run, lives, rings.owners(run.slot, run.run_at)[0])) for run in runs.late]
        return MomentThen(
            members, rings.ring(at), alive(lives, RUNNER, at), runs.running, late, await self._history.known_since(),
            runs.looked_to,
        )  # fmt: skip

    async def owners(self, slot: int, at: int) -> Owners:
        """Primary and backup of a slot at an instant."""
        return _Rings(await self._history.lives(at, at)).owners(slot, at)

    async def timeline(self, since: int, until: int, namespaces: Namespaces) -> Timeline:
        """What happened from `since` to `until`."""
        # An hour more: a controller that was there within that hour "comes back", others "join".
        lives = await self._history.lives(since - HOUR_US, until)
        troubles, looked_to = await self._history.troubles(since, until, namespaces)
        deeds, deeds_to = await self._history.deeds(since, until, namespaces)
        found = [*of_lives(list(_shown(lives, namespaces))), *of_troubles(troubles), *of_deeds(deeds)]
        within = {each.position: each for each in found if since <= each.at <= until}
        known = [instant for instant in (looked_to, deeds_to) if instant is not None]
        return Timeline([within[position] for position in sorted(within, reverse=True)], max(known, default=None))


class _Rings:
    """Rings at some instants. Each ring is built once for the same holders of leases."""

    def __init__(self, lives: Iterable[Life]) -> None:
        self._lives = list(lives)
        self._rings: dict[tuple[str, ...], Ring] = {}

    def ring(self, at: int) -> Ring:
        members = tuple(life.member for life in alive(self._lives, CONTROLLER, at))
        if members not in self._rings:
            self._rings[members] = Ring.build(members)
        return self._rings[members]

    def owners(self, slot: int, at: int) -> Owners:
        return self.ring(at).owners(slot)


def _shown(lives: Iterable[Life], namespaces: Namespaces) -> Iterator[Life]:
    return (life for life in lives if life.kind == CONTROLLER or hosted(life, namespaces) is not None)


def hosted(life: Life, namespaces: Namespaces) -> tuple[str, ...] | None:
    """A runner's deployments in these namespaces; None: it has none there, so the caller may not see the runner."""
    found = tuple(key for key in life.deployments if within(namespaces, key))
    return found if found or namespaces is None else None
