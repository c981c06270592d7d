"""A client of the interval scheduler's contract that knows nothing but its page, and a real cluster behind it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cluster import Cluster
from tests.support.databases import PostgresServer
from tests.support.waiting import TIMEOUT_S

MODULE = Path(__file__).parent / "modules" / "crawler.py"
POLL_S = 0.02
Body = dict[str, Any]


class Answer(NamedTuple):
    """`kind`: the content type."""

    status: int
    body: Any
    kind: str


class Client:
    """Plain HTTP."""

    def __init__(self, base: str, token: str = "") -> None:
        self._base = base
        self._token = token

    def send(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> Answer:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._base}/api/v1{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return Answer(answer.status, _read(answer.read()), answer.headers.get_content_type())
        except urllib.error.HTTPError as error:
            return Answer(error.code, _read(error.read()), error.headers.get_content_type())

    def good(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self.send(method, path, body)
        assert answer.status == status, answer
        return answer.body

    def create(self, **fields: Any) -> Body:
        made: Body = self.good("POST", "/jobs", fields, 201)
        return made

    def get(self, job: Body) -> Body:
        found: Body = self.good("GET", f"/jobs/{job['id']}")
        return found

    def order(self, job: Body, order: str) -> Body:
        done: Body = self.good("POST", f"/jobs/{job['id']}/{order}")
        return done

    def refused(self, status: int, method: str, path: str, body: Any = None) -> Body:
        """The problem, which says so itself."""
        answer = self.send(method, path, body)
        assert (answer.status, answer.kind) == (status, "application/problem+json"), answer
        assert answer.body["status"] == status
        assert answer.body["detail"]
        problem: Body = answer.body
        return problem

    def until(self, job: Body, status: str) -> Body:
        """The job, once it is that."""
        found: Body = until(
            lambda: found if (found := self.get(job))["status"] == status else None, lambda: self.get(job)
        )
        return found

    def runs(self, job: Body) -> list[Body]:
        """The newest first."""
        listed: list[Body] = self.good("GET", f"/jobs/{job['id']}/executions")["executions"]
        return listed


def until(found: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """What is found. Polls, as a client of this contract does."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (answer := found()):
        assert time.monotonic() < deadline, otherwise()
        time.sleep(POLL_S)
    return answer


def _read(body: bytes) -> Any:
    return json.loads(body) if body else None


class Place(NamedTuple):
    """`crawled`: the folder into which the verb notes what it was given."""

    client: Client
    cluster: Cluster
    crawled: Path

    def noted(self, job: Body) -> list[Body]:
        """What its runs were given, the oldest first."""
        files = sorted(self.crawled.glob(f"{job['id']}-*"), key=lambda file: int(file.name.rpartition("-")[2]))
        return [json.loads(file.read_text()) for file in files]


@pytest.fixture(scope="module")
def place(
    postgres_servers: Callable[[str], PostgresServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """One controller, and a runner that hosts crawler."""
    postgres = postgres_servers("postgres18")
    name, folder = postgres.create_database(), tmp_path_factory.mktemp("intervals")
    crawled = folder / "crawled"
    crawled.mkdir()
    with Cluster(postgres.url(name), folder, {"CRAWLED": str(crawled)}) as cluster:
        controller = cluster.start_controller("--interval-jobs-verb", "crawler.fetch")
        cluster.start_runner(MODULE)
        until(lambda: cluster.cli("deployments", "list", "--active"), lambda: "the module is deployed")
        yield Place(Client(f"http://{controller.http}"), cluster, crawled)
    postgres.drop_database(name)
