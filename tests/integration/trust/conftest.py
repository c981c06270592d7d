"""One cluster with certificates and tokens for the tests of a file together: as it is deployed, on loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cronring.client import AsyncClient
from cronring.client.identities import RoleIn
from tests.support.cluster import Process
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

MODULES: Final = Path(__file__).parent / "modules"


class House:
    """A controller. `admin`: a token that may do everything."""

    def __init__(self, cluster: SecuredCluster) -> None:
        self.cluster = cluster
        self.pki = cluster.pki
        cluster.start_controller()
        self.address = cluster.controllers[0].grpc
        first = ("token", "create", "--name", "admin", "--role", "admin", "--namespace", "*")
        self.admin: str = cluster.on_database(*first)

    def client(self, token: str = "") -> AsyncClient:
        """Of the admin, or of whoever has that token."""
        return AsyncClient([self.address], 30, token=token or self.admin, ca=self.pki.ca, insecure=False)

    async def token(self, name: str, role: str, lasts_s: float = 3_600) -> str:
        async with self.client() as client:
            made = await client.identities.create_token(name, [RoleIn(role, "default")], lasts_s=lasts_s)
        return made.secret

    async def grant(self, name: str, *modules: str, may_activate: bool = True) -> None:
        """For certificates of the cluster's CA."""
        async with self.client() as client:
            await client.identities.create_runner_grant(
                name, modules=modules, may_activate=may_activate, certificate_only=True
            )

    async def join(self, name: str, *modules: str, uses: int | None = None, lasts_s: float = 3_600) -> Path:
        """A file with the join token of a grant."""
        async with self.client() as client:
            made = await client.identities.create_runner_grant(
                name, modules=modules, may_activate=True, uses=uses, lasts_s=lasts_s
            )
        file = self.cluster.folder / f"{name}.join"
        file.write_text(f"{made.secret}\n")
        return file

    def joins(self, token: Path, module: str) -> Process:
        return self.runner(module, extra=("--join-token-file", str(token), "--ca", str(self.pki.ca)))

    def runner(self, *modules: str, extra: tuple[str, ...] = ()) -> Process:
        return self.cluster.start_runner(*(MODULES / f"{each}.py" for each in modules), extra=extra)


@pytest.fixture(scope="module")
def house(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with SecuredCluster(module_database_url, tmp_path_factory.mktemp("secured")) as cluster:
        assert isinstance(cluster, SecuredCluster)
        yield House(cluster)


async def said(process: Process, *words: str) -> None:
    """Until its log has a line with all of these."""

    def found() -> bool:
        return any(all(word in line for word in words) for line in process.log.read_text().splitlines())

    await wait_until(found, lambda: f"{process.name} never said {words}:\n{process.tail()}")


async def ended(process: Process) -> int:
    """Its exit code."""
    await wait_until(lambda: not process.alive(), lambda: f"{process.name} goes on:\n{process.tail()}")
    return process.popen.wait()
