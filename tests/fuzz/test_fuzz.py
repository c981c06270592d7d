"""Whatever comes in, nothing breaks: each target with what hypothesis draws, and with every input in its corpus, where
those stay that once did.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cronring.protos.cronring.v1 import deployments_pb2, schema_pb2
from cronring.protos.runner.v1 import runner_pb2
from tests import drawing
from tests.fuzz import servers
from tests.fuzz.bounds import held
from tests.fuzz.drawn import data_for, messages, seeds
from tests.fuzz.targets import SERVED, TARGETS
from tests.support.cluster import Cluster

PURE = [name for name, target in TARGETS.items() if target not in SERVED]
MORE = 50 if drawing.DRAWS else 1  # in `make soak`
EXAMPLES = {"gossip_cluster": 4, "pattern": 15, "schedule": 15, "crontab": 15, "controller_message": 15}
LARGE = [b"{", b"[", b"* ", b"1,", b"module m { verb a(", b'+cron "', b"//\n", b'{"a":']
quickly = settings(suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("name", PURE)
def test_nothing_breaks_a_target(name: str) -> None:
    target = TARGETS[name]
    for data in seeds(name):
        held(target, data)

    @settings(quickly, max_examples=EXAMPLES.get(name, 25) * MORE)
    @given(data_for(name))
    def test(data: bytes) -> None:
        held(target, data, memory=False)

    test()


@pytest.mark.parametrize("name", [name for name in PURE if name != "gossip_cluster"])
def test_large_inputs_take_no_more_than_their_share(name: str) -> None:
    for unit in LARGE:
        held(TARGETS[name], unit * (65_536 // len(unit)), memory=len(unit) == 1 and name in {"payload", "child_line"})


@pytest.fixture(scope="module")
def served(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Served]:
    """A controller with a module whose verbs requests may name."""
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with Cluster(module_database_url, folder) as cluster, servers.Served.use(cluster.start_controller()) as served:
        verbs = [schema_pb2.Verb(name="tick", schedule="* * * * *"), schema_pb2.Verb(name="ticks", schedule="every 5m")]
        module = schema_pb2.Module(name="fuzz", verbs=verbs)
        request = deployments_pb2.CreateDeploymentRequest(schema=module, digest="f" * 64)
        served.channel.unary_unary("/cronring.v1.Deployments/CreateDeployment", None, None)(
            request.SerializeToString(), timeout=60
        )
        yield served


@pytest.mark.parametrize("method", servers.METHODS, ids=lambda method: method.full_name.removeprefix("cronring."))
def test_no_request_is_an_error_that_nobody_foresaw(served: servers.Served, method) -> None:
    @settings(quickly, max_examples=(2 if method.server_streaming else 5) * MORE)
    @given(messages(method.input_type))
    def test(request: bytes) -> None:
        servers.ask(method, request)

    test()
    served.check()


def test_no_runner_breaks_its_stream_in_an_unforeseen_way(served: servers.Served) -> None:
    said = st.lists(messages(runner_pb2.RunnerMessage.DESCRIPTOR), max_size=6).map(servers.SEPARATOR.join)

    @settings(quickly, max_examples=10 * MORE)
    @given(st.sampled_from([b"\x00", b"\x01", b"\x01"]), said | data_for("runner_stream"))
    def test(first: bytes, data: bytes) -> None:
        servers.runner_stream(first + data)

    for data in seeds("runner_stream"):
        servers.runner_stream(data)
    test()
    served.check()


@pytest.mark.parametrize("name", ["http_bytes", "grpc_bytes", "grpc_request"])
def test_bytes_that_are_no_protocol_harm_nobody(served: servers.Served, name: str) -> None:
    @settings(quickly, max_examples=10 * MORE)
    @given(data_for(name))
    def test(data: bytes) -> None:
        held(TARGETS[name], data, memory=False)

    for data in seeds(name):
        held(TARGETS[name], data, memory=False)
    test()
    served.check()
