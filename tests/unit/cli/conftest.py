"""The CLI as users call it, over a real gRPC server with canned answers."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cronring.cli.root import cli
from tests.unit.cli.fake_api import FakeApi, serving

Cronring = Callable[..., Result]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving(FakeApi()) as served:
        yield served


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in list(os.environ):
        if name.startswith("CRONRING_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CRONRING_INSECURE", "1")  # what answers here has no certificates


@pytest.fixture
def cronring() -> Cronring:
    """`cronring("jobs", "list")`; the exception is raised unless it is an exit."""

    def call(*arguments: str, **environment: str) -> Result:
        return CliRunner().invoke(cli, list(arguments), env=environment, catch_exceptions=False)

    return call


@pytest.fixture
def asked(cronring: Cronring, api: FakeApi) -> Cronring:
    """The same, pointed at `api`."""
    return lambda *arguments: cronring(*arguments, CRONRING_CONTROLLERS=api.address)
