"""What a node is told when PostgreSQL's NOTIFY names topics."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cronring.controller.core.node.events import CancelsNotified, ConsumersNotified, Event, JobsNotified, PlacesFreed
from cronring.controller.ports.store import Notified, Topic

_HEARD: Final[Mapping[Topic, Event]] = {
    Topic.JOBS: JobsNotified(),
    Topic.CANCELS: CancelsNotified(),
    Topic.CONSUMED: ConsumersNotified(),
}


def heard(notified: Iterable[Notified]) -> Iterator[Event]:
    """The node's events. Some topics concern other parts only."""
    for topic, payload in notified:
        if topic is Topic.PLACES:
            yield PlacesFreed(int(payload) if payload else None)
        elif topic in _HEARD:
            yield _HEARD[topic]
