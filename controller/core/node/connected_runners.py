"""Runners connected to this controller, and which of them gets the next run."""

from heapq import heapify, heappop, heapreplace

from cronring.controller.core import ticks
from cronring.controller.core.model import Job, RunnerInfo
from cronring.controller.core.node.stock import Place, Stock
from cronring.schema.lanes import Grant, LaneKey, LaneKind


class ConnectedRunner:
    """One connected runner. `load`: runs it has, as far as this controller knows; kept by whoever claims and ends.

    `stocks`: of places in its lanes; None if it grants none and takes whatever comes.
    """

    __slots__ = ("draining", "elsewhere", "held", "info", "stocks")

    def __init__(self, info: RunnerInfo) -> None:
        self.info = info
        self.draining = False
        self.held = 0  # claimed (or being claimed) for it by this controller, and not ended
        self.elsewhere = 0  # by other controllers, from its latest beat
        self.stocks: dict[LaneKey, Stock] | None = None if info.sync_verbs is None else {}

    @property
    def load(self) -> int:
        return self.held + self.elsewhere

    def has_place(self, lane: LaneKey) -> bool:
        if self.stocks is None:
            return True
        stock = self.stocks.get(lane)
        return stock is not None and stock.free > 0

    def granted(self, grant: Grant) -> Stock | None:
        """Take a grant. Returns the lane's stock; None if this runner doesn't host that deployment."""
        key = grant.deployment, grant.kind
        if self.stocks is None or grant.deployment not in self.info.deployments:
            return None
        stock = self.stocks.get(key)
        if stock is None:
            stock = self.stocks[key] = Stock(self.info.runner_id, key)
        stock.granted(grant)
        return stock


class ConnectedRunners:
    """By id, and by deployment."""

    __slots__ = ("_hosting", "_sync_verbs", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, ConnectedRunner] = {}
        self._hosting: dict[str, dict[str, ConnectedRunner]] = {}
        self._sync_verbs: dict[str, frozenset[str]] = {}  # of deployments whose runners grant places

    def join(self, info: RunnerInfo, held: int) -> ConnectedRunner:
        """A runner connected; one with the same id is replaced (its new stream came before the old one's end)."""
        self.leave(info.runner_id)
        runner = self.by_id[info.runner_id] = ConnectedRunner(info)
        runner.held = held
        for deployment in info.deployments:
            self._hosting.setdefault(deployment, {})[info.runner_id] = runner
        self._sync_verbs.update(info.sync_verbs or ())
        return runner

    def leave(self, runner_id: str) -> ConnectedRunner | None:
        runner = self.by_id.pop(runner_id, None)
        if runner is None:
            return None
        for deployment in dict.fromkeys(runner.info.deployments):
            hosting = self._hosting[deployment]
            hosting.pop(runner_id, None)
            if not hosting:
                del self._hosting[deployment]
                self._sync_verbs.pop(deployment, None)
        return runner

    def beat(self, runner_id: str, draining: bool, running: int) -> bool:
        """Whether it drains as of now."""
        runner = self.by_id.get(runner_id)
        if runner is None:
            return False
        began, runner.draining = draining and not runner.draining, draining
        runner.elsewhere = max(0, running - runner.held)
        return began

    def change_held(self, runner_id: str, difference: int) -> None:
        runner = self.by_id.get(runner_id)
        if runner is not None:
            runner.held = max(0, runner.held + difference)

    def lane(self, job: Job) -> LaneKey:
        """The lane in which its runners would run it."""
        sync_verbs = self._sync_verbs.get(job.deployment, ())
        if job.verb in sync_verbs:
            return job.deployment, LaneKind.SYNC
        quota = bool(job.policy) and ticks.has_quota(job)
        return job.deployment, LaneKind.QUOTA if quota else LaneKind.ASYNC

    def valid(self, place: Place) -> bool:
        """Whether the place may be used: its runner is still connected, and has begun no new epoch."""
        runner = self.by_id.get(place.runner_id)
        if runner is None or place.stock is None:
            return runner is not None
        stocks = runner.stocks
        return stocks is not None and stocks.get(place.stock.key) is place.stock and place.stock.epoch == place.epoch

    def hosting(self, deployment: str) -> list[ConnectedRunner]:
        """Those that take runs of this deployment."""
        return [runner for runner in self._hosting.get(deployment, {}).values() if not runner.draining]


class Picker:
    """Least-loaded choice for one batch: O(log runners) for each run."""

    __slots__ = ("_heaps", "_runners")

    def __init__(self, runners: ConnectedRunners) -> None:
        self._runners = runners
        self._heaps: dict[LaneKey, list[tuple[int, str]]] = {}

    def pick(self, lane: LaneKey) -> Place | None:
        """A place for the next run; None if no runner has one."""
        heap = self._heaps.get(lane)
        if heap is None:
            hosting = self._runners.hosting(lane[0])
            heap = [(runner.load, runner.info.runner_id) for runner in hosting if runner.has_place(lane)]
            heapify(heap)
            self._heaps[lane] = heap
        if not heap:
            return None
        load, runner_id = heap[0]
        stocks = self._runners.by_id[runner_id].stocks
        if stocks is None:
            if len(heap) > 1:
                heapreplace(heap, (load + 1, runner_id))
            return Place(runner_id)
        stock = stocks[lane]
        epoch = stock.take()
        if not stock.free:
            heappop(heap)
        elif len(heap) > 1:
            heapreplace(heap, (load + 1, runner_id))
        return Place(runner_id, stock, epoch)
