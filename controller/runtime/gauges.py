"""A node's own figures as gauges."""

import dataclasses
from collections.abc import Callable

from controller.core.node import Node
from schema.keys import SLOTS


def node_gauges(node: Node, controller_id: str) -> Callable[[], dict[str, float]]:
    """For Metrics.add_gauges."""

    def gauges() -> dict[str, float]:
        stats = {f"node_{name}": float(value) for name, value in dataclasses.asdict(node.stats()).items()}
        return stats | {
            "members_alive": float(sum(member.gossips for member in node.members())),
            "ring_members": float(len(node.ring.members)),
            "ring_share": len(node.ring.primary_slots(controller_id)) / SLOTS,
            "lease_valid": float(node.lease_valid),
            "draining": float(node.draining),
        }

    return gauges
