"""Runners connected to this controller, and which of them gets the next run."""

from heapq import heapify, heapreplace

from controller.core.model import RunnerInfo


class Session:
    """One connected runner. `load`: runs it has, as far as this controller knows; kept by whoever claims and ends."""

    __slots__ = ("draining", "elsewhere", "held", "info")

    def __init__(self, info: RunnerInfo) -> None:
        self.info = info
        self.draining = False
        self.held = 0  # claimed (or being claimed) for it by this controller, and not ended
        self.elsewhere = 0  # by other controllers, from its latest beat

    @property
    def load(self) -> int:
        return self.held + self.elsewhere


class Sessions:
    """By id, and by deployment."""

    __slots__ = ("_hosting", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}
        self._hosting: dict[str, dict[str, Session]] = {}

    def join(self, info: RunnerInfo, held: int) -> Session:
        """A runner connected; one with the same id is replaced (its new stream came before the old one's end)."""
        self.leave(info.runner_id)
        session = self.by_id[info.runner_id] = Session(info)
        session.held = held
        for deployment in info.deployments:
            self._hosting.setdefault(deployment, {})[info.runner_id] = session
        return session

    def leave(self, runner_id: str) -> Session | None:
        session = self.by_id.pop(runner_id, None)
        if session is None:
            return None
        for deployment in dict.fromkeys(session.info.deployments):
            hosting = self._hosting[deployment]
            hosting.pop(runner_id, None)
            if not hosting:
                del self._hosting[deployment]
        return session

    def beat(self, runner_id: str, draining: bool, running: int) -> None:
        session = self.by_id.get(runner_id)
        if session is not None:
            session.draining = draining
            session.elsewhere = max(0, running - session.held)

    def change_held(self, runner_id: str, difference: int) -> None:
        session = self.by_id.get(runner_id)
        if session is not None:
            session.held = max(0, session.held + difference)

    def hosting(self, deployment: str) -> list[Session]:
        """Those that take runs of this deployment."""
        return [session for session in self._hosting.get(deployment, {}).values() if not session.draining]


class Picker:
    """Least-loaded choice for one batch: O(log runners) for each run."""

    __slots__ = ("_heaps", "_sessions")

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._heaps: dict[str, list[tuple[int, str]]] = {}

    def pick(self, deployment: str) -> str | None:
        """The id of the runner that gets the next run; None if there is none."""
        heap = self._heaps.get(deployment)
        if heap is None:
            heap = [(session.load, session.info.runner_id) for session in self._sessions.hosting(deployment)]
            heapify(heap)
            self._heaps[deployment] = heap
        if not heap:
            return None
        load, runner_id = heap[0]
        if len(heap) > 1:
            heapreplace(heap, (load + 1, runner_id))
        return runner_id
