"""Addresses that strangers name are dialled only as HOST:PORT: no file, no name server, no other scheme of gRPC's."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from cronring.client.channel import Failover
from cronring.client.errors import ClientError
from cronring.controller.peers.reach import NO_ANSWER, unreachable
from cronring.controller.store.connect import connect
from cronring.protos.gossip.v1 import gossip_pb2, gossip_pb2_grpc
from cronring.protos.runner.v1 import runner_pb2
from tests.attacks.test_hostile_controllers import MODULE, Hostile
from tests.attacks.test_webhook_probes import Ends, listening
from tests.support.cluster import Cluster, Process, free_port
from tests.support.waiting import wait_until

INSERT = (
    "INSERT INTO controllers (id, grpc_address, http_address, pid, version, lease_expires_at) "
    "VALUES ($1, $2, '127.0.0.1:1', 1, '1', now() + interval '1 minute')"
)


class Baits:
    """A file's socket and a port that nobody has a reason to connect to; `came` names those that were."""

    def __init__(self, folder: Path) -> None:
        self.came: list[str] = []
        path = str(folder / "s")
        self._sockets = [socket.socket(socket.AF_UNIX), socket.socket()]
        self._sockets[0].bind(path)
        self._sockets[1].bind(("127.0.0.1", 0))
        port = self._sockets[1].getsockname()[1]
        self.addresses = (
            f"unix:{path}", f"unix://{path}", f"dns:127.0.0.1:{port}", f"dns:///127.0.0.1:{port}",
            f"ipv4:127.0.0.1:{port}", f"ipv6:[::ffff:127.0.0.1]:{port}", f"passthrough:///127.0.0.1:{port}",
            f"127.0.0.1:{port}\n", f"127.0.0.1:{port}\x00", f"\x1b[31m127.0.0.1:{port}", f" 127.0.0.1:{port}",
        )  # fmt: skip
        for each in self._sockets:
            each.listen()
            threading.Thread(target=self._watch, args=(each,), daemon=True).start()

    def _watch(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.came.append(str(listener.getsockname()))
                connection.close()

    def close(self) -> None:
        for each in self._sockets:
            each.close()


@pytest.fixture
def baits() -> Iterator[Baits]:
    with tempfile.TemporaryDirectory() as folder:  # short enough for a socket
        made = Baits(Path(folder))
        yield made
        made.close()


def printable(baits: Baits) -> list[str]:
    """Without what can't be in a process's arguments or a row."""
    return [address for address in baits.addresses if "\x00" not in address]


async def test_the_baits_would_be_taken(baits: Baits) -> None:
    async with grpc.aio.insecure_channel(baits.addresses[0]) as channel:
        channel.get_state(try_to_connect=True)
        await wait_until(lambda: bool(baits.came), "gRPC dials no files")


async def test_gossip(victim: Process, baits: Baits) -> None:
    """As a sender, as a rumor, and as one to be asked in another's place."""
    async with grpc.aio.insecure_channel(victim.grpc) as channel:
        gossip: Any = gossip_pb2_grpc.GossipStub(channel)
        for address in baits.addresses:
            rumor = gossip_pb2.Update(member_id="m", address=address, status=gossip_pb2.STATUS_ALIVE, incarnation=1)
            own: Any = {"sender_id": "s", "sender_address": "127.0.0.1:1"}
            ping = gossip_pb2.Ping(sequence=1, target_id="")
            asked = gossip_pb2.PingRequest(sequence=1, target_id="m", target_address=address)
            for packet in (
                gossip_pb2.Packet(sender_id="s", sender_address=address, ping=ping),
                gossip_pb2.Packet(**own, ping=ping, updates=[rumor]),
                gossip_pb2.Packet(**own, sync=gossip_pb2.Sync(request=True, table=[rumor])),
                gossip_pb2.Packet(**own, ping_request=asked),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await gossip.Deliver(packet)
                assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await asyncio.sleep(2)  # a probe of each member comes within a second
    assert baits.came == []


async def test_the_table_of_controllers(attacked: Cluster, baits: Baits) -> None:
    """Any role that may write it: who starts greets all that are in it."""
    connection = await connect(attacked.database_url, "test")
    try:
        for number, address in enumerate(printable(baits)):
            await connection.execute(INSERT, f"stranger-{number}", address)
        joining = await asyncio.to_thread(attacked.start_controller)
        await asyncio.to_thread(ask, joining, "doctor")
        assert joining.alive()
        joining.kill()
        attacked.controllers.remove(joining)
    finally:
        await connection.execute("DELETE FROM controllers WHERE id LIKE 'stranger-%'")
        await connection.close()
    assert baits.came == []


async def test_the_doctors_reach(baits: Baits) -> None:
    found = await unreachable(baits.addresses, None)
    assert set(found.values()) == {"its address is no HOST:PORT"}
    assert len(found) == len(baits.addresses)
    assert baits.came == []


async def test_the_doctor_tells_classes_of_failure_only() -> None:
    """Not the operating system's words, nor those of whoever answers: of an address that a stranger named."""
    silent = socket.create_server(("127.0.0.1", 0))
    async with listening(Ends(b"HTTP/1.1 404 hunter2\r\n\r\n")) as port:
        asked = {
            f"127.0.0.1:{port}": "what listens there is no controller",
            f"127.0.0.1:{silent.getsockname()[1]}": NO_ANSWER,
            f"127.0.0.1:{free_port()}": "nothing listens there",
            "[ff02::1]:1": NO_ANSWER,  # no route
            "no-such-host.invalid:1": NO_ANSWER,
        }
        assert await unreachable(asked, None) == asked
    silent.close()


@pytest.mark.parametrize("kind", ["welcome", "beat_ack"])
async def test_a_runner(kind: str, baits: Baits, tmp_path: Path) -> None:
    peers = printable(baits)
    if kind == "welcome":
        told = runner_pb2.ControllerMessage(
            welcome=runner_pb2.Welcome(controller_id="c", runner_beat_ms=1_000, runner_fence_ms=8_000, addresses=peers)
        )
    else:
        told = runner_pb2.ControllerMessage(beat_ack=runner_pb2.BeatAck(sequence=1, addresses=peers))
    with Cluster("unused", tmp_path) as cluster:
        async with Hostile(told.SerializeToString(), grpc.Compression.NoCompression) as hostile:
            runner = cluster.start_runner(MODULE, extra=("--controllers", hostile.address))
            await wait_until(lambda: hostile.asked >= 3, "it doesn't connect again")
            assert runner.alive(), runner.tail()
    assert baits.came == []


async def test_the_command_line_and_its_client(baits: Baits) -> None:
    for address in printable(baits)[:5]:
        done = await asyncio.to_thread(ask, address, "jobs", "list")
        assert done.returncode in {1, 2, 3}, done
        assert "Traceback" not in done.stderr
    for address in baits.addresses:
        with pytest.raises(ClientError, match="HOST:PORT"):
            Failover([address], 1.0, None)._channel(address)
    assert baits.came == []


def ask(to: Process | str, *command: str) -> "subprocess.CompletedProcess[str]":
    address = to if isinstance(to, str) else to.grpc
    words = [sys.executable, "-m", "cronring.cli.main", *command, "--controllers", address]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
