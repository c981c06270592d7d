"""Leaps of the virtual clock change nothing that anybody could see, and only skip what nobody does."""

import pytest

from cronring.virtual import engine as engines
from tests.unit.virtual.test_engine import HOUR_US, Played


@pytest.mark.parametrize(
    "outages",
    [
        # Each takes 20 s of CPU. The two that are soaked are parts of the third: calm hours, and PostgreSQL away.
        pytest.param((), marks=pytest.mark.soak),
        pytest.param(("database@2026-03-28T00:20+45m",), marks=pytest.mark.soak),
        ("runners@2026-03-28T00:31+35m", "database@2026-03-28T01:20+5m"),
        ("controllers@2026-03-28T00:59:58+3s",),
    ],
)
def test_with_leaps_or_without_it_is_the_same_story(outages: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    leaping = Played(2, *outages)
    monkeypatch.setattr(engines, "BOOT_US", 6 * HOUR_US)  # and so long every second passes
    stepping = Played(2, *outages)
    assert leaping.story == stepping.story != []
    assert leaping.skips == stepping.skips
