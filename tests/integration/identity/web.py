"""Two controllers' HTTPS on one PostgreSQL, two issuers, and browsers: what the tests of logins begin with."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from cronring.controller.api.http import HttpServer
from cronring.controller.api.judging import Known
from cronring.controller.api.login import LoginParts
from cronring.controller.api.login_attempts import Attempts
from cronring.controller.identity.login import Logins
from cronring.controller.identity.settings import GrantRule, IssuerSettings, LoginSettings
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.ports.clock import Clock
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.services.identities import WantedToken, make_token
from cronring.controller.services.tokens import TokenVerifier
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.controller.store.web_sessions import PostgresWebSessions
from cronring.controller.web import Web
from cronring.schema.identity import Role
from cronring.trust.holding import CertificateFolder
from cronring.trust.web import server_context
from tests.support.boxes import BOX
from tests.support.callers import counting, no_certificate, unlimited
from tests.support.issuer import AUDIENCE, CLIENT_ID, TestIssuer
from tests.support.secured import Pki
from tests.support.web_browser import Browser

SRE: Final = GrantRule("sre", Role.OPERATOR, "*", "groups")


class Late:
    """A clock whose wall time can be moved."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self.later_us = 0

    def now_ns(self) -> int:
        return self._real.now_ns()

    def wall_us(self) -> int:
        return self._real.wall_us() + self.later_us


class Replica:
    """A controller, as browsers see it. `told`: its log; `refused`: its counter."""

    def __init__(self) -> None:
        self.web = Web()
        self.base = ""
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.refused: list[str] = []

    def info(self, event: str, **values: str | int | float | bool) -> None:
        self.told.append((event, values))

    warning = info


class Offices:
    """`first.base` is where issuers send people back to."""

    def __init__(self, pki: Pki, tokens: PostgresTokens, corp: TestIssuer, other: TestIssuer, clock: Late) -> None:
        self.pki = pki
        self.tokens = tokens
        self.corp = corp
        self.other = other
        self.clock = clock
        self.first, self.second = Replica(), Replica()

    @property
    def base(self) -> str:
        return self.first.base

    async def token(self, name: str = "me", role: Role = Role.ADMIN) -> str:
        return (await make_token(self.tokens, WantedToken(name, ((role, "*"),), None, "tests")))[1]

    def browser(self) -> Browser:
        return Browser(self.pki.ca)


def settings_of(name: str, issuer: TestIssuer, login: LoginSettings) -> IssuerSettings:
    return IssuerSettings(name, issuer.url, AUDIENCE, issuer.jwks_url, grants=(SRE,), login=login)


@asynccontextmanager
async def open_offices(database_url: str, folder: Path) -> AsyncIterator[Offices]:
    """Issuers `corp`, a client with a secret, and `other`, a public one."""
    async with AsyncExitStack() as stack:
        corp, other = await stack.enter_async_context(TestIssuer()), await stack.enter_async_context(TestIssuer())
        corp.client_secret = "a secret: 100%"
        secret = folder / "corp.secret"
        secret.write_text(f"{corp.client_secret}\n")
        issuers = (
            settings_of("corp", corp, LoginSettings(CLIENT_ID, secret_file=secret)),
            settings_of("other", other, LoginSettings(CLIENT_ID)),
        )
        database = await Database.open(database_url, "cronring test web", 4)
        stack.push_async_callback(database.close)
        offices = Offices(Pki(folder / "pki"), PostgresTokens(database), corp, other, Late())
        for each in (offices.first, offices.second):
            await _served(stack, offices, each, database, issuers)
        yield offices


async def _served(
    stack: AsyncExitStack, offices: Offices, replica: Replica, database: Database, issuers: tuple[IssuerSettings, ...]
) -> None:
    clock: Clock = offices.clock
    server = HttpServer(lambda: None, lambda: b"", counting(replica.refused), replica.web.door, replica.web.login)
    tls = server_context(CertificateFolder(offices.pki.controller("c1")))
    replica.base = f"https://127.0.0.1:{await server.start('127.0.0.1', 0, tls)}"
    stack.push_async_callback(server.stop)
    jwts = JwtVerifier(issuers, clock)
    stack.push_async_callback(jwts.close)
    logins = Logins(issuers, jwts, clock)
    stack.push_async_callback(logins.close)
    throttle = unlimited()
    parts = LoginParts(
        tokens=Known([TokenVerifier(offices.tokens, clock.now_ns), jwts], no_certificate, throttle),
        known=offices.tokens,
        sessions=PostgresWebSessions(database),
        issuers={each.name: each for each in logins.issuers},
        box=BOX,
        public_url=offices.base,
        attempts=Attempts(clock.now_ns),
        now_us=clock.wall_us,
        log=replica,
        refused=counting(replica.refused),
    )
    replica.web.open(parts, throttle, clock.now_ns)
