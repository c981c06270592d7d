"""A proxy that the environment names for the outside gets nothing of ours: controllers are inside."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.test_hostile_controllers import MODULE
from tests.support.cluster import Cluster
from tests.support.waiting import wait_until


class Proxy:
    """Hangs up on everybody, and counts them."""

    def __init__(self) -> None:
        self.asked = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        names = "http_proxy", "https_proxy", "grpc_proxy", "all_proxy"
        self.environment = {spelt: f"http://127.0.0.1:{port}" for name in names for spelt in (name, name.upper())}
        self.environment |= {"no_proxy": "", "NO_PROXY": ""}
        threading.Thread(target=self._hang_up, daemon=True).start()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.asked += 1
                connection.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    started = Proxy()
    yield started
    started.close()


async def test_runners_peers_and_the_command_line_go_straight(proxy: Proxy, database_url: str, tmp_path: Path) -> None:
    with Cluster(database_url, tmp_path, proxy.environment) as cluster:
        for _ in range(2):
            cluster.start_controller()
        runner = cluster.start_runner(MODULE)

        def connected() -> bool:
            assert runner.alive(), runner.tail()
            return runner.log.read_text().count('"controller_connected"') >= 2

        await wait_until(connected, lambda: f"no stream came about:\n{runner.tail()}")
        assert "peers" in await asyncio.to_thread(doctor, cluster)  # each controller calls the others
    assert proxy.asked == 0


def doctor(cluster: Cluster) -> str:
    """What it says, whatever it finds on this machine."""
    command = [sys.executable, "-m", "cronring.cli.main", "doctor", "-o", "json", "--controllers", cluster.addresses]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=60, env=cluster.environment, check=False)
    return asked.stdout
