"""What a node asks of its store: the one table from effects to calls, and from answers to events.

The performer awaits it on an event loop; virtual time and the simulator run it to its end at once.
"""

from typing import assert_never

from cronring.controller.core.model import Execution
from cronring.controller.core.node import effects, events
from cronring.controller.core.node.events import Event
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.store import ControllerInfo, Store
from cronring.schema.address import is_address

Changes = (
    effects.Claim
    | effects.Enqueue
    | effects.End
    | effects.SkipTicks
    | effects.Activate
    | effects.Adopt
    | effects.RenewLease
)
ReadsOfExecutions = effects.FetchExecutions | effects.FetchHeld | effects.FetchLost | effects.FetchOverdueExecutions
Reads = (
    effects.FindPeers
    | effects.FetchWindow
    | effects.FetchOverdue
    | effects.FetchActivations
    | effects.FetchFollowers
    | effects.FetchQueueReports
    | ReadsOfExecutions
)


async def answer_of(
    effect: Changes | Reads, store: Store, controller: ControllerInfo, settings: ClusterSettings
) -> Event:
    """The event that tells the node of the store's answer. Raises StoreUnavailable and StoreError."""
    if isinstance(effect, Changes):
        return await _change(effect, store, controller, settings)
    return await _read(effect, store, controller.controller_id)


def failure_of(effect: Changes | Reads, error: StoreUnavailable | StoreError) -> Event | None:
    """The event for an effect that failed. None: nobody is told, as it is asked again at the next refetch."""
    if isinstance(effect, effects.FindPeers):
        return None
    # docs/decisions/0057: a statement without an answer may have been committed. The node has to find out.
    return events.StoreFailed(effect.request_id, str(error), isinstance(error, StoreUnavailable))


async def _change(effect: Changes, store: Store, controller: ControllerInfo, settings: ClusterSettings) -> Event:
    own_id = controller.controller_id
    match effect:
        case effects.RenewLease(request_id, draining, runner_ids, cancelling):
            renewal = await store.renew_lease(
                controller,
                draining,
                settings.lease_ms,
                runner_ids,
                settings.runner_lost_after_ms,
                cancelling,
            )
            return events.LeaseRenewed(request_id, renewal)
        case effects.Claim(request_id, requests, hard_grace_ms):
            database_now, results = await store.start_cron_jobs(own_id, requests, hard_grace_ms)
            return events.Claimed(request_id, database_now, results)
        case effects.Enqueue(request_id, enqueue_requests):
            database_now, enqueued = await store.enqueue_cron_jobs(own_id, enqueue_requests)
            return events.Enqueued(request_id, database_now, enqueued)
        case effects.End(request_id, end_requests):
            return events.Ended(request_id, await store.end_cron_jobs(own_id, end_requests))
        case effects.SkipTicks(request_id, skip_requests):
            return events.TicksSkipped(request_id, await store.skip_ticks(own_id, skip_requests))
        case effects.Activate(request_id, wanted, hard_grace_ms):
            database_now, started = await store.start_activations(own_id, wanted, hard_grace_ms)
            return events.Activated(request_id, database_now, started)
        case effects.Adopt(request_id, controller_ids, runner_ids):
            return events.Adopted(request_id, await store.adopt_executions(own_id, controller_ids, runner_ids))
        case _:
            assert_never(effect)


async def _read(effect: Reads, store: Store, own_id: str) -> Event:
    match effect:
        case effects.FindPeers():
            found = await store.find_peers()
            return events.PeersFound(
                tuple((peer.controller_id, peer.gossip_address) for peer in found if is_address(peer.gossip_address))
            )
        case effects.FetchWindow(request_id, slots, window_ms):
            database_now, jobs = await store.get_cron_jobs(slots, window_ms)
            return events.WindowFetched(request_id, database_now, jobs)
        case effects.FetchOverdue(request_id, slots, delay_ms, at_most):
            database_now, jobs = await store.get_overdue_jobs(slots, delay_ms, at_most)
            return events.OverdueFetched(request_id, database_now, jobs)
        case effects.FetchActivations(request_id, slots, window_ms):
            database_now, activations = await store.get_activations(slots, window_ms)
            return events.ActivationsFetched(request_id, database_now, activations)
        case effects.FetchFollowers(request_id, activation_ids):
            database_now, activations = await store.get_followers(activation_ids)
            return events.ActivationsFetched(request_id, database_now, activations)
        case effects.FetchQueueReports(request_id, known, at_most):
            reports = await store.get_queue_reports(own_id, known, at_most)
            return events.QueueReported(request_id, reports)
        case _:
            return events.ExecutionsFetched(effect.request_id, await _executions(effect, store, own_id))


async def _executions(effect: ReadsOfExecutions, store: Store, own_id: str) -> list[Execution]:
    match effect:
        case effects.FetchExecutions(_, execution_ids):
            return await store.get_unfinished(execution_ids)
        case effects.FetchHeld(_, execution_ids):
            return await store.get_held(own_id, execution_ids)
        case effects.FetchLost(_, lost_after_ms):
            return await store.get_lost(lost_after_ms)
        case effects.FetchOverdueExecutions():
            return await store.get_overdue_executions()
        case _:
            assert_never(effect)
