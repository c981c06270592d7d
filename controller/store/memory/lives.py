"""Lives of controllers and runners, in memory: what triggers of `controllers` and `runners` write in PostgreSQL."""

from typing import Final

from cronring.controller.core.ledger.lives import CONTROLLER, RUNNER, Life
from cronring.controller.store.memory.rows import StoredController, StoredRunner
from cronring.controller.store.memory.tables import MemoryTables

_MAY_BE_AWAY_US: Final = 10_000_000  # a runner


class MemoryLives(MemoryTables):
    """Implements controller.ports.history.Lives."""

    def _held_since(self, controller_id: str) -> int:
        """Of a controller that renews its lease now: since when it has had it."""
        now, before = self.now_us(), self.controllers.get(controller_id)
        if before is None:
            return now
        if before.lease_expires_at > now:
            return before.held_since
        self._controller_lived(before)
        return now

    def _seen_since(self, runner_id: str) -> int:
        """Of a runner that is seen now: since when it has been."""
        now, before = self.now_us(), self.runners.get(runner_id)
        if before is None:
            return now
        if before.left_at is None and before.last_seen_at >= now - _MAY_BE_AWAY_US:
            return before.held_since
        self._runner_lived(before)
        return now

    def _controller_lived(self, row: StoredController) -> None:
        self.lives.append(_of_controller(row)._replace(until_at=row.lease_expires_at))

    def _runner_lived(self, row: StoredRunner) -> None:
        self.lives.append(_of_runner(row)._replace(until_at=_end_of(row)))

    async def list_lives(self, since: int, until: int, lost_after_ms: int) -> list[Life]:
        """See cronring.controller.ports.history.Lives. Here all are kept."""
        now = self.now_us()
        ended = [life for life in self.lives if life.until_at is not None and life.until_at >= since]
        controllers = [
            _of_controller(row)._replace(until_at=None if row.lease_expires_at > now else row.lease_expires_at)
            for row in self.controllers.values()
            if row.lease_expires_at >= since
        ]
        runners = [
            _of_runner(row)._replace(until_at=None if _goes_on(row, now - lost_after_ms * 1_000) else _end_of(row))
            for row in self.runners.values()
            if _end_of(row) >= since
        ]
        return [life for life in (*ended, *controllers, *runners) if life.from_at <= until]


def _goes_on(row: StoredRunner, heard_since: int) -> bool:
    return row.left_at is None and row.last_seen_at >= heard_since


def _end_of(row: StoredRunner) -> int:
    return row.last_seen_at if row.left_at is None else row.left_at


def _of_controller(row: StoredController) -> Life:
    info = row.info
    return Life(CONTROLLER, info.controller_id, row.held_since, None, row.draining, info.grpc_address, info.version)


def _of_runner(row: StoredRunner) -> Life:
    info = row.info
    return Life(
        RUNNER, info.runner_id, row.held_since, None, row.left_at is not None, info.hostname, info.version,
        info.deployments,
    )  # fmt: skip
