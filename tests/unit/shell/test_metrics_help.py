"""HELP lines help: none merely repeats its metric's name, and none is missing."""

import dataclasses
import random
import re
from pathlib import Path

import pytest

from cronring.controller.config import ProcessConfig
from cronring.controller.core.node.node import Node
from cronring.controller.core.node.stats import Stats
from cronring.controller.core.settings import ClusterSettings
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.runtime.gauges import node_counters, node_gauges
from cronring.controller.runtime.help import HELP
from cronring.controller.runtime.metrics import Metrics
from cronring.controller.runtime.trust import Trust
from cronring.controller.runtime.webhooks import WebhookFigures
from tests.support.secured import DAY, Pki


def says_something(name: str, text: str) -> bool:
    """Four words at least that its name hasn't, and no word twice as long as people read."""
    own = set(re.findall(r"[a-z]+", name.lower()))
    new = set(re.findall(r"[a-z]+", text.lower())) - own
    foreign = not name.startswith("cronring_")  # of prometheus_client
    return len(new) >= (2 if foreign else 4) and len(text) <= 240


def test_what_says_nothing_is_found() -> None:
    assert not says_something("cronring_node_ends_wasted_total", "node ends wasted")
    assert not says_something("cronring_loop_lag_seconds", "The lag of the loop, in seconds")
    assert says_something("cronring_loop_lag_seconds", "How late the event loop wakes up")


@pytest.mark.parametrize("name", HELP)
def test_each_line_says_something(name: str) -> None:
    assert says_something(f"cronring_{name}", HELP[name])


def test_every_figure_of_a_node_and_of_webhooks_is_explained() -> None:
    node = Node("c-1", "127.0.0.1:7400", ClusterSettings(), random.Random(1), 1)
    figures = WebhookFigures()
    shown = {**node_counters(node)(), **node_gauges(node, "c-1")(), **figures.counters(), **figures.gauges()}
    assert shown.keys() <= HELP.keys()
    assert {f"node_{field.name}" for field in dataclasses.fields(Stats)} <= HELP.keys()


def test_what_a_controller_with_certificates_shows_is_explained(tmp_path: Path) -> None:
    config = ProcessConfig("postgresql://", certs=Pki(tmp_path).controller("c1"))
    metrics = Metrics()
    metrics.add_gauges(lambda: Trust(config).gauges(SystemClock()))
    metrics.add_gauges(lambda: {"issuer_keys_age_seconds": 1.0})
    text = metrics.text().decode()
    (left,) = re.findall(r"^cronring_certificate_own_expires_seconds (\S+)$", text, re.MULTILINE)
    assert 0 < float(left) < DAY.total_seconds()
    assert "cronring_certificate_public_expires_seconds" in text


def test_what_runs_here_is_told() -> None:
    metrics = Metrics()
    metrics.built(version="1.2.3", python="3.11.7")
    metrics.built(postgres="18.4")
    text = metrics.text().decode()
    assert 'cronring_build_info{postgres="18.4",python="3.11.7",version="1.2.3"} 1.0' in text
    assert "process_resident_memory_bytes" in text
