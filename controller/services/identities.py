"""Tokens and runner grants: checks of what is asked for, and the secrets that are made."""

import re
import secrets
from typing import Final, NamedTuple

from cronring.controller.ports.tokens import NewRunnerGrant, NewToken, RunnerGrant, TokenRow, TokenStore
from cronring.schema.duration import DURATION_LIMIT_MS
from cronring.schema.identity import EVERYWHERE, Role, RoleGrant
from cronring.schema.nearest import nearest
from cronring.schema.spiffe import is_grant
from cronring.schema.tokens import SECRET_BYTES, SecretKind, hash_of, make_secret_text
from cronring.schema.validate import name_fault, namespace_fault

GRANTS_MAX: Final = 32
MODULES_MAX: Final = 100
USES_MAX: Final = 1_000_000
LASTS_MIN_MS: Final = 1_000
_TOKEN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_ROLES: Final = tuple(role.value for role in Role)

Faults = list[tuple[str, str]]
"""What is wrong, by the field of the request."""


class WantedToken(NamedTuple):
    """`grants`: roles and namespaces as they were said. `lasts_ms` None: for ever."""

    name: str
    grants: tuple[tuple[str, str], ...]
    lasts_ms: int | None
    by: str


class WantedRunnerGrant(NamedTuple):
    """`modules` empty: any. `uses` None: any number. `lasts_ms`: of its join token, None: for ever."""

    name: str
    namespace: str
    modules: tuple[str, ...]
    may_activate: bool
    certificate_only: bool
    uses: int | None
    lasts_ms: int | None
    by: str


def token_faults(wanted: WantedToken) -> Faults:
    """All faults; empty: the token may be made."""
    faults: Faults = []
    if not _TOKEN_NAME.fullmatch(wanted.name):
        faults.append(
            ("name", "must have 1 to 63 letters, digits, dots, hyphens or underscores, a letter or digit first")
        )
    if not 1 <= len(wanted.grants) <= GRANTS_MAX:
        faults.append(("grants", f"has {len(wanted.grants)} roles; it must have from 1 to {GRANTS_MAX}"))
    for number, (role, namespace) in enumerate(wanted.grants[:GRANTS_MAX]):
        if role not in _ROLES:
            close = nearest(role.lower(), _ROLES)
            hint = f"; did you mean {close!r}?" if close else ""
            faults.append((f"grants[{number}].role", f"{role[:100]!r} is none of {', '.join(_ROLES)}{hint}"))
        fault = namespace_fault(namespace) if namespace != EVERYWHERE else None
        if fault is not None:
            faults.append((f"grants[{number}].namespace", f"{fault}; or it is {EVERYWHERE}, for all of them"))
    return faults + _lasting_faults(wanted.lasts_ms)


def runner_grant_faults(wanted: WantedRunnerGrant) -> Faults:
    """All faults; empty: the grant may be given."""
    faults: Faults = []
    if not is_grant(wanted.name):
        faults.append(("name", "must have 1 to 63 lower case letters, digits or hyphens, and no hyphen at an end"))
    named = [("namespace", namespace_fault(wanted.namespace))]
    named += [(f"modules[{number}]", name_fault(module)) for number, module in enumerate(wanted.modules[:MODULES_MAX])]
    faults += [(field, fault) for field, fault in named if fault is not None]
    if len(wanted.modules) > MODULES_MAX:
        faults.append(("modules", f"has {len(wanted.modules)} names; at most {MODULES_MAX} are allowed"))
    if wanted.uses is not None and not 1 <= wanted.uses <= USES_MAX:
        faults.append(("uses", f"is {wanted.uses}; it must be from 1 to {USES_MAX}, or absent for any number"))
    if wanted.certificate_only and (wanted.uses is not None or wanted.lasts_ms is not None):
        faults.append(("certificate_only", "is true: without a join token there are no uses of it, and no end"))
    return faults + _lasting_faults(wanted.lasts_ms)


async def make_token(store: TokenStore, wanted: WantedToken) -> tuple[TokenRow, str]:
    """Make a token that has no faults. Returns its row and its secret, which is not kept. Raises Conflict."""
    random = secrets.token_bytes(SECRET_BYTES)
    grants = tuple(dict.fromkeys(RoleGrant(Role(role), namespace) for role, namespace in wanted.grants))
    row = await store.create_token(NewToken(wanted.name, hash_of(random), grants, wanted.by, wanted.lasts_ms))
    return row, make_secret_text(SecretKind.TOKEN, random)


async def make_runner_grant(store: TokenStore, wanted: WantedRunnerGrant) -> tuple[RunnerGrant, str]:
    """Make a grant that has no faults. Returns its row, and its join token ("": it has none). Raises Conflict."""
    random = secrets.token_bytes(SECRET_BYTES)
    row = await store.create_runner_grant(
        NewRunnerGrant(
            wanted.name,
            wanted.namespace,
            tuple(dict.fromkeys(wanted.modules)),
            wanted.may_activate,
            None if wanted.certificate_only else hash_of(random),
            wanted.uses,
            wanted.by,
            wanted.lasts_ms,
        )
    )
    return row, "" if wanted.certificate_only else make_secret_text(SecretKind.JOIN, random)


def _lasting_faults(lasts_ms: int | None) -> Faults:
    if lasts_ms is None or LASTS_MIN_MS <= lasts_ms <= DURATION_LIMIT_MS:
        return []
    return [("lasts_ms", f"is {lasts_ms}; it must be from {LASTS_MIN_MS} to {DURATION_LIMIT_MS}, or absent for ever")]
