"""How statements are written, and what they are run by."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cronring.sql.loader import Loaded, Parameter, loaded, numbered
from cronring.sql.parameters import CountSkips, GetNow, SetFailing
from cronring.sql.records import Statement

if TYPE_CHECKING:  # each of these would be a mistake, and mypy says so: it complains where there is nothing to ignore

    def mistakes(counted: "list[str]", unsure: int | None) -> None:
        SetFailing(job_ids=[1], execution_ids=[1], ticks=[1], tick=[1])  # type: ignore[call-arg]  # a name that is none
        SetFailing(job_ids=[1], execution_ids=[1])  # type: ignore[call-arg]  # one is missing
        SetFailing([1], [1], [1])  # type: ignore[call-arg]  # by position
        SetFailing(job_ids=[1], execution_ids=counted, ticks=[1])  # type: ignore[arg-type]  # another type
        SetFailing(job_ids=[1], execution_ids=[unsure], ticks=[1])  # type: ignore[list-item]  # null
        CountSkips(job_ids=3, after_ticks=[3], until_tick=[3])  # type: ignore[arg-type]  # two in each other's place


LINES_MAX = 80


def test_names_become_numbers_by_their_first_appearance() -> None:
    found = numbered("SELECT :later, :job_ids::bigint[], :later WHERE id = ANY(:job_ids)")
    assert found.text == "SELECT $1, $2::bigint[], $1 WHERE id = ANY($2)"
    assert found.names == ("later", "job_ids")


def test_marks_say_what_may_be_null() -> None:
    found = numbered("SELECT coalesce(:payload?, ''), :next_ticks[?]::bigint[], :now, :payload")
    assert found == Loaded(
        "SELECT coalesce($1, ''), $2::bigint[], $3, $1",
        (Parameter("payload", "?"), Parameter("next_ticks", "[?]"), Parameter("now")),
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT now()::date, 'a'::text",
        "SELECT 'at :noon', 'it''s :noon'",
        'SELECT 1 AS "at :noon"',
        "SELECT 1 -- at :noon, it's $1",
        "SELECT 1 /* at :noon\n it's $1 */",
        "DO $$ BEGIN PERFORM ':noon', $1; END $$",
        "DO $body$ BEGIN PERFORM $$ :noon $$; END $body$",
        "SELECT a[1:n], a[(i):n], a[i:n], a[b[1]:n]",
        "SELECT jsonb '{}' ? 'a'",
    ],
)
def test_what_is_no_parameter_stays(text: str) -> None:
    assert numbered(text) == Loaded(text, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT $1", "parameters have names"),
        ("SELECT :now, $2", "parameters have names"),
        ("SELECT :jobIds", "lower_case"),
        ("SELECT :Job_ids", "lower_case"),
        ("SELECT :job__ids", "lower_case"),
        ("SELECT :1", "lower_case"),
        ("SELECT :now, :now?", "marked where it appears first"),
        ("SELECT :ticks?, :ticks[?]", "marked where it appears first"),
    ],
)
def test_another_spelling_fails_when_it_is_loaded(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        numbered(text)


@pytest.mark.parametrize("written", ["SELECT :job_id", "SELECT :key, :limit", "SELECT"])
def test_a_record_with_other_names_than_the_statement_fails_when_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setattr("cronring.sql.records.loaded", lambda: {"Written": numbered(written)})
    with pytest.raises(TypeError, match="make parameters"):

        class Written(Statement):
            key: str


def test_a_record_of_no_statement_fails_when_it_is_loaded() -> None:
    with pytest.raises(TypeError, match="make parameters"):

        class Unwritten(Statement): ...


def test_a_record_is_what_asyncpg_takes() -> None:
    record = SetFailing(ticks=[3], job_ids=[1], execution_ids=[2])
    assert tuple(record) == (loaded()["SetFailing"].text, [1], [2], [3])
    assert (record.name, record.ticks) == ("SetFailing", [3])
    assert tuple(GetNow()) == (loaded()["GetNow"].text,)


@pytest.mark.parametrize("given", [{}, {"job_ids": []}, {"job_ids": [], "execution_ids": [], "tick": []}])
def test_a_record_takes_its_own_parameters_alone(given: dict[str, list[int]]) -> None:
    with pytest.raises(TypeError, match="SetFailing takes"):
        SetFailing(**given)


def test_a_wrong_name_in_a_file_fails_at_the_start(tmp_path: Path) -> None:
    """As a process sees it that has that file: before it runs anything."""
    found = subprocess.run([sys.executable, "-c", _WRONG], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "SetFailing is not written with the parameters of its record" in found.stderr


_WRONG = """
from cronring.sql import loader
found = dict(loader.loaded())
found["SetFailing"] = loader.numbered(found["SetFailing"].text.replace("$1", ":jobs_id").replace("$2", ":execution_ids")
                                      .replace("$3", ":ticks"))
loader.loaded = lambda: found
import cronring.sql.parameters
"""


def test_each_statement_can_be_read_as_a_whole() -> None:
    """Lines of SQL: comments and empty lines aside."""
    lines = {
        name: sum(1 for line in found.text.splitlines() if line.strip() and not line.lstrip().startswith("--"))
        for name, found in loaded().items()
    }
    assert {name: count for name, count in lines.items() if count > LINES_MAX} == {}
