"""Membership: controllers' own SWIM machines on virtual time, 10, 100 and 1,000 of them; and the ring over as many.

Everybody knows everybody when it begins. Then: what a quiet cluster says; how a death becomes known (the whole host is
gone, so that not even a connection is refused); a newcomer. Beside the paper's figures: Das, Gupta, Motivala, "SWIM:
Scalable Weakly-consistent Infection-style Process Group Membership Protocol", 2002.
"""

import gc
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import click

from bench.machine import host
from bench.results import Part, head, keep, rows
from cronring.controller.core.node.ring import Ring
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.core.swim import beliefs
from cronring.controller.core.swim.messages import Status
from cronring.controller.core.swim.suspicion import minimum_ns
from cronring.virtual.clock import SECOND
from tests.simulation.swim_crowd import Crowd

SETTINGS: Final = ClusterSettings()
PERIOD_S: Final = SETTINGS.probe_interval_ms / 1000
# By members: how many worlds, and how many die in each, about a second apart. More of 1,000 would take long.
ROUNDS: Final = {10: (40, 1), 100: (12, 1), 1000: (1, 4)}
RING_MEMBERS: Final = (3, 10, 30, 100, 256, 1000)
QUIET_S: Final = 10  # each member syncs once in it
QUIET_MESSAGES_PER_S: Final = 2 * (1 / PERIOD_S + 1 / (SETTINGS.sync_interval_ms / 1000))  # and their answers
WEIGHED: Final = 10  # members whose packets are encoded as on the wire
# Expected periods until somebody probes a dead member for the first time (the paper's section 3.1).
PAPER_PERIODS: Final = math.e / (math.e - 1)

Figures = dict[str, float]


@contextmanager
def room_for(nodes: int) -> Iterator[None]:
    """SWIM takes in 256 live members (a constant, no setting); a world of more is measured with another bound."""
    with patch.object(beliefs, "MEMBERS_MAX", max(nodes + 1, beliefs.MEMBERS_MAX)):
        yield


def quiet(crowd: Crowd, nodes: int) -> Figures:
    """What a member sends while nothing happens."""
    crowd.weighed = frozenset(process.member_id for process in crowd.running()[:WEIGHED])
    before = crowd.count_sent()
    crowd.clock.run_for(QUIET_S * SECOND)
    messages, weighed = crowd.count_sent() - before, min(nodes, WEIGHED)
    crowd.weighed = frozenset()
    return {"messages_per_s": messages / nodes / QUIET_S, "bytes_per_s": crowd.bytes_sent / weighed / QUIET_S}


def deaths(crowd: Crowd, count: int, rng: random.Random) -> list[Figures]:
    """Seconds from each death to the first who suspects, to all, to the first verdict, to all; messages of a member."""
    died_ns: dict[str, int] = {}
    before, began_ns = crowd.count_sent(), crowd.clock.now_ns
    for victim in rng.sample(crowd.running(), count):
        crowd.clock.run_for(int(rng.uniform(0.5, 1.5) * SECOND))
        died_ns[victim.member_id] = crowd.clock.now_ns
        crowd.crash(victim, silent=True)
    crowd.run_until_all_hold(died_ns, Status.DEAD)
    usual = QUIET_MESSAGES_PER_S * len(crowd.running()) * (crowd.clock.now_ns - began_ns) / SECOND
    told = (crowd.count_sent() - before - usual) / len(crowd.running()) / count
    found = []
    for member_id, at_ns in died_ns.items():
        suspected, dead = crowd.holders(member_id, Status.SUSPECT), crowd.holders(member_id, Status.DEAD)
        instants = {
            "suspected_s": suspected[0], "told_all_s": suspected[-1], "dead_first_s": dead[0], "dead_all_s": dead[-1],
        }  # fmt: skip
        found.append({name: (at - at_ns) / SECOND for name, at in instants.items()} | {"messages": told})
    return found


def join(crowd: Crowd, nodes: int) -> float:
    """Seconds until everybody knows a newcomer, who was told of the others' addresses by the database."""
    began_ns = crowd.clock.now_ns
    newcomer = crowd.start(nodes)
    crowd.run_until_all_hold([newcomer.member_id], Status.ALIVE)
    assert len(newcomer.swim.live()) == len(crowd.running())
    return (crowd.holders(newcomer.member_id, Status.ALIVE)[-1] - began_ns) / SECOND


def size(nodes: int, worlds: int, victims: int) -> Figures:
    """All figures of clusters of one size: means over the rounds, and the worst of some."""
    said: list[Figures] = []
    died: list[Figures] = []
    joined: list[float] = []
    with room_for(nodes):
        for world in range(worlds):
            rng = random.Random(f"{nodes}/{world}")
            crowd = Crowd(f"{nodes}/{world}", nodes)
            gc.freeze()  # a million entries that stay: not to be looked through again and again
            if not world:
                said.append(quiet(crowd, nodes))
            crowd.clock.run_for(int(rng.random() * SECOND))
            died += deaths(crowd, victims, rng)
            joined.append(join(crowd, nodes))
            gc.unfreeze()
    mean = {name: statistics.fmean(each[name] for each in died) for name in died[0]}
    spread_s = [each["told_all_s"] - each["suspected_s"] for each in died]
    return said[0] | mean | {
        "told_within_s": statistics.fmean(spread_s),
        "dead_all_max_s": max(each["dead_all_s"] for each in died),
        "join_s": statistics.fmean(joined),
        "deaths": len(died),
    }  # fmt: skip


def median_ms(measured: Callable[[], object], tries: int) -> float:
    """CPU time: it waits for nothing, and the machine may do other things."""
    taken = []
    for _ in range(tries):
        began = time.process_time()
        measured()
        taken.append(time.process_time() - began)
    return statistics.median(taken) * 1000


def ring(members: int) -> Figures:
    """Milliseconds for one who goes, one who comes, and for all of them at once, as a newcomer meets them."""
    names = tuple(f"controller-{number}-{number * 40503 % 65536:04x}" for number in range(members))
    whole = Ring.build(names)
    without = whole.over(names[1:])
    tries = 15 if members <= 256 else 5
    return {
        "goes_ms": median_ms(lambda: whole.over(without.members), tries),
        "comes_ms": median_ms(lambda: without.over(whole.members), tries),
        "built_ms": median_ms(lambda: Ring.build(names), 3),
    }


def measure(sizes: Sequence[int] = tuple(ROUNDS), ring_sizes: Sequence[int] = RING_MEMBERS) -> dict[str, Any]:
    """Run it; the result is JSON-ready."""
    click.echo("ring …", err=True)
    rings = {members: {name: round(value, 2) for name, value in ring(members).items()} for members in ring_sizes}
    swim: dict[int, Figures] = {}
    for nodes in sizes:
        worlds, victims = ROUNDS[nodes]
        click.echo(f"membership of {nodes}: {worlds * victims} deaths …", err=True)
        swim[nodes] = {name: round(value, 3) for name, value in size(nodes, worlds, victims).items()}
    figures = {f"{name}_of_{nodes}": each[name] for nodes, each in swim.items() for name in each if name != "deaths"}
    figures |= {f"ring_{name}_of_{members}": each[name] for members, each in rings.items() for name in each}
    return {
        "name": "membership",
        "shape": {"ms a period": SETTINGS.probe_interval_ms, "ms until helpers are asked": SETTINGS.probe_timeout_ms},
        "machine": host(),
        "figures": figures,
        "swim": {str(nodes): each for nodes, each in swim.items()},
        "ring": {str(members): each for members, each in rings.items()},
    }


def suspicion_s(nodes: int) -> float:
    """What a suspect is given to refute when enough members confirm the suspicion."""
    return minimum_ns(SETTINGS.suspicion_multiplier, SETTINGS.probe_interval_ms * 1_000_000, nodes) / SECOND


def swim_cells(nodes: int, each: Figures) -> list[str]:
    return [
        f"{nodes:,}",
        f"{each['messages_per_s']:.2f}",
        f"{each['bytes_per_s']:,.0f}",
        f"{each['suspected_s']:.2f} ({each['suspected_s'] / PERIOD_S:.1f})",
        f"{each['told_within_s']:.2f} ({each['told_within_s'] / PERIOD_S:.1f})",
        f"{math.log(nodes):.1f}",
        f"{suspicion_s(nodes):.1f}",
        f"{each['dead_first_s']:.1f}",
        f"{each['dead_all_s']:.1f}, {each['dead_all_max_s']:.1f}",
        f"{each['messages']:.0f}",
        f"{each['join_s']:.2f}",
        f"{each['deaths']:.0f}",
    ]


def notes(result: dict[str, Any]) -> list[str]:
    """What the figures say, computed from them."""
    swim = {int(nodes): each for nodes, each in result["swim"].items()}
    rates = [each["messages_per_s"] for each in swim.values()]
    least, most = min(swim), max(swim)
    fits = [int(members) for members, each in result["ring"].items() if max(each["goes_ms"], each["comes_ms"]) < 20]
    return [
        f"Messages of a member: {min(rates):.2f} to {max(rates):.2f} a second, whatever the size. Bytes are not "
        f"constant: {swim[most]['bytes_per_s'] / swim[least]['bytes_per_s']:.0f} times as many with {most:,} as with "
        f"{least}, as each {SETTINGS.sync_interval_ms // 1000} s it swaps whole tables with another (the paper's SWIM "
        "does not).",
        "",
        f"The paper expects the first probe of a dead member after e/(e-1) = {PAPER_PERIODS:.2f} periods "
        f"({PAPER_PERIODS * PERIOD_S:.2f} s); here a verdict comes at the end of the probe's own period, in which "
        "helpers try as well. News reach everybody within O(log n) periods there; here they are pushed five times a "
        f"period. A suspect is dead when it hasn't refuted in {SETTINGS.suspicion_multiplier} periods x log10(n).",
        f"SWIM takes in {beliefs.MEMBERS_MAX} members; more are measured with another bound.",
        "",
        f"A ring takes in a member who comes or goes in under 20 ms with {', '.join(f'{each:,}' for each in fits)}.",
    ]


def table(result: dict[str, Any]) -> str:
    """Markdown: a line for each size, of SWIM and of the ring."""
    columns = [
        "members", "messages/s each", "bytes/s each", "first suspects: s (periods)", "all suspect, s later (periods)",
        "ln n", "given to refute, s", "first verdict, s", "all verdicts, s: mean, worst",
        "messages of each for a death", "newcomer known to all, s", "deaths",
    ]  # fmt: skip
    cells = [swim_cells(int(nodes), each) for nodes, each in result["swim"].items()]
    of_rings = [
        [f"{int(members):,}", *(f"{each[name]:.1f}" for name in ("goes_ms", "comes_ms", "built_ms"))]
        for members, each in result["ring"].items()
    ]
    lines = [*head(result), *rows(columns, cells), ""]
    lines += rows(["members of the ring", "one goes, ms of CPU", "one comes", "built anew"], of_rings)
    return "\n".join([*lines, "", *notes(result)]) + "\n"


PART = Part("membership", 30, measure, table)


@click.command()
@click.option(
    "--members", multiple=True, type=click.Choice([str(nodes) for nodes in ROUNDS]), help="May be given again."
)
def main(members: tuple[str, ...]) -> None:
    """Gossip and ring of 10, 100 and 1,000 controllers: messages, deaths, newcomers; on virtual time, one core."""
    result = measure(tuple(map(int, members)) or tuple(ROUNDS))
    keep(result, table(result))


if __name__ == "__main__":
    main()
