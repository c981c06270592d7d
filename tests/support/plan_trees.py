"""Plans as the planner leaves them (debug_print_plan): EXPLAIN hides what prunes partitions, and when.

docs/decisions/0001 says why it matters. A plan that could prune says so here whatever its parameters are.
"""

import asyncio
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import asyncpg

from cronring.controller.store.connect import Connection, connect
from cronring.controller.store.pool import SESSION_SETTINGS

PRINTING: Final = {"client_min_messages": "log", "debug_print_plan": "on", "debug_pretty_print": "off"}
# A brace, or the word after it, that no backslash takes for text.
_BRACE: Final = re.compile(r"(?<!\\)(?:\{(\w+)|\})")
_INDEX: Final = re.compile(r":part_prune_index (\d+)")
# What takes all of its rows in before it hands one on: below it, parameters are those of the last row.
_GATHERING: Final = frozenset({"SORT", "INCREMENTALSORT", "HASH", "MATERIAL", "AGG", "GROUP", "WINDOWAGG", "UNIQUE"})
_BEFORE: Final = ":initial_pruning_steps ("
_DURING: Final = ":exec_pruning_steps ("


class Node(NamedTuple):
    """`text`: all of it, its children too. `above`: labels of the nodes that it stands in, outermost first."""

    label: str
    text: str
    above: tuple[str, ...]


def nodes(tree: str) -> Iterator[Node]:
    """All nodes of a printed plan, children before parents."""
    opened: list[tuple[str, int]] = []
    for brace in _BRACE.finditer(tree):
        if brace[1] is not None:
            opened.append((brace[1], brace.start()))
        else:
            label, start = opened.pop()
            yield Node(label, tree[start : brace.end()], tuple(above for above, _ in opened))


def pruning(tree: str) -> list[str]:
    """What a plan does that PostgreSQL 18 can't do: empty for one that changes and locks nothing."""
    found = list(nodes(tree))
    labels = {node.label for node in found}
    if not labels & {"MODIFYTABLE", "LOCKROWS"}:
        return []
    complaints = ["partitions are pruned before execution"] if _BEFORE in tree else []
    infos = [node.text for node in found if node.label == "PARTITIONPRUNEINFO"]
    for node in found:
        if node.label not in {"APPEND", "MERGEAPPEND"}:
            continue
        index = _INDEX.search(node.text)  # of 18; before, the node itself says how it prunes
        if _DURING not in (node.text if index is None else infos[int(index[1])]):
            continue
        last = len(node.above) - 1 - node.above[::-1].index("MODIFYTABLE") if "MODIFYTABLE" in node.above else None
        if last is not None and _GATHERING & set(node.above[last:]):
            complaints.append("what is updated is pruned by a row that was read before")
        if "LOCKROWS" in labels:
            complaints.append("partitions are pruned beside a lock")
    return complaints


class Planner:
    """A session of the store that hands out what it plans."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.plans: list[str] = []
        connection.add_log_listener(self._hear)

    def _hear(self, _: object, message: asyncpg.PostgresLogMessage) -> None:
        if message.message == "plan:":
            self.plans.append(" ".join((message.detail or "").split()))  # the server breaks lines anywhere

    async def heard(self) -> list[str]:
        """The plans made since it was asked last."""
        await asyncio.sleep(0)  # the driver hands messages on in the next round of the loop
        plans, self.plans = self.plans, []
        return plans

    async def plan(self, statement: str) -> list[str]:
        """The generic plan of a statement: none for one that is not planned at all."""
        await self.heard()
        parameters = len((await self.connection.prepare(statement)).get_parameters())
        await self.heard()  # the driver asks what types there are
        await self.connection.execute(f"PREPARE planned AS {statement}")
        try:
            call = f"EXECUTE planned ({', '.join(['NULL'] * parameters)})" if parameters else "EXECUTE planned"
            await self.connection.execute(f"EXPLAIN {call}")
        finally:
            await self.connection.execute("DEALLOCATE planned")
        return await self.heard()


async def planner(url: str, **settings: str) -> Planner:
    """Connect; the caller closes `connection`."""
    return Planner(await connect(url, "plans", {**SESSION_SETTINGS, **PRINTING, **settings}))
