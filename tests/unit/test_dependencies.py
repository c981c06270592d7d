"""What `make audit` makes of a package registry's answers, and what it fails for."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from packaging.version import Version
from pip_audit._service import ResolvedDependency

from tests.support import dependencies
from tests.support.dependencies import OURS, Registry, audit, installed, needed, told

HOLE: dict[str, Any] = {
    "id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "summary": "a hole", "fixed_in": ["2.1"], "withdrawn": None,
}  # fmt: skip


class Pages:
    """A registry: what it has, by the end of an address. `asked`: for what."""

    def __init__(self, pages: Mapping[str, Mapping[str, Any]]) -> None:
        self._pages = pages
        self.asked: list[str] = []

    def get(self, *, url: str, timeout: int) -> requests.Response:
        assert timeout > 0
        path = url.partition("/pypi/")[2]
        self.asked.append(path)
        answer = requests.Response()
        answer.status_code = 200 if path in self._pages else 404
        answer._content = json.dumps(self._pages.get(path, {})).encode()
        return answer


def page(version: str, *holes: dict[str, Any]) -> dict[str, Any]:
    return {"info": {"version": version}, "vulnerabilities": list(holes)}


def registry(pages: Pages) -> Registry:
    made = Registry()
    made._get = pages.get
    return made


def package(name: str, version: str) -> ResolvedDependency:
    return ResolvedDependency(name, Version(version))


def test_a_hole_of_what_cronring_needs_fails_and_others_are_told() -> None:
    pages = Pages({"asyncpg/2.0/json": page("2.0", HOLE), "pytest/2.0/json": page("2.0", HOLE)})
    audited = audit(registry(pages), [package("asyncpg", "2.0"), package("pytest", "2.0")])
    lines, fails = told(audited, needed(OURS))
    assert fails
    assert lines[0] == "asyncpg: PYSEC-2026-1 (cronring needs it), fixed in 2.1: a hole"
    assert lines[1].startswith("pytest: PYSEC-2026-1 (of the tests alone)")
    assert lines[-1] == "2 packages audited, 2 known vulnerabilities"
    assert told(audited, {"another"})[1] is False


def test_the_page_of_the_latest_version_is_taken_where_that_is_installed() -> None:
    pages = Pages({"fresh/json": page("2.0", HOLE), "old/json": page("2.0")})
    audited = audit(registry(pages), [package("fresh", "2.0"), package("old", "1.0")])
    assert pages.asked == ["fresh/2.0/json", "fresh/json", "old/1.0/json", "old/json"]
    assert (len(audited.found), audited.unknown, audited.looked_at) == (1, ["old 1.0"], 1)
    assert "not audited, as the registry has no page of that version: old 1.0" in told(audited, set())[0]


def test_where_nothing_has_a_page_it_says_so_loudly() -> None:
    lines, fails = told(audit(registry(Pages({})), [package("old", "1.0")]), set())
    assert "NOTHING WAS AUDITED: the registry has a page of none of these." in lines
    assert not fails


@pytest.mark.parametrize("error", [requests.ConnectionError("no route"), requests.ReadTimeout("slow")])
def test_a_registry_that_can_not_be_asked_fails_nobody_and_is_told_loudly(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(**_: object) -> requests.Response:
        raise error

    def cut_off() -> Registry:
        made = Registry()
        made._get = away
        return made

    monkeypatch.setattr(dependencies, "Registry", cut_off)
    assert dependencies.main() == 0
    assert "NOTHING WAS AUDITED: the package registry can't be asked" in capsys.readouterr().out


def test_what_cronring_needs_is_what_is_installed_with_it() -> None:
    ours, here = needed(OURS), {each.canonical_name for each in installed()}
    assert {"asyncpg", "cryptography", "grpcio", "pyjwt", "cffi", "yarl"} <= ours <= here | {"colorama"}
    assert not ours & {"pytest", "ruff", "cronring", "cronring-sdk"}
