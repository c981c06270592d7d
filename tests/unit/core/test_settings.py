"""The relations between settings that invariants rest on."""

from dataclasses import fields
from typing import Any

import pytest

from cronring.controller.core.settings import ClusterSettings, SettingsError


def test_the_defaults_hold() -> None:
    assert ClusterSettings().runner_fence_ms < ClusterSettings().runner_lost_after_ms


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"lease_ms": 0}, "lease_ms is 0"),
        ({"lease_renew_ms": 2_500}, "2 x lease_renew_ms"),
        ({"lease_margin_ms": 2_500}, "2 x lease_margin_ms"),
        ({"refetch_interval_ms": 90_000}, "refetch_interval_ms"),
        ({"runner_beat_ms": 1_600}, "5 x runner_beat_ms"),
        ({"runner_lost_after_ms": 8_499}, "runner_fence_ms"),
        ({"runner_fence_ms": 8_251}, "runner_fence_ms"),
        ({"hard_timeout_grace_ms": 17_500}, "2 x runner_lost_after_ms"),
        ({"probe_timeout_ms": 500}, "probe_timeout_ms"),
        ({"default_jitter": "5m:3"}, "default_jitter"),
        ({"default_jitter": "+-10%"}, "no job starts before its tick"),
    ],
)
def test_what_would_break_an_invariant_is_refused(changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ClusterSettings(**changed)


@pytest.mark.parametrize("name", [field.name for field in fields(ClusterSettings) if field.name != "default_jitter"])
@pytest.mark.parametrize("value", [0, -1, 2**31, 2**63, 10**30])
def test_a_number_is_refused_at_once_where_the_database_would_refuse_it_later(name: str, value: int) -> None:
    if name in {"timeout_ms", "window_ms"} and value == 2**31:  # 24 days: there is room for that
        assert getattr(ClusterSettings(**dict[str, Any]({name: value})), name) == value
        return
    if name == "refetch_interval_ms" and value == 2**31:
        assert ClusterSettings(refetch_interval_ms=value, window_ms=value + 1).refetch_interval_ms == value
        return
    with pytest.raises(SettingsError, match=rf"{name} is {value}.*from 1 to \d+"):
        ClusterSettings(**dict[str, Any]({name: value}))
