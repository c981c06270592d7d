"""Draw the states of a job into docs/control.md, out of controller/core/orders/states.py: `python docs/make_states.py`.

tests/unit/core/test_states.py holds the committed drawing fresh.
"""

from collections import defaultdict
from pathlib import Path
from typing import Final

from cronring.controller.core.orders.states import HAPPENINGS, ORDERS, Order, State

PAGE: Final = Path(__file__).parent / "control.md"
BEGIN: Final = "<!-- states: made by docs/make_states.py -->"
END: Final = "<!-- /states -->"


def drawing() -> str:
    """The diagram, and the table of orders, as Markdown."""
    return "\n".join([BEGIN, "```mermaid", *_diagram(), "```", "", *_table(), END])


def drawn(page: str) -> str:
    """The page with the drawing of today."""
    before, rest = page.split(BEGIN)
    return before + drawing() + rest.split(END)[1]


def _diagram() -> list[str]:
    """Operators' orders by their names; what the cluster does by itself in brackets. Loops are left out."""
    edges: dict[tuple[State, State], list[str]] = defaultdict(list)
    for order, table in ORDERS.items():
        for state, targets in table.items():
            for target in targets:
                if target is not state and order is not Order.DELETE:
                    edges[state, target].append(_word(order))
    for happening, happens in HAPPENINGS.items():
        for state, targets in happens.items():
            for target in targets:
                if target is not state:
                    edges[state, target].append(f"({happening.value})")
    lines = ["stateDiagram-v2", "    [*] --> pending", "    [*] --> scheduled"]
    for (state, target), words in sorted(edges.items(), key=lambda edge: [list(State).index(each) for each in edge[0]]):
        lines.append(f"    {state} --> {target}: {', '.join(words)}")
    return [*lines, "    cancelled --> [*]: delete"]


def _table() -> list[str]:
    lines = [f"| | {' | '.join(State)} |", f"|---|{'---|' * len(State)}"]
    for order, table in ORDERS.items():
        cells = (", ".join(table[state]) if state in table else "refused" for state in State)
        lines.append(f"| `{_word(order)}` | {' | '.join(cells)} |")
    return lines


def _word(order: Order) -> str:
    return order.value.replace("_", "-")


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text("utf-8")), "utf-8")
