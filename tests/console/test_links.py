"""Links from elsewhere: what commands print, and what a webhook sends, opens the page that it is of."""

from collections.abc import Callable
from typing import Any, Final

from playwright.sync_api import expect

from tests.console.conftest import Visitor
from tests.console.receiving import receiving
from tests.support.databases import run_coroutine
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

JOB: Final = "shop.fails"


def failed(cluster: SecuredCluster) -> dict[str, Any]:
    """A run that did."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found[:] = cluster.cli("executions", "list", "--job", JOB, "--failed", "--limit", "1")
        return bool(found)

    run_coroutine(wait_until(is_there, f"no run of {JOB} failed"))
    return found[0]


def test_what_commands_print_opens_its_page(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    run = failed(cluster)
    execution = cluster.cli("executions", "get", str(run["id"]))["url"]
    job = cluster.cli("jobs", "show", JOB)["url"]
    why = cluster.cli("why", JOB, "--at", run["tick"])["url"]
    assert execution.startswith("https://127.0.0.1:")
    assert f"console: {why}" in cluster.ask("why", JOB, "--at", run["tick"]).stdout.splitlines()
    assert execution in cluster.ask("executions", "get", str(run["id"])).stdout
    assert job in cluster.ask("jobs", "show", JOB).stdout
    page = visit("viewer").page()  # logged in at one controller: cookies are of a host, whatever its port
    page.goto(execution)
    expect(page.locator("h1")).to_contain_text(f"Run {run['id']}")
    page.goto(job)
    expect(page.locator("h1")).to_contain_text(JOB)
    page.goto(why)
    expect(page.locator("section:has(#why)")).to_contain_text(f"Execution {run['id']} ")


def test_what_a_webhook_sends_opens_its_run(visit: Callable[..., Visitor], cluster: SecuredCluster) -> None:
    with receiving(204) as receiver:
        cluster.cli("webhook", "add", "links", receiver.url, "--event", "failed", "--job", JOB)
        run_coroutine(wait_until(lambda: bool(receiver.heard), "nothing was sent"))
        cluster.cli("webhook", "remove", "links")
    told = receiver.heard[0]["data"]
    page = visit("viewer").page()
    page.goto(told["url"])
    expect(page.locator("h1")).to_contain_text(f"Run {told['execution_id']}")
