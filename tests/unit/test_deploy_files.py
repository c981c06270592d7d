"""docker-compose.yml and Dockerfile, held as text: no Docker engine runs in CI."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from cronring.cli.root import cli

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_what_the_compose_file_starts(compose: dict[str, Any]) -> None:
    names = set(compose["services"])
    assert names == {
        "postgres", "migrate", "trust", "grants", "controller-1", "controller-2", "controller-3", "runner-1",
        "runner-2",
    }  # fmt: skip
    for name in ("postgres", "controller-1", "controller-2", "controller-3", "runner-1", "runner-2"):
        assert compose["services"][name]["healthcheck"]["test"]


def options_of(command: click.Command) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts}


@pytest.mark.parametrize("service", ["migrate", "controller-1", "controller-2", "controller-3", "runner-1", "runner-2"])
def test_every_flag_in_the_compose_file_exists(compose: dict[str, Any], service: str) -> None:
    words = compose["services"][service]["command"]
    command = cli.commands[words[0]]
    flags = {word.split("=")[0] for word in words[1:] if word.startswith("--")}
    assert flags <= options_of(command), f"{service}: unknown {flags - options_of(command)}"


def test_published_ports_are_loopback_only(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} publishes {port}"


def test_the_image_copies_every_package() -> None:
    copied = set(re.findall(r"^COPY (\w+) \1$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    links = {path.name for path in (ROOT / "cronring").iterdir() if path.is_symlink()}
    assert copied == links | {"cronring", "sdk"}
