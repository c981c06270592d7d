"""The clients as programs use them, over a real gRPC server with canned answers."""

from collections.abc import Iterator

import pytest

from tests.unit.cli.conftest import no_settings_of_this_machine
from tests.unit.cli.fake_api import FakeApi, serving

__all__ = ["no_settings_of_this_machine"]


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving(FakeApi()) as served:
        yield served
