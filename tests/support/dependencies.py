"""Known vulnerabilities of what is installed here: `python -m tests.support.dependencies`, which CI runs.

pip-audit asks the package registry itself, which tells the advisories of a version beside its files. So nothing is kept
in this tree, and each run knows what the registry knows that day. Some mirrors have that page of the latest version
alone: where that is the one which is installed, it is taken. What has no page is listed as not audited.

Exit code 1: a package that cronring needs has a known vulnerability. What its tests need is told, and no reason to
fail. So is a registry that can't be asked: a change is not worse for that.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, distributions
from typing import Any, Final, NamedTuple

import requests
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from pip_audit._service import (
    ConnectionError as NotConnectedError,
)
from pip_audit._service import (
    Dependency,
    PyPIService,
    ResolvedDependency,
    ServiceError,
    VulnerabilityResult,
)

OURS: Final = ("cronring", "cronring-sdk")
ANSWER_S: Final = 20
LOUD: Final = "!" * 100


class Registry(PyPIService):  # type: ignore[misc]  # it ships no types
    """pip-audit's own service, with the page of the latest version where there is none of each."""

    def __init__(self) -> None:
        super().__init__(timeout=ANSWER_S)
        self._get: Any = self.session.get
        self.session.get = self._page

    def _page(self, url: str, timeout: int) -> requests.Response:
        answer: requests.Response = self._get(url=url, timeout=timeout)
        if answer.status_code != requests.codes.not_found:
            return answer
        package, version, page = url.rsplit("/", 2)
        latest: requests.Response = self._get(url=f"{package}/{page}", timeout=timeout)
        return latest if latest.ok and latest.json()["info"]["version"] == version else answer


class Audited(NamedTuple):
    """`unknown`: what the registry has no page of."""

    found: list[tuple[Dependency, VulnerabilityResult]]
    unknown: list[str]
    looked_at: int


def installed() -> list[ResolvedDependency]:
    """All but our own."""
    versions = {canonicalize_name(each.name): Version(each.version) for each in distributions()}
    return [ResolvedDependency(name, version) for name, version in sorted(versions.items()) if name not in OURS]


def needed(names: Iterable[str]) -> set[str]:
    """What these stand on, at any depth, without extras: what is installed wherever cronring is."""
    seen: set[str] = set()
    left = list(names)
    while left:
        name = canonicalize_name(left.pop())
        if name not in seen:
            seen.add(name)
            left.extend(_requirements(name))
    return seen - set(OURS)


def _requirements(name: str) -> Iterator[str]:
    try:
        texts = distribution(name).requires or []
    except PackageNotFoundError:  # for another system than this
        return
    for requirement in map(Requirement, texts):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


def audit(service: PyPIService, packages: list[ResolvedDependency]) -> Audited:
    """Raises NotConnectedError, ServiceError, requests.RequestException where the registry can't be asked."""
    found: list[tuple[Dependency, VulnerabilityResult]] = []
    unknown: list[str] = []
    for asked in packages:
        package, results = service.query(asked)
        if package.is_skipped():
            unknown.append(f"{asked.name} {asked.version}")
        found += [(package, result) for result in results]
    return Audited(found, unknown, len(packages) - len(unknown))


def told(audited: Audited, ours: set[str]) -> tuple[list[str], bool]:
    """Lines for people, and whether it is to fail."""
    lines, fails = [], False
    for package, result in audited.found:
        is_ours = package.canonical_name in ours
        fails = fails or is_ours
        fixed = ", ".join(map(str, result.fix_versions)) or "no version yet"
        whose = "cronring needs it" if is_ours else "of the tests alone"
        lines.append(f"{package.name}: {result.id} ({whose}), fixed in {fixed}: {result.description[:200]}")
    if audited.unknown:
        lines.append(f"not audited, as the registry has no page of that version: {', '.join(audited.unknown)}")
    if not audited.looked_at:
        lines += [LOUD, "NOTHING WAS AUDITED: the registry has a page of none of these.", LOUD]
    lines.append(f"{audited.looked_at} packages audited, {len(audited.found)} known vulnerabilities")
    return lines, fails


def main() -> int:
    try:
        lines, fails = told(audit(Registry(), installed()), needed(OURS))
    except (NotConnectedError, ServiceError, requests.RequestException) as error:
        print(LOUD, f"NOTHING WAS AUDITED: the package registry can't be asked: {error!r}", LOUD, sep="\n")
        return 0
    print(*lines, sep="\n")
    return int(fails)


if __name__ == "__main__":
    sys.exit(main())
