"""The Python of docs/clients.md is run, block by block, by somebody who has only the environment."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.reading import ROOT, blocks
from tests.support.cluster import Cluster
from tests.support.waiting import TIMEOUT_S, until

PAGE: Final = "docs/clients.md"
SAID: Final = (
    "completed closed the day before", "completed closed the day before", "billing.close_day", "",
    "somebody was faster: every 3h", "completed",
)  # fmt: skip


@pytest.fixture
def cluster(database_url: str, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(database_url, tmp_path) as found:
        found.start_controller()
        found.start_runner(ROOT / "examples" / "billing.py")
        until(found.runners[0].tail, lambda: "billing.close_day" in {job["key"] for job in found.cli("jobs", "list")})
        yield found


def test_every_block_does_what_its_page_says(cluster: Cluster) -> None:
    address = cluster.controllers[0].grpc
    environment = {**os.environ, "CRONRING_CONTROLLERS": address, "PYTHONUNBUFFERED": "1"}
    texts = [text for language, text in blocks(PAGE) if language == "python"]
    assert len(texts) == len(SAID)
    for text, said in zip(texts, SAID, strict=True):
        program = text.replace("127.0.0.1:7400", address)
        with subprocess.Popen(
            [sys.executable, "-c", program], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            if "events()" in text:
                cluster.cli("jobs", "trigger", "billing.close_day", "--wait")
            while process.poll() is None and "events()" in text:
                cluster.cli("jobs", "trigger", "billing.close_day", "--wait")  # until it listens
            out, err = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, err) == (0, ""), program
        assert said in out
