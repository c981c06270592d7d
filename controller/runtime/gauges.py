"""A node's own figures as metrics."""

import dataclasses
from collections.abc import Callable
from typing import Final

from cronring.controller.core.node.node import Node
from cronring.schema.keys import SLOTS

# Those of cronring.controller.core.node.stats.Stats that may fall; all others only count up.
_STATS_GAUGES: Final = frozenset(
    {
        "window_jobs",
        "held",
        "ends_pending",
        "awaiting_runner",
        "activations",
        "runners",
        "waiting_for_place",
        "jobs_unread",
    }
)


def node_counters(node: Node) -> Callable[[], dict[str, float]]:
    """For Metrics.add_counters."""
    return lambda: {
        f"node_{name}": float(value)
        for name, value in dataclasses.asdict(node.stats()).items()
        if name not in _STATS_GAUGES
    }


def node_gauges(node: Node, controller_id: str) -> Callable[[], dict[str, float]]:
    """For Metrics.add_gauges."""

    def gauges() -> dict[str, float]:
        stats = node.stats()
        return {f"node_{name}": float(getattr(stats, name)) for name in sorted(_STATS_GAUGES)} | {
            "members_alive": float(sum(member.gossips for member in node.members())),
            "ring_members": float(len(node.ring.members)),
            "ring_share": len(node.ring.primary_slots(controller_id)) / SLOTS,
            "lease_valid": float(node.lease_valid),
            "draining": float(node.draining),
            "in_drill": float(node.in_drill),
        }

    return gauges
