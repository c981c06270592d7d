"""Who is there: leases of controllers, and when runners were last seen."""

from cronring.controller.core.model import CancelRequest, LeaseRenewal, RunnerInfo
from cronring.controller.ports.store import ControllerInfo
from cronring.controller.store.pool import Database
from cronring.sql.parameters import FindPeers, LeaveRunner, NoteZoneData, RegisterRunner, RemoveController, RenewLease


class LeaseStatements:
    """The part of PostgresStore that is about controllers and runners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def renew_lease(
        self,
        controller: ControllerInfo,
        draining: bool,
        lease_ms: int,
        runner_ids: tuple[str, ...],
        lost_after_ms: int,
        cancelling: tuple[int, ...] = (),
    ) -> LeaseRenewal:
        """Renew the lease and the runners' last_seen_at. Returns what to sweep, and what to cancel besides
        `cancelling`.
        """
        records = await self._database.fetch(
            RenewLease(
                controller_id=controller.controller_id,
                grpc_address=controller.grpc_address,
                peer_address=controller.peer_address,
                http_address=controller.http_address,
                pid=controller.pid,
                version=controller.version,
                zone_data=controller.zone_data,
                draining=draining,
                lease_ms=lease_ms,
                runner_ids=runner_ids,
                lost_after_ms=lost_after_ms,
                cancelling=cancelling,
            )
        )
        database_now, renewed_runners, dead_controllers, lost_runners, overdue_executions, *others = records[0]
        queue_reports, *cancels, controller_ids, grpc_addresses = others
        return LeaseRenewal(
            database_now,
            tuple(renewed_runners),
            tuple(dead_controllers),
            tuple(lost_runners),
            overdue_executions,
            tuple(map(CancelRequest, *cancels)),
            tuple(zip(controller_ids, grpc_addresses, strict=True)),
            queue_reports,
        )

    async def remove_controller(self, controller_id: str) -> None:
        """End the lease. The row goes once nothing unfinished carries its id."""
        await self._database.fetch(RemoveController(controller_id=controller_id))

    async def find_peers(self) -> list[ControllerInfo]:
        """Controllers whose lease is valid, by id."""
        return list(map(ControllerInfo._make, await self._database.fetch(FindPeers())))

    async def note_zone_data(self, version: str) -> None:
        """From now on ticks may be decided by this version of the zones' rules."""
        await self._database.fetch(NoteZoneData(version=version))

    async def register_runner(self, runner: RunnerInfo) -> None:
        """Make or refresh the runner's row; it counts as seen now."""
        told = RegisterRunner(
            runner_id=runner.runner_id, hostname=runner.hostname, pid=runner.pid, version=runner.version,
            deployments=runner.deployments, sync_places=runner.sync_places, async_places=runner.async_places,
        )  # fmt: skip
        await self._database.fetch(told)

    async def runner_left(self, runner_id: str) -> None:
        """The runner drained, and its stream ended. It has left for good, unless it has an unfinished execution."""
        await self._database.fetch(LeaveRunner(runner_id=runner_id))
