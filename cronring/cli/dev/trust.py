"""Who is who in a dev: a CA, certificates, a token and a runner's grant of its own, as a deployed cluster has them.

All of it lies in the data folder, for this user alone. With --data the CA and the token stay from one dev to the next.
"""

import contextlib
import datetime as dt
from pathlib import Path
from typing import Final, NamedTuple

from cronring.cli.dev.private import make_private
from cronring.controller.errors import Conflict, NotFound
from cronring.controller.ports.caller import calling
from cronring.controller.ports.tokens import NewRunnerGrant, TokenStore
from cronring.controller.services.identities import WantedToken, make_token
from cronring.controller.store.pool import Database
from cronring.controller.store.recording import database_principal
from cronring.controller.store.tokens import PostgresTokens
from cronring.schema.identity import Role
from cronring.schema.spiffe import DEFAULT_CLUSTER, controller_name, runner_name
from cronring.trust.certificates import Authority, Pair, issue, new_authority
from cronring.trust.files import write_file
from cronring.trust.holding import CA_FILE, CA_KEY_FILE, CERTIFICATE_FILE, KEY_FILE
from cronring.trust.keyfile import make_key, write_keys

METHOD: Final = "cronring dev"  # as the audit log names it
NAME: Final = "dev"  # of the token, and of the runner's grant
# Longer than anybody leaves a dev alone. What is in the folder ends with it, as a rule.
LIFETIME: Final = dt.timedelta(days=30)
LIFETIME_MS: Final = int(LIFETIME.total_seconds() * 1_000)


class DevTrust(NamedTuple):
    """Paths. `controllers`: a folder of certificates for each. `secrets_key`: what encrypts secrets in its database."""

    ca: Path
    secrets_key: Path
    token_file: Path
    controllers: tuple[Path, ...]
    runner: Path


def make_certificates(folder: Path, controllers: int) -> DevTrust:
    """Those of controllers of a dev with its data in `folder`; the CA, and the key of secrets, are made once."""
    trust = make_private(folder / "trust")
    authority = _authority(trust)
    names = [controller_name(DEFAULT_CLUSTER, f"controller-{number}") for number in range(1, controllers + 1)]
    hosts = ("127.0.0.1", "localhost")
    made = [_issued(trust / name.name, authority, issue(authority, name, LIFETIME, hosts)) for name in names]
    return DevTrust(
        trust / CA_FILE, _secrets_key(trust / "secrets.key"), trust / "token", tuple(made), trust / "runner"
    )


async def make_identities(url: str, schema: str, trust: DevTrust, namespace: str) -> None:
    """Its token, which may do everything, and its runner's grant and certificate.

    Raises StoreUnavailable, StoreError.
    """
    database = await Database.open(url, METHOD, 1, schema=schema)
    try:
        tokens = PostgresTokens(database)
        with calling(await database_principal(database), METHOD):
            await _drop(tokens)
            _, secret = await make_token(tokens, WantedToken(NAME, ((Role.ADMIN, "*"),), LIFETIME_MS, "dev"))
            write_file(trust.token_file, f"{secret}\n".encode(), 0o600)
            await tokens.create_runner_grant(NewRunnerGrant(NAME, namespace, (), True, None, None, "dev", None))
        made = await tokens.runner_grant(NAME)
    finally:
        await database.close()
    authority, name = _authority(trust.ca.parent), runner_name(DEFAULT_CLUSTER, namespace, NAME)
    freed_at = made.name_freed_at if made is not None else None
    _issued(trust.runner, authority, issue(authority, name, LIFETIME, after_us=freed_at or 0))


async def _drop(tokens: TokenStore) -> None:
    """What an earlier dev on this database made: its secret may lie about, and its namespace may be another one."""
    with contextlib.suppress(NotFound, Conflict):
        await tokens.revoke_token((await tokens.get_token(NAME)).token_id, "dev")
    with contextlib.suppress(NotFound, Conflict):
        await tokens.revoke_runner_grant((await tokens.get_runner_grant(NAME)).grant_id, "dev")


def _secrets_key(file: Path) -> Path:
    if not file.exists():
        write_keys(file, [make_key()])
    return file


def _authority(folder: Path) -> Authority:
    certificate, key = folder / CA_FILE, folder / CA_KEY_FILE
    if not (certificate.exists() and key.exists()):
        made = new_authority(DEFAULT_CLUSTER)
        write_file(key, made.key, 0o600)
        write_file(certificate, made.certificate, 0o600)
    return Authority.read(certificate.read_bytes(), key.read_bytes())


def _issued(folder: Path, authority: Authority, pair: Pair) -> Path:
    make_private(folder)
    write_file(folder / CA_FILE, authority.pem, 0o600)
    write_file(folder / KEY_FILE, pair.key, 0o600)
    write_file(folder / CERTIFICATE_FILE, pair.certificate, 0o600)
    return folder
