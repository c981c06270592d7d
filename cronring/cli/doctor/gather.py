"""Asks every controller, and the database: over its own URL, or through a controller."""

import asyncio
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final, NamedTuple

from cronring.cli.credentials import connect
from cronring.client import AsyncClient
from cronring.client.doctor import ControllerReport, NoReport
from cronring.controller.core.doctor.finding import Finding, Verdict, found, problem, unchecked
from cronring.controller.core.settings import ClusterSettings, SettingsError
from cronring.controller.store.doctor import examine

TIMEOUT_S: Final = 3.0  # of which a controller spends one at peers that don't answer
CONVERGED_S: Final = 3.0  # how long a change of the ring may take that is under way


class Gathered(NamedTuple):
    """`silent`: asked, and no answer. `database`: findings; `..._reached`: there are any that say more than that."""

    reports: tuple[ControllerReport, ...]
    silent: tuple[NoReport, ...]
    database: list[Finding]
    database_reached: bool


async def gather(given: tuple[str, ...], database_url: str | None, schema: str, fallback: tuple[str, ...]) -> Gathered:
    """`given`: addresses of controllers; more are learned from these, and from the database's `controllers` table.

    `fallback`: asked where neither is given.
    """
    asked = _Asked()
    async with connect(given or fallback, TIMEOUT_S) as client:
        await asked.all_of(client, given or (() if database_url else fallback))
        if database_url is None:
            findings, reached = await _through_controllers(client, asked.reports)
        else:
            examined = await examine(database_url, settings_of(asked.reports), schema=schema)
            findings, reached = examined.findings, examined.reached
            await asked.all_of(client, examined.addresses)
        if len({report.ring_digest for report in asked.reports}) > 1:
            await asyncio.sleep(CONVERGED_S)  # what is only under way is no finding
            await asked.again(client)
    return Gathered(asked.reports, asked.silent, findings, reached)


class _Asked:
    """Answers by address, and whom they name beside."""

    def __init__(self) -> None:
        self._answers: dict[str, ControllerReport | NoReport] = {}

    @property
    def reports(self) -> tuple[ControllerReport, ...]:
        """One for each controller, by id, though it may have answered at several addresses."""
        by_id = {each.id: each for each in self._answers.values() if isinstance(each, ControllerReport)}
        return tuple(by_id[controller_id] for controller_id in sorted(by_id))

    @property
    def silent(self) -> tuple[NoReport, ...]:
        return tuple(each for each in self._answers.values() if isinstance(each, NoReport))

    async def all_of(self, client: AsyncClient, addresses: Iterable[str]) -> None:
        """Ask there, and wherever the answers point to, until nobody new is named."""
        while waiting := [address for address in dict.fromkeys(addresses) if address not in self._answers]:
            answers = await client.doctor.controllers(waiting)
            self._answers.update(zip(waiting, answers, strict=True))
            addresses = [address for report in self.reports for address in _named(report)]

    async def again(self, client: AsyncClient) -> None:
        """Those that have answered."""
        known = [report.address for report in self.reports]
        for address in known:
            del self._answers[address]
        await self.all_of(client, known)


def _named(report: ControllerReport) -> Iterable[str]:
    return (member.grpc_address for member in report.members if member.status != "left")


async def _through_controllers(
    client: AsyncClient, reports: tuple[ControllerReport, ...]
) -> tuple[list[Finding], bool]:
    """What one of them finds of its database; first those are asked that reach it."""
    why = []
    for report in sorted(reports, key=lambda report: not report.database_ok):
        answer = await client.doctor.database(report.address)
        if not isinstance(answer, NoReport):
            findings = [Finding(each.check, Verdict(each.verdict), each.seen, each.advice) for each in answer]
            return findings, True
        why.append(f"{report.id}: {answer.reason}")
    if not why:
        return [unchecked("database", "no controller answered; give --database-url to check it from here")], False
    return [found("database", [problem("; ".join(why), "Give --database-url to check it from here.")], "")], False


def settings_of(reports: tuple[ControllerReport, ...]) -> ClusterSettings:
    """The cluster's, as far as somebody told them; else the defaults."""
    whole = {field.name for field in fields(ClusterSettings) if isinstance(field.default, int)}
    for report in reports:
        try:
            told: dict[str, Any] = {name: int(value) for name, value in report.settings.items() if name in whole}
            return ClusterSettings(**told)
        except (ValueError, SettingsError):  # of another release
            continue
    return ClusterSettings()
