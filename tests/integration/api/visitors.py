"""Everybody who may come to a controller's ports, with what they show there: real tokens, JWTs and certificates."""

import datetime as dt
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cronring.controller.identity.settings import GrantRule
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.ports.tokens import NewRunnerGrant
from cronring.controller.runtime.clock import SystemClock
from cronring.controller.services.identities import WantedRunnerGrant, WantedToken, make_runner_grant, make_token
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.schema.identity import Role, RoleGrant
from cronring.schema.spiffe import controller_name, runner_name, server_name
from cronring.trust.channels import Tls
from tests.support.forging import held, self_signed, shown, signed_by_leaf
from tests.support.secured import CLUSTER, Pki
from tests.unit.identity.parts import KEY, OTHER, by_secret, claims, raw_token, with_keys

NAME: Final = server_name(CLUSTER)
HALF_AN_HOUR_S: Final = 1_800
QUARTER_S: Final = 900
RUNNER: Final = runner_name(CLUSTER, "default", "tests")
CONTROLLER: Final = controller_name(CLUSTER, "c1")


class Visitor(NamedTuple):
    """`tls` None: plaintext."""

    tls: Tls | None
    token: str = ""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()


class Visiting:
    """Those who come to one controller: its database is where tokens and grants are."""

    def __init__(self, database: Database, pki: Pki, folder: Path) -> None:
        self._tokens = PostgresTokens(database)
        self.pki = pki
        self._folder = folder
        self._open = Tls(pki.trusted, None, NAME)  # who shows no certificate

    def keys(self) -> JwtVerifier:
        """Of the issuer whose JWTs count."""
        rule = GrantRule("sre", Role.VIEWER, "billing", "groups")
        return JwtVerifier([with_keys(self._folder, grants=(rule,))], SystemClock())

    async def holders(self, roles: Mapping[str, Sequence[RoleGrant]]) -> dict[str, Visitor]:
        """Of tokens, by their names, and `user`: of a JWT."""
        made = {name: Visitor(self._open, await self._token(name, *grants)) for name, grants in roles.items()}
        return made | {"user": Visitor(self._open, KEY.sign(_claims()))}

    async def strangers(self) -> dict[str, Visitor]:
        """At the port of people: none of them is known. A certificate is nothing there."""
        root = RoleGrant(Role.ADMIN)
        good, revoked = await self._token("good", root), await self._token("revoked", root)
        await self._tokens.revoke_token((await self._tokens.get_token("revoked")).token_id, "test")
        pem = KEY.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        texts = {
            "no token": "",
            "a guess": "crt_guess",
            "one letter less": good[:-1],
            "a join token": await self._join_token(),
            "expired": await self._token("expired", root, lasts_ms=1),
            "revoked": revoked,
            "expired JWT": KEY.sign(_claims(exp=int(time.time()) - QUARTER_S)),
            "a JWT that is not valid yet": KEY.sign(_claims(nbf=int(time.time()) + QUARTER_S)),
            "a JWT for others": KEY.sign(_claims(aud="others")),
            "a JWT of others": KEY.sign(_claims(iss="https://others.example.org")),
            "a JWT by another key": OTHER.sign(_claims()),
            "a JWT by nobody": raw_token({"alg": "none", "typ": "JWT"}, _claims(), b""),
            "a JWT by the public key": by_secret(pem, _claims(), kid=KEY.kid),
        }
        members = {name: each for name, each in (await self.certified()).items() if not each.token}
        return {name: Visitor(self._open, text) for name, text in texts.items()} | members | self.forgers()

    async def certified(self) -> dict[str, Visitor]:
        """Who gets through the handshake at the port of members. Some have the token of everything besides."""
        pki, token = self.pki, await self._token("everything", RoleGrant(Role.ADMIN))
        for name in ("tests", "gone"):
            await self._tokens.create_runner_grant(NewRunnerGrant(name, "default", (), True, None, None, "test", None))
        await self._tokens.revoke_runner_grant((await self._tokens.get_runner_grant("gone")).grant_id, "test")
        names = {
            "runner": RUNNER,
            "revoked runner": runner_name(CLUSTER, "default", "gone"),
            "runner without a grant": runner_name(CLUSTER, "default", "never"),
            "runner of another namespace": runner_name(CLUSTER, "billing", "tests"),
            "another cluster's runner": runner_name("staging", "default", "tests"),
            "controller": CONTROLLER,
            "another cluster's controller": controller_name("staging", "c1"),
        }
        found = {
            name: Visitor(shown(pki.issue(each, where=name.replace(" ", "-")), pki.trusted))
            for name, each in names.items()
        }
        return found | {
            "runner with a token": found["runner"]._replace(token=token),
            "controller with a token": found["controller"]._replace(token=token),
        }

    def forgers(self) -> dict[str, Visitor]:
        """Whose certificates are none of this cluster's CA. At the port of members they get no connection."""
        others = Pki(self._folder / "others")
        roots = self.pki.trusted
        runner = self.pki.runner("tests")
        late = self.pki.issue(CONTROLLER, dt.timedelta(minutes=-4), "late")
        return {
            "another CA's controller": Visitor(shown(others.controller("c1"), roots)),
            "another CA's runner": Visitor(shown(others.runner("tests"), roots)),
            "self-signed": Visitor(held(self_signed(CONTROLLER), roots)),
            "signed by a runner": Visitor(held(signed_by_leaf(runner, CONTROLLER), roots)),
            "expired certificate": Visitor(shown(late, roots)),
        }

    def unconnected(self) -> dict[str, Visitor]:
        """Who gets no connection at any port: each end has to know the other."""
        others = Pki(self._folder / "strange")
        return {"plaintext": Visitor(None), "who trusts another CA": Visitor(Tls(others.trusted, None, NAME))}

    def uncertified(self) -> dict[str, Visitor]:
        return {"no certificate": Visitor(self._open)}

    async def _token(self, name: str, *grants: RoleGrant, lasts_ms: int | None = None) -> str:
        wanted = WantedToken(name, tuple((each.role.value, each.namespace) for each in grants), lasts_ms, "test")
        return (await make_token(self._tokens, wanted))[1]

    async def _join_token(self) -> str:
        """It enrolls a runner, and opens nothing else."""
        wanted = WantedRunnerGrant("joins", "default", (), False, False, None, None, "test")
        return (await make_runner_grant(self._tokens, wanted))[1]


def _claims(**changes: Any) -> dict[str, Any]:
    """Those of a good JWT, by the clock of this machine."""
    now = int(time.time())
    return claims(**({"iat": now - HALF_AN_HOUR_S, "exp": now + HALF_AN_HOUR_S} | changes))
