"""The cluster's jitter in a job's own policy."""

import pytest

from cronring.schema.spread import has_default_jitter, stored_policy

DEFAULT = "5m:3s 1h:10s 1d:30s 7d:60s"


@pytest.mark.parametrize(
    ("schedule", "jitter"),
    [
        ("* * * * * *", ""),
        ("* * * * *", ""),
        ("*/4 * * * *", ""),
        ("*/5 * * * *", "3s"),
        ("* 9 * * *", ""),  # often, when it runs at all
        ("0,1 9 * * *", ""),
        ("0 * * * *", "10s"),
        ("0 9 * * *", "30s"),
        ("0 9 * * 1-5", "30s"),
        ("0 9 * * 1", "1m"),
        ("0 9 29 2 *", "1m"),
        ("0 9 1 1 * 2030", ""),  # one tick
        ("every 30s", ""),
        ("every 5m", "3s"),
        ("every 6h", "10s"),
        ("every 2d", "30s"),
        ("at 2026-03-01T08:00:00Z", ""),
        ("manual", ""),
    ],
)
def test_by_how_often_a_job_runs(schedule: str, jitter: str) -> None:
    assert stored_policy(schedule, "", DEFAULT) == (f'{{"jitter":"{jitter}"}}' if jitter else "")


def test_what_a_job_states_stays_and_so_does_the_rest_of_its_policy() -> None:
    for stated in ("off", "2s", "10%"):
        policy = f'{{"jitter":"{stated}"}}'
        assert stored_policy("0 9 * * *", policy, DEFAULT) == policy
    zoned = '{"timezone":"Europe/Berlin"}'
    assert stored_policy("0 9 * * *", zoned, DEFAULT) == '{"timezone":"Europe/Berlin","jitter":"30s"}'
    assert stored_policy("0 9 * * *", zoned, "") == zoned
    assert stored_policy("0 9 * * *", zoned, "off") == zoned


def test_auto_stays_a_word_where_it_does_anything() -> None:
    for schedule in ("0 9 * * *", "every 1h"):
        assert stored_policy(schedule, "", "auto") == '{"jitter":"auto"}'
        assert has_default_jitter(schedule, '{"jitter":"auto"}', "auto")
        assert not has_default_jitter(schedule, '{"jitter":"auto"}', "off")
    for schedule in ("* * * * *", "every 30s", "at 2026-03-01T08:00:00Z", "manual"):
        assert stored_policy(schedule, "", "auto") == ""
    assert stored_policy("0 9 * * *", '{"jitter":"auto"}', "1d:2s") == '{"jitter":"auto"}'
