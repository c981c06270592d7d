"""A cluster with a host of its own for each part: controllers c1, c2, …, runners r1, r2, …, PostgreSQL, an operator.

    with hosted(controllers=3, runners=2, seed=7) as (hosts, server), HostedCluster(hosts, server, folder) as cluster:
        cluster.start_controller()                  # on c1
        hosts.cut("c1", DATABASE)
        cluster.views()                             # what each controller believes, asked from the operator's host

PostgreSQL listens on its host's address for those on other hosts, and on its socket for the test itself. So the test's
own questions (those of the judge, say) are disturbed by no fault.
"""

import contextlib
import grp
import http.client
import json
import pwd
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.cluster import Process
from tests.support.databases import SERVERS, PostgresServer
from tests.support.hosts import NETWORK, Hosts
from tests.support.secured import SecuredCluster

DATABASE = "db"
OPERATOR = "op"
GRPC_PORT, HTTP_PORT, PEER_PORT = 7400, 7401, 7402  # of every controller: each has a host to itself
ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def hosted(controllers: int, runners: int, seed: int = 0) -> Iterator[tuple[Hosts, PostgresServer]]:
    """Hosts, and a durable PostgreSQL 18 with the template made, on one of them."""
    names = [f"c{number + 1}" for number in range(controllers)] + [f"r{number + 1}" for number in range(runners)]
    with contextlib.ExitStack() as stack:
        hosts = stack.enter_context(Hosts([*names, DATABASE, OPERATOR], seed))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cronring-pg-")))
        bin_folder, user = SERVERS["postgres18"]()
        server = PostgresServer(bin_folder, user, folder, durable=True)
        stack.callback(server.close)
        put_on_host(server, hosts, DATABASE)
        server.start()
        server.make_template()
        yield hosts, server


def put_on_host(server: PostgresServer, hosts: Hosts, name: str) -> None:
    """Before its start: it will listen there, and trust whoever is on that network."""
    server.settings["listen_addresses"] = hosts.address(name)
    with (server.data / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {NETWORK}.0/24 trust\n")
    server.wrapper = hosts.enter(name)
    if server.user is not None:
        group = grp.getgrgid(pwd.getpwnam(server.user).pw_gid).gr_name
        # A change of user forgets the parent whose death is to be died with.
        server.wrapper += (
            "setpriv", "--reuid", server.user, "--regid", group, "--clear-groups", "--pdeathsig", "QUIT",
        )  # fmt: skip


@dataclass(frozen=True)
class View:
    """What one controller believes. `members` by id: its status; None where its PostgreSQL can't be asked."""

    controller_id: str
    ring_digest: str
    ring_members: tuple[str, ...]
    members: dict[str, str] | None


class HostedCluster(SecuredCluster):
    """As SecuredCluster; the next controller starts on the next host, and so does the next runner."""

    def __init__(
        self, hosts: Hosts, server: PostgresServer, folder: Path, environment: dict[str, str] | None = None
    ) -> None:
        database = server.create_database()
        super().__init__(server.url(database), folder, environment)
        self.hosts = hosts
        self.controllers_database_url = f"postgresql://postgres@{hosts.address(DATABASE)}/{database}"
        self.cli_network = hosts.namespace(OPERATOR)
        self._asker: subprocess.Popen[str] | None = None
        self.let_in()

    def peer_port(self) -> int:
        return PEER_PORT

    def __enter__(self) -> "HostedCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asker is not None:
            self._asker.communicate(timeout=60)
        super().__exit__(kind, error, trace)

    def start_controller(self, *extra: str, wait: bool = True, wrapper: tuple[str, ...] = ()) -> Process:
        host = f"c{len(self.controllers) + 1}"
        address = self.hosts.address(host)
        process = self._controller_at(
            f"{address}:{GRPC_PORT}", f"{address}:{HTTP_PORT}", *extra, wrapper=(*self.hosts.enter(host), *wrapper)
        )
        self.controllers.append(process)
        if wait:
            self.wait_ready(process)
        return process

    def start_runner(self, *files: Path, extra: tuple[str, ...] = (), wrapper: tuple[str, ...] = ()) -> Process:
        host = f"r{len(self.runners) + 1}"
        return super().start_runner(*files, extra=extra, wrapper=(*self.hosts.enter(host), *wrapper))

    def http(self, controller: Process, path: str) -> tuple[int, str]:
        """From the operator's host."""
        host, _, port = controller.http.partition(":")
        connection = http.client.HTTPConnection(host, int(port))
        context = ssl.create_default_context(cafile=str(self.pki.ca))
        connection.sock = context.wrap_socket(self.hosts.connect(OPERATOR, host, int(port)), server_hostname=host)
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except http.client.HTTPException as error:
                raise OSError(str(error)) from error

    def figure(self, controller: Process, name: str) -> float:
        """A figure of its /metrics that has no labels. Raises OSError, or KeyError for one that isn't there."""
        _, text = self.http(controller, "/metrics")
        figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
        return float(figures[name])

    def views(self, controllers: Sequence[Process] | None = None) -> list[View | None]:
        """Of each controller, asked over gRPC from the operator's host; None: it doesn't answer within a second."""
        if self._asker is None:
            self._asker = subprocess.Popen(
                [*self.hosts.enter(OPERATOR), sys.executable, "-m", "tests.support.asker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=self.environment,
            )  # fmt: skip
        assert self._asker.stdin is not None, "made with a pipe"
        assert self._asker.stdout is not None, "made with a pipe"
        asked = self.controllers if controllers is None else controllers
        self._asker.stdin.write(" ".join(controller.grpc for controller in asked) + "\n")
        self._asker.stdin.flush()
        answers: list[dict[str, Any] | None] = json.loads(self._asker.stdout.readline())
        return [None if answer is None else _view(answer) for answer in answers]


def _view(answer: dict[str, Any]) -> View:
    return View(answer["controller_id"], answer["ring_digest"], tuple(answer["ring_members"]), answer["members"])


def agreed(views: Sequence[View | None]) -> bool:
    """All answer, take each other for alive, and hold the same ring of all."""
    answered = [view for view in views if view is not None]
    ids = {view.controller_id for view in answered}
    return (
        len(answered) == len(views) == len(ids)
        and len({view.ring_digest for view in answered}) == 1
        and all(set(view.ring_members) == ids for view in answered)
        and all(view.members is not None and _alive(view.members) == ids for view in answered)
    )


def _alive(members: dict[str, str]) -> set[str]:
    return {member for member, status in members.items() if status == "alive"}
