"""What a node asks of its store, without a loop: in virtual time, and in simulations."""

from collections.abc import Callable, Coroutine
from typing import Any

from cronring.controller.core.node import events
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.store import ControllerInfo, Store
from cronring.controller.services.asking import Changes, Reads, answer_of, failure_of


def store_call(
    effect: Changes | Reads, info: ControllerInfo, settings: ClusterSettings
) -> Callable[[Store], Coroutine[Any, Any, events.Event]]:
    """The call that an effect asks for."""
    return lambda store: answer_of(effect, store, info, settings)


def store_answer(effect: Changes | Reads, result: Any) -> events.Event | None:
    """The event that tells the node of a call's result (or its error). None: nobody is told."""
    if isinstance(result, StoreUnavailable | StoreError):
        return failure_of(effect, result)
    event: events.Event = result
    return event


def run_now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never waits, as the memory store's never do."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited for something")
