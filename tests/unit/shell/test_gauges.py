"""What may fall is no counter: Prometheus takes a counter that falls for a restart."""

import random

from cronring.controller.core.node.node import Node
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.runtime.gauges import node_counters, node_gauges

FALLING = {
    "window_jobs",
    "held",
    "ends_pending",
    "awaiting_runner",
    "activations",
    "runners",
}  # what Node.stats() fills in


def test_what_waits_or_is_held_is_a_gauge() -> None:
    node = Node("c-1", "127.0.0.1:7400", ClusterSettings(), random.Random(1), 1)
    counters, gauges = node_counters(node)(), node_gauges(node, "c-1")()
    assert not {f"node_{name}" for name in FALLING} & counters.keys()
    assert {f"node_{name}" for name in FALLING} <= gauges.keys()
