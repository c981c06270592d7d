"""The token of a login that was kept, renewed when it has expired."""

from dataclasses import replace
from typing import Final

from cronring.cli.failures import EXIT_UNREACHABLE, Failure
from cronring.cli.login.http import IssuerSilent, ask_issuer
from cronring.cli.login.issuer import Registered, given, refused_words
from cronring.client.kept_logins import KeptLogin, alone, find_login, is_fresh, keep_login

LEFT_S: Final = 30  # with less a command may begin with a token, and end without


def renewed_token(addresses: tuple[str, ...], *, may_ask: bool) -> str | None:
    """The token of the login for these controllers; None: nobody has logged in. Raises Failure if it can't be renewed.

    Without `may_ask` it is as it was kept. It is shown to no other controllers than those that it was got for.
    """
    login = find_login(addresses)
    if login is None or not may_ask or is_fresh(login.expires_s, LEFT_S):
        return login.token if login is not None else None
    with alone():
        login = find_login(addresses)  # another command may have renewed it
        if login is None or is_fresh(login.expires_s, LEFT_S):
            return login.token if login is not None else None
        return _renewed(login)


def _renewed(login: KeptLogin) -> str:
    again = f"cronring login --controllers {login.name} --issuer {login.issuer} --client-id {login.client_id}"
    if not login.refresh_token:
        raise Failure(f"your login at {login.issuer} has expired. Log in again:\n{again}")
    registered = Registered(login.client_id, login.client_secret)
    form = registered.form() | {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
    try:
        answer = ask_issuer(login.token_url, form)
    except IssuerSilent as error:
        if is_fresh(login.expires_s, 0):
            return login.token
        raise Failure(f"your login has expired, and can't be renewed now: {error}", EXIT_UNREACHABLE) from None
    if answer.status != 200:
        raise Failure(
            f"your login at {login.issuer} has expired, and it is not renewed: {refused_words(answer)}. "
            f"Log in again:\n{again}"
        )
    new = given(answer, id_token=login.id_token)
    kept = replace(
        login, token=new.token, expires_s=new.expires_s, refresh_token=new.refresh_token or login.refresh_token
    )
    keep_login(kept)
    return new.token
