"""Waiting until a module is hosted: a runner that has started still has to be let in."""

from tests.support.databases import run_coroutine
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until


def until_hosted(cluster: SecuredCluster, module: str) -> None:
    run_coroutine(
        wait_until(lambda: f"{module}@" in str(cluster.cli("deployments", "list")), f"{module} is not deployed")
    )
