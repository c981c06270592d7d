"""What a node is told when PostgreSQL's NOTIFY names a topic."""

from collections.abc import Mapping
from typing import Final

from cronring.controller.core.node.events import CancelsNotified, ConsumersNotified, Event, JobsNotified, PlacesFreed
from cronring.controller.ports.store import Topic

HEARD: Final[Mapping[Topic, Event]] = {
    Topic.JOBS: JobsNotified(),
    Topic.CANCELS: CancelsNotified(),
    Topic.PLACES: PlacesFreed(),
    Topic.CONSUMED: ConsumersNotified(),
}
