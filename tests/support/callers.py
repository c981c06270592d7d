"""Callers with names, for tests of who may do what."""

import time
from typing import Any

from cronring.controller.api.judging import Known
from cronring.controller.api.policy import Audience
from cronring.controller.api.throttle import Allowances, Throttle
from cronring.controller.core.rates import Rate
from cronring.controller.errors import Unauthenticated
from cronring.controller.ports.audit_chain import OnRefusal
from cronring.controller.ports.identity import TokenRefused
from cronring.controller.runtime.refusals import CODES
from cronring.schema.identity import Kind, Principal, RoleGrant


class NamedCallers:
    """A Verifier whose tokens are `test-NAME`. `asked`: the tokens that it was asked for."""

    def __init__(self, **grants: tuple[RoleGrant, ...]) -> None:
        self.principals = {name: Principal(Kind.TOKEN, name, given) for name, given in grants.items()}
        self.asked: list[str] = []

    def knows(self, token: str) -> bool:
        return token.startswith("test-")

    async def principal(self, token: str) -> Principal:
        self.asked.append(token)
        found = self.principals.get(token.removeprefix("test-"))
        if found is None:
            raise TokenRefused("this token was revoked")
        return found


async def no_certificate(audience: Audience, _: Any) -> Principal:
    raise Unauthenticated(f"this call is of {audience}, and has no certificate")


def judge_of(callers: NamedCallers) -> Known:
    return Known([callers], no_certificate, unlimited())


def unlimited() -> Throttle:
    """Nobody calls too often."""
    plenty = Rate(1_000_000, 1_000_000)
    return Throttle(Allowances(plenty, 1_000, plenty, plenty, plenty, 1_000), time.monotonic_ns)


def bearer(name: str) -> tuple[tuple[str, str], ...]:
    """A call's metadata."""
    return (("authorization", f"Bearer test-{name}"),)


def counting(refused: list[str]) -> OnRefusal:
    """Takes what is refused, as a controller does."""

    def refuse(what: str, count: int = 1, *, why: str = "") -> None:
        assert (what in CODES) == bool(why), "who is refused for who they are is told why, and it goes on record"
        refused.extend([what] * count)

    return refuse
