"""What a token says, once its signature is right: whom it is for, when it counts, who holds it, what they may do."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cronring.controller.identity.settings import ANYBODY, GrantRule, IssuerSettings
from cronring.controller.ports.identity import TokenRefused
from cronring.schema.duration import format_duration, measured
from cronring.schema.identity import PRINCIPAL_LENGTH_MAX, Kind, Principal, RoleGrant
from cronring.schema.instant import LAST_US

_SECOND_US: Final = 1_000_000
LATEST_S: Final = LAST_US // _SECOND_US  # the end of the year 9999
_MS_US: Final = 1_000


def principal_of(claims: Mapping[str, Any], settings: IssuerSettings, now_us: int) -> Principal:
    """Raises TokenRefused, and says which check it failed."""
    _check_audience(claims, settings)
    expires_us = _check_times(claims, settings, now_us)
    return Principal(Kind.USER, _name(claims, settings), _grants(claims, settings), expires_us)


def _check_audience(claims: Mapping[str, Any], settings: IssuerSettings) -> None:
    said = claims.get("aud")
    if not settings.audience:
        if said is not None:
            raise TokenRefused(f"it has an `aud`, and no audience is configured for issuer {settings.name!r}")
        return
    if said is None:
        raise TokenRefused(f"it has no `aud`; that must be {settings.audience!r}")
    audiences = [said] if isinstance(said, str) else said
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise TokenRefused("its `aud` is neither a text nor a list of texts")
    if settings.audience not in audiences:
        raise TokenRefused(f"it is for {said!r:.100} (its `aud`), and not for {settings.audience!r}")


def _check_times(claims: Mapping[str, Any], settings: IssuerSettings, now_us: int) -> int:
    """When it expires."""
    leeway_us = settings.leeway_ms * _MS_US
    expires_us = _instant_us(claims, "exp")
    if expires_us is None:
        raise TokenRefused("it has no `exp`: a token that never expires is not taken")
    if now_us >= expires_us + leeway_us:
        raise TokenRefused(f"it expired {_ago(now_us - expires_us)}{_by_clock(expires_us, leeway_us)}")
    begins_us = _instant_us(claims, "nbf")
    if begins_us is not None and now_us < begins_us - leeway_us:
        raise TokenRefused(
            f"it is not valid yet: it will be {_in(begins_us - now_us)}{_by_clock(begins_us, leeway_us)}"
        )
    issued_us = _instant_us(claims, "iat")
    if issued_us is not None and issued_us > now_us + leeway_us:
        raise TokenRefused(f"it says that it is issued {_in(issued_us - now_us)}{_by_clock(issued_us, leeway_us)}")
    return expires_us


def _instant_us(claims: Mapping[str, Any], claim: str) -> int | None:
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"its `{claim}` is no number: it must be in seconds since 1970")
    if not 0 <= value <= LATEST_S:
        raise TokenRefused(f"its `{claim}` is no instant: it must be in seconds since 1970, until the year 9999")
    return int(value * _SECOND_US)


def _ago(length_us: int) -> str:
    return f"{measured(length_us / _MS_US)} ago"


def _in(length_us: int) -> str:
    return f"in {measured(length_us / _MS_US)}"


def _by_clock(instant_us: int, leeway_us: int) -> str:
    """Clocks differ: which one was asked, and how far it may be off."""
    instant = datetime.fromtimestamp(instant_us // _SECOND_US, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    leeway = format_duration(leeway_us // _MS_US) if leeway_us else "none"
    return f" by this controller's clock (at {instant}; leeway: {leeway})"


def _name(claims: Mapping[str, Any], settings: IssuerSettings) -> str:
    value = _claim(claims, settings.name_claim)
    if not isinstance(value, str) or not value:
        raise TokenRefused(f"its `{settings.name_claim}` is missing or no text, and it is who its holder is")
    if not value.isprintable():
        raise TokenRefused(f"its `{settings.name_claim}` has letters that can't be shown, and it is who its holder is")
    name = f"{settings.name}/{value}"
    if len(name) > PRINCIPAL_LENGTH_MAX:
        raise TokenRefused(f"its `{settings.name_claim}` is too long: with the issuer's name {len(name)} characters")
    return name


def _grants(claims: Mapping[str, Any], settings: IssuerSettings) -> tuple[RoleGrant, ...]:
    """Each once, in the order of the configuration."""
    return tuple(dict.fromkeys(RoleGrant(rule.role, rule.namespace) for rule in settings.grants if _has(claims, rule)))


def _has(claims: Mapping[str, Any], rule: GrantRule) -> bool:
    if rule.value == ANYBODY:
        return True
    value = _claim(claims, rule.claim)
    return value == rule.value if isinstance(value, str) else isinstance(value, list) and rule.value in value


def _claim(claims: Mapping[str, Any], path: str) -> Any:
    """Names of claims may be URLs, with dots in them: the longest name that is there is meant."""
    # Whoever has an account somewhere may have written any address into it.
    if path == "email" and claims.get("email_verified", True) is not True:
        return None
    for name, rest in _heads(path):
        if name in claims:
            if not rest:
                return claims[name]
            inner = claims[name]
            if isinstance(inner, Mapping):
                return _claim(inner, rest)
    return None


def _heads(path: str) -> Iterator[tuple[str, str]]:
    """The path as one name, and then each way to take a name from its beginning, the longest first."""
    yield path, ""
    end = path.rfind(".")
    while end > 0:
        yield path[:end], path[end + 1 :]
        end = path.rfind(".", 0, end)
