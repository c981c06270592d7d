"""What the performer does with a node's effects for the store, without a loop: in virtual time, and in simulations."""

from collections.abc import Callable, Coroutine
from typing import Any

from cronring.controller.core.node import effects, events
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.store import ControllerInfo, Store

_METHODS: dict[type, str] = {
    effects.FindPeers: "find_peers",
    effects.FetchWindow: "get_cron_jobs",
    effects.FetchOverdue: "get_overdue_jobs",
    effects.Claim: "start_cron_jobs",
    effects.End: "end_cron_jobs",
    effects.SkipTicks: "skip_ticks",
    effects.FetchActivations: "get_activations",
    effects.FetchFollowers: "get_followers",
    effects.Activate: "start_activations",
    effects.Adopt: "adopt_executions",
    effects.FetchExecutions: "get_unfinished",
    effects.FetchHeld: "get_held",
    effects.FetchLost: "get_lost",
    effects.FetchOverdueExecutions: "get_overdue_executions",
}
_ANSWERS: dict[type, Callable[..., events.Event]] = {
    effects.RenewLease: events.LeaseRenewed,
    effects.FetchWindow: lambda request_id, answer: events.WindowFetched(request_id, *answer),
    effects.FetchOverdue: lambda request_id, answer: events.OverdueFetched(request_id, *answer),
    effects.Claim: lambda request_id, answer: events.Claimed(request_id, *answer),
    effects.End: events.Ended,
    effects.SkipTicks: events.TicksSkipped,
    effects.FetchActivations: lambda request_id, answer: events.ActivationsFetched(request_id, *answer),
    effects.FetchFollowers: lambda request_id, answer: events.ActivationsFetched(request_id, *answer),
    effects.Activate: lambda request_id, answer: events.Activated(request_id, *answer),
    effects.Adopt: events.Adopted,
    effects.FetchExecutions: events.ExecutionsFetched,
    effects.FetchHeld: events.ExecutionsFetched,
    effects.FetchLost: events.ExecutionsFetched,
    effects.FetchOverdueExecutions: events.ExecutionsFetched,
}


# Calls that say who asks.
_BY_ID = effects.Claim | effects.End | effects.SkipTicks | effects.Activate | effects.Adopt | effects.FetchHeld


def store_call(effect: Any, info: ControllerInfo, settings: ClusterSettings) -> Callable[[Store], Any]:
    """The call that an effect asks for. Raises KeyError for one that isn't for the store."""
    if isinstance(effect, effects.RenewLease):
        lost_after_ms, cancelling = settings.runner_lost_after_ms, effect.cancelling
        arguments = (info, effect.draining, settings.lease_ms, effect.runner_ids, lost_after_ms, cancelling)
        return lambda store: store.renew_lease(*arguments)
    name, arguments = _METHODS[type(effect)], tuple(effect)
    if isinstance(effect, _BY_ID):
        return lambda store: getattr(store, name)(info.controller_id, *arguments[1:])
    return lambda store: getattr(store, name)(*arguments[1:])


def store_answer(effect: Any, result: Any) -> events.Event | None:
    """The event that tells the node of a result (or an error). None: nobody is told."""
    if isinstance(effect, effects.FindPeers):
        if isinstance(result, StoreUnavailable):
            return None
        return events.PeersFound(tuple((peer.controller_id, peer.grpc_address) for peer in result))
    if isinstance(result, StoreUnavailable | StoreError):
        return events.StoreFailed(effect.request_id, str(result), isinstance(result, StoreUnavailable))
    return _ANSWERS[type(effect)](effect.request_id, result)


def run_now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits, as the memory store's never do."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited for something")
