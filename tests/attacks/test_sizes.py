"""Few bytes that would become many, on every method: refused before they grow, with a status that says why."""

from typing import Final

import grpc
import pytest

from cronring.protos.cronring.v1 import jobs_pb2
from tests.attacks.wire import CLEAN, METHODS, Peak, connected, growing, path_of
from tests.support.cluster import Process

BOMB: Final = 32 << 20  # inflated; gRPC's own bound of a message was as large
GROWN_MAX: Final = 128 << 20  # what the largest allowed request costs while it is read
# What is so large, or compressed, gRPC refuses before it knows the method: some of all kinds stand for all.
SOME: Final = METHODS[::6]


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_bodies_are_not_inflated(victim: Process, compression: grpc.Compression) -> None:
    with connected(victim) as caller, Peak(victim) as peak:
        for method in SOME:
            status, words = caller.ask(method, growing(method.input_type, BOMB), compression)
            assert (status in CLEAN, bool(words)) == (True, True), (path_of(method), status, words)
            assert peak.grown < GROWN_MAX, (path_of(method), peak.grown >> 20)


def test_bodies_that_grow_when_they_are_read_are_refused(victim: Process) -> None:
    """Of all lengths: what one bound lets through is for the next one."""
    with connected(victim) as caller, Peak(victim) as peak:
        for method in METHODS:
            for size in (60_000, 250_000, 1 << 20, 7 << 20, *([BOMB] if method in SOME else [])):
                status, words = caller.ask(method, growing(method.input_type, size))
                assert (status in CLEAN, bool(words)) == (True, True), (path_of(method), size, status, words)
                assert peak.grown < GROWN_MAX, (path_of(method), size, peak.grown >> 20)


def test_refusing_again_and_again_holds_nothing(victim: Process) -> None:
    """gRPC keeps what an abort passed on its way until the collector comes by, which it does seldom."""
    methods = {method.name: method for method in METHODS}
    unfit = jobs_pb2.CreateJobRequest(module="no", verb="no", name="no", spec=jobs_pb2.JobSpec(payload="a" * 65_000))
    large = methods["CreateDeployment"]
    with connected(victim) as caller, Peak(victim) as peak:
        for _ in range(40):
            assert caller.ask(large, growing(large.input_type, 7 << 20))[0] in CLEAN
        for _ in range(2_000):
            assert caller.ask(methods["CreateJob"], unfit.SerializeToString())[0] is grpc.StatusCode.NOT_FOUND
    assert peak.grown < GROWN_MAX, peak.grown >> 20
