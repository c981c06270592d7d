"""ctx.jobs in a virtual cluster: what a verb asks is done by what does it on a real one."""

from collections.abc import Iterator

import pytest

from cronring.testing import VirtualCluster
from tests.unit.virtual import signups


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    with VirtualCluster(signups, start="2026-01-01") as made:
        yield made


def run(cluster: VirtualCluster, verb: str) -> str:
    cluster.trigger(verb)
    (execution,) = cluster.executions(verb)
    assert execution.outcome == "completed", (execution.error, execution.output)
    return execution.output


def test_a_sync_verb_makes_changes_and_triggers_a_job(cluster: VirtualCluster) -> None:
    run(cluster, "sync_signup")
    cluster.run_for("5h")
    invoices = cluster.executions("signups.invoice:customer-7")
    assert [each.trigger for each in invoices] == ["manual", "schedule", "schedule"]


def test_an_async_verb_awaits_the_same_calls(cluster: VirtualCluster) -> None:
    assert "gone: there is no job 'signups.invoice:customer-9'" in run(cluster, "async_signup")


def test_what_is_refused_says_why_and_the_verb_may_go_on(cluster: VirtualCluster) -> None:
    told = run(cluster, "refused").splitlines()
    wanted = (
        ("JobRefused CONFLICT", "is declared in its module"),
        ("JobNotFound NOT_FOUND", "there is no job 'signups.invoic:x'"),
        ("JobRefused FORBIDDEN", "may change jobs of its own namespace, 'default'"),
        ("JobRefused INVALID", "spec.schedule"),
        ("JobNotFound NOT_FOUND", "has no verb 'nothing'"),
        ("JobRefused INVALID", "timeout"),
        ("JobRefused INVALID", "jitter"),
    )
    assert len(told) == len(wanted)
    for line, (kind, words) in zip(told, wanted, strict=True):
        assert line.startswith(kind)
        assert words in line
