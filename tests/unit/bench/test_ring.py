"""The part `ring` of `make bench`: the other two rules on real nodes, and the table, from samples that are made up."""

import random
from typing import Any
from unittest.mock import patch

import pytest

from bench.ring import RULES, Seen, counter, figures, spent, table
from bench.ring_rules import RULES as OTHER_RULES
from cronring.controller.core.node import node, parts
from cronring.controller.core.node.events import PacketReceived, PeersFound, Woke
from cronring.controller.core.node.window import Duty
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim.messages import Packet, Status, Sync, Update
from cronring.schema.keys import SLOTS


def duties(rule: str, own_id: str, *others: str) -> set[Duty]:
    """What a node of that rule owes all slots, once it has heard of the others."""
    with patch.object(parts, "Membership", OTHER_RULES[rule]):
        made = node.Node(own_id, f"{own_id}:1", ClusterSettings(), random.Random(1), 0)
    made.step(Woke(), 0)
    table = tuple(Update(member_id, f"{member_id}:1", Status.ALIVE, 0, False) for member_id in others)
    if others:
        made.step(PacketReceived(Packet(others[0], f"{others[0]}:1", (), Sync(False, table))), 1)
        made.step(PeersFound(tuple((name, f"{name}:1") for name in others)), 2)  # gossip alone makes no owner
    assert len(made._parts.window.duties) == SLOTS
    return set(made._parts.window.duties)


@pytest.mark.parametrize(
    ("rule", "own_id", "others", "duty"),
    [
        ("everybody", "c2", (), Duty.PRIMARY),
        ("everybody", "c2", ("c1", "c3"), Duty.PRIMARY),
        ("leader", "c2", (), Duty.PRIMARY),
        ("leader", "c1", ("c2", "c3"), Duty.PRIMARY),
        ("leader", "c2", ("c1", "c3"), Duty.BACKUP),
        ("leader", "c3", ("c1", "c2"), Duty.NONE),
    ],
)
def test_who_attempts_what(rule: str, own_id: str, others: tuple[str, ...], duty: Duty) -> None:
    assert duties(rule, own_id, *others) == {duty}


def test_a_counter_is_found_among_the_metrics() -> None:
    text = "# HELP a_total claims\na_total 12.0\na_total_created 1.0\nb_total 3.5\n"
    assert (counter(text, "a_total"), counter(text, "b_total"), counter(text, "c_total")) == (12.0, 3.5, 0.0)


def test_what_came_early_is_tried_again_and_no_waste() -> None:
    names = ("claims_attempted", "claims_won", "claims_early", "statements")
    before = Seen(dict.fromkeys(names, 100.0), [1.0, 2.0, 3.0], 10.0)
    after = Seen(dict(zip(names, (1_600.0, 1_100.0, 150.0, 140.0), strict=True)), [1.1, 2.3, 3.1], 10.25)
    found = spent(before, after, 4)
    assert (found["attempted"], found["wasted"], found["runs_per_s"], found["statements_per_s"]) == (1500, 450, 250, 10)
    assert (found["controllers_cpu_ms"], found["busiest_cpu_ms"], found["postgres_cpu_ms"]) == (500, 300, 250)


def result() -> dict[str, Any]:
    calm = {
        "runs_per_s": 500.0, "attempted": 3000.0, "wasted": 0.0, "statements_per_s": 12.0, "controllers_cpu_ms": 143.0,
        "postgres_cpu_ms": 83.0, "busiest_cpu_ms": 50.0, "p50_ms": 46.0, "p99_ms": 73.4, "max_ms": 75.4,
    }  # fmt: skip
    killed = {"executions": 2000.0, "late": 474.0, "max_ms": 530.0, "not_run": 0.0}
    leader = calm | {"statements_per_s": 6.0, "busiest_cpu_ms": 100.0, "controllers_cpu_ms": 150.0}
    everybody = calm | {"attempted": 12_000.0, "wasted": 9_000.0}
    return {
        "name": "ring",
        "shape": {"controllers": 3},
        "machine": {"date": "2026-11-22"},
        "rules": {
            "everybody": {"small": everybody, "large": everybody, "killed": killed | {"late": 0.0, "max_ms": 46.0}},
            "leader": {"small": calm, "large": leader, "killed": killed | {"late": 1000.0}},
            "ring": {"small": calm, "large": calm, "killed": killed},
        },
    }


def test_the_table_says_where_the_ring_pays_and_where_it_does_not() -> None:
    lines = table(result()).splitlines()
    assert "| large | everybody | 500 | 12,000 | 9,000 (75 %) | 12 | 143 | 50 | 83 | 46.0 | 73.4 | 75.4 |" in lines
    assert "| leader | 530 | 1,000 of 2,000 | 0 |" in lines
    told = "\n".join(lines)
    assert (
        "Beside everybody the ring is worse: late runs (killed) 474 instead of 0, the latest, ms (killed) 530" in told
    )
    assert "Beside leader the ring is worse: statements/s (large) 12 instead of 6." in told
    assert "busiest controller's CPU ms (large) 50 instead of 100, late runs (killed) 474 instead of 1,000." in told
    assert "controllers' CPU ms (large)" in next(line for line in lines if "leader the ring is much the same" in line)
    assert "of the large load: everybody 50, leader 100, ring 50." in told
    widths = {line.count("|") for line in lines if line.startswith("|")}
    assert len(widths) == 2, "a head, a rule and rows of one width for each of the two"


def test_figures_have_flat_names() -> None:
    flat = figures(result()["rules"])
    assert set(flat) >= {f"{rule}_{name}" for rule in RULES for name in ("wasted_percent", "killed_late", "p99_ms")}
    assert (flat["everybody_wasted_percent"], flat["ring_killed_max_ms"]) == (75.0, 530.0)
