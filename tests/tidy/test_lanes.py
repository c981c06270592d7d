"""Every test is in one lane: `make test`, `make test-long`, or `make soak`."""

import re

from tests.lanes import BY_SERVER, LONG, TESTS, is_long, is_of_an_older_server, is_passed_over
from tests.tidy.test_tidy import ROOT


def test_what_is_listed_is_there_once() -> None:
    assert [name for name in LONG if not (TESTS / name).exists()] == []
    assert sorted(set(LONG)) == list(LONG)
    assert [name for name in LONG if is_long((TESTS / name).parent)] == [], "a folder that is listed holds these"


def test_what_is_of_an_older_server_is_read_by_both_lanes_and_is_long() -> None:
    for folder in BY_SERVER:
        file = next(file for file in sorted((TESTS / folder).glob("test_*.py")) if not is_long(file))
        assert is_of_an_older_server(file, ["postgres15"])
        assert not is_of_an_older_server(file, ["postgres18", "memory"])
        assert not is_passed_over(file, "not soak and not long")
        assert not is_passed_over(file, "long and not soak")
    assert not is_of_an_older_server(TESTS / "acceptance" / "test_demo.py", ["postgres15"])


def test_ci_runs_both_lanes_and_fails_for_either() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert re.findall(r"^lane ([\w-]+) \|\| failed=1$", script, re.MULTILINE) == ["test", "test-long"]
    assert script.rstrip().endswith('exit "$failed"')


def test_the_lanes_are_complements() -> None:
    chosen = re.findall(r"-m '([^']+)'", (ROOT / "Makefile").read_text())
    assert chosen == ["not soak and not long", "long and not soak", "not soak", "not soak and not long"]


def test_the_pythons_that_are_claimed_are_tried() -> None:
    claimed = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    (others,) = re.findall(r"^PYTHONS \?= .*\),(.*)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert claimed == ["3.11", *re.findall(r"python(3\.\d+)", others)]
