"""Grants of runners without a database, for tests of those who ask for them."""

import asyncio
from typing import Final

from cronring.controller.errors import StoreUnavailable
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.ports.tokens import GrantInForce, RunnerGrant

GRANT: Final = RunnerGrant(7, "east", "billing", (), False, True, None, 0, "ann", None, None, "")


class Grants:
    """A TokenStore, of which only this is asked. `found`: what has the name `east`; `joins`: what enrolls."""

    def __init__(self) -> None:
        self.found: GrantInForce | None = GrantInForce(GRANT, None)
        self.joins: RunnerGrant | None = GRANT
        self.away = False
        self.hangs = False
        self.asked: list[str] = []

    async def runner_grant(self, name: str) -> GrantInForce | None:
        self.asked.append(name)
        if self.away:
            raise StoreUnavailable("it is away")
        if self.hangs:
            await asyncio.Event().wait()
        return self.found

    async def take_join(self, _: bytes) -> RunnerGrant:
        if self.away:
            raise StoreUnavailable("it is away")
        if self.joins is None:
            raise TokenRefused("this join token is not known here")
        return self.joins
