"""docs/interval-jobs.md, typed in its order: a job by curl, from its making to its end."""

import re
from pathlib import Path
from typing import Final

import pytest
from aiohttp import web

from cronring.controller.core.orders.interval_states import ALLOWED, IntervalOrder
from cronring.controller.interval_jobs.routes import IntervalJobsRoutes
from cronring.controller.interval_jobs.terms import FIELDS
from tests.docs.reading import ROOT
from tests.docs.walking import Desk, lines, saved
from tests.support.cluster import free_port

PAGE: Final = "docs/interval-jobs.md"
# The page's ports may be taken here.
_PORT: Final = re.compile(r"(?<=127\.0\.0\.1:)\d+")


@pytest.mark.timeout(300)
def test_the_walk_of_the_page(tmp_path: Path, empty_database_url: str) -> None:
    ports: dict[str, str] = {}

    def filled(text: str) -> str:
        text = text.replace("postgresql://…", f"'{empty_database_url}'")
        return _PORT.sub(lambda found: ports.setdefault(found[0], str(free_port())), text)

    said: dict[str, str] = {}
    with Desk(tmp_path) as desk:
        for name, content in saved(PAGE):
            (desk.folder / name).write_text(content)
        for line in lines(PAGE):
            code, said[line.text] = desk.type(line.terminal, filled(line.text))
            assert code == line.code, f"{line.text} ended with {code}:\n{said[line.text]}"
            assert "Traceback" not in said[line.text]
    answers = [text for line, text in said.items() if line.startswith("curl")]
    assert len(answers) == 10
    assert '"metadata": {"team": "search"}' in answers[1]
    assert '"status": "paused"' in answers[2]


def test_the_page_has_every_state_with_what_it_takes() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", (ROOT / PAGE).read_text(), re.MULTILINE)
    told = {status: set(re.findall(r"`(\w+)`", orders)) for status, orders in rows}
    orders = [order for order in IntervalOrder if order is not IntervalOrder.UPDATE]
    statuses = {status for order in orders for status in ALLOWED[order]} | set(ALLOWED[IntervalOrder.UPDATE])
    for status in statuses:
        assert told[status.value] == {order.value for order in orders if status in ALLOWED[order]}, status
    assert told["cancelled"] == set()


def test_the_page_has_every_field_and_route() -> None:
    text = (ROOT / PAGE).read_text()
    assert [name for name in FIELDS if f"`{name}`" not in text] == []
    router = web.UrlDispatcher()
    IntervalJobsRoutes().add_to(router)
    routes = {resource.canonical.replace("{id}", ":id") for resource in router.resources()}
    orders = tuple(f"/{order}" for order in IntervalOrder)
    assert len(routes) > 8
    assert [route for route in routes if not route.endswith(orders) and route not in text] == []
