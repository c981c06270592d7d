"""docs/scaling.md: reckoned from results, fresh, and nothing made up where there is no result."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "make_scaling.py"))


def test_the_page_has_the_figures_of_today(script: dict[str, Any]) -> None:
    page = (DOCS / "scaling.md").read_text("utf-8")
    assert script["made"](page, script["read"]()) == page, "run `python docs/make_scaling.py`"


def test_no_figure_of_a_kept_result_is_called_missing(script: dict[str, Any]) -> None:
    """A result whose figures have other names now must not turn a line of the page into `not measured`."""
    page = (DOCS / "scaling.md").read_text("utf-8")
    missing = re.findall(r"not (?:measured|tried) \(([^)]*)\)", page)
    files = {file for words in missing for file in re.findall(r"(\w+)\.json", words)}
    assert not files & set(script["read"]()), missing


def test_what_is_missing_is_named_and_nothing_follows_from_it(script: dict[str, Any]) -> None:
    made = script["figures"]({})
    for name in ("steady.json: 1000_controllers_cpu_ms", "stored.json: wal_bytes_each", "limits.json", "burst.json"):
        assert name in made
    assert "busy" not in made
    assert "a day" not in made


def test_cores_follow_from_the_highest_rate_that_was_measured(script: dict[str, Any]) -> None:
    """0.1 ms is one core at 10,000/s, and two if none is to be busier than 70 %."""
    figures = {"1000_controllers_cpu_ms": 0.1, "100_controllers_cpu_ms": 3.0, "500_runners_cpu_ms": 0.7}
    made = script["figures"]({"steady": {"figures": figures}})
    assert "| 0.1 ms at 1,000/s | 10,000/s a controller | 1 cores busy; controllers to have: 2 |" in made
    assert "1,429/s a core | 7 cores busy" in made
    other = script["figures"]({"steady": {"figures": {"controllers_cpu_s_per_1000_at_500": 0.1}}})
    assert "| 0.1 ms at 500/s | 10,000/s a controller |" in other


def test_idle_jobs_are_those_of_the_largest_size(script: dict[str, Any]) -> None:
    sizes = [
        {"jobs": jobs, "controller_cpu_ms_per_s": ms, "controller_rss_mib": 80.0}
        for jobs, ms in ((1_000, 17.6), (1_000_000, 14.6), (10_000, 17.3))
    ]
    made = script["figures"]({"idle": {"sizes": sizes}})
    assert "14.6 ms of CPU a second and 80 MiB a controller, with 1,000,000 jobs" in made
    assert "not measured (idle.json: sizes, controller_cpu_ms_per_s" in script["figures"]({})


def test_bytes_follow_from_what_an_execution_writes(script: dict[str, Any]) -> None:
    figures = {"wal_bytes_each": 2_000, "execution_bytes": 500, "job_bytes": 1_500, "window_job_bytes": 800}
    made = script["figures"]({"stored": {"figures": figures}})
    assert "20 MB/s, 1.7 TB a day" in made
    assert "432 GB, 3 TB, 13 TB" in made
    assert "1.4 GB in all controllers together" in made
    assert "not measured (stored.json: refetch_postgresql_us" in made


@pytest.mark.parametrize(("value", "words"), [(0.0421, "0.042"), (0.2, "0.2"), (19.72, "19.7"), (23_753.0, "23,753")])
def test_numbers_have_as_many_digits_as_mean_something(script: dict[str, Any], value: float, words: str) -> None:
    assert script["number"](value) == words
