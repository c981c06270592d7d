"""What a node is told when PostgreSQL's NOTIFY names a topic."""

from collections.abc import Mapping
from typing import Final

from cronring.controller.core.node.events import CancelsNotified, ConsumersNotified, Event, JobsNotified, PlacesFreed
from cronring.controller.ports.store import Topic

_HEARD: Final[Mapping[Topic, Event]] = {
    Topic.JOBS: JobsNotified(),
    Topic.CANCELS: CancelsNotified(),
    Topic.CONSUMED: ConsumersNotified(),
}


def heard(topic: Topic, payload: str) -> Event | None:
    """None: the topic is no node's."""
    if topic is Topic.PLACES:
        return PlacesFreed(int(payload) if payload else None)
    return _HEARD.get(topic)
