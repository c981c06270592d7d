"""`cronring login` and `cronring logout`: be somebody that an issuer knows, to controllers."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.failures import Failure
from cronring.cli.options import Secret, addresses_option, output_option
from cronring.cli.output import print_json, short_instant
from cronring.cli.printing import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from cronring.cli.json_http import JsonAnswer

CLIENT_SECRET: Final = Secret(bool)


@click.command()
@click.option("--issuer", metavar="URL", required=True, help="Who gives tokens, as it calls itself.")
@click.option("--client-id", metavar="ID", required=True, help="This program's name at the issuer.")
@click.option("--client-secret", type=CLIENT_SECRET, metavar="SECRET|@FILE", default="",
              help="If the issuer wants one of programs, too.")  # fmt: skip
@click.option("--scope", multiple=True, default=("openid",), show_default=True,
              help="What is asked for; may be repeated.")  # fmt: skip
@click.option("--id-token", is_flag=True, help="Show controllers the ID token, not the access token.")
@click.option("--device", is_flag=True,
              help="Type a code on another device.  [default: only where no browser is here]")  # fmt: skip
@output_option
@addresses_option
def login(
    issuer: str, client_id: str, client_secret: str, scope: tuple[str, ...], id_token: bool, device: bool,
    output: str, controllers: tuple[str, ...],
) -> None:  # fmt: skip
    """Log in at an OIDC issuer, and keep its token for commands that ask these controllers.

    A browser opens; or, without one, a code is shown that you type on another device. The token is kept in your
    keyring (with `pip install cronring[keyring]`), or in a file that only you can read. It is renewed while the issuer
    allows it, and shown to no other controllers. CRONRING_TOKEN and --token-file are above it.

    \b
    Examples:
      cronring login --issuer https://id.example.org --client-id cronring-cli
      cronring login --controllers 10.0.0.1:7400,10.0.0.2:7400 --device \\
        --issuer https://id.example.org --client-id cronring-cli
      cronring logout
    """
    from cronring.cli.login.issuer import Registered, discover, given, holder
    from cronring.client.kept_logins import KeptLogin, alone, keep_login

    endpoints = discover(issuer)
    registered = Registered(client_id, client_secret)
    answer = _flow(endpoints.authorization, endpoints.device, device=device)(endpoints, registered, scope)
    new = given(answer, id_token=id_token)
    kept = KeptLogin(
        tuple(sorted(set(controllers))), endpoints.issuer, client_id, endpoints.token, id_token, new.expires_s,
        new.token, new.refresh_token, client_secret,
    )  # fmt: skip
    with alone():
        where = keep_login(kept)
    expires_at = datetime.fromtimestamp(new.expires_s, UTC) if new.expires_s else None
    if output == "json":
        print_json({
            "holder": holder(new.token), "issuer": kept.issuer, "controllers": kept.controllers,
            "expires_at": expires_at, "renewed": bool(new.refresh_token), "kept_in": where,
        })  # fmt: skip
        return
    until = f"until {short_instant(expires_at)}" if expires_at else "as long as the issuer says"
    renewed = ", and is then renewed" if new.refresh_token else ""
    say(f"logged in as {holder(new.token)}, for {kept.name}")
    say(f"the token counts {until}{renewed}; it is in {where}")


def _flow(authorization: str, device_url: str, *, device: bool) -> "Callable[..., JsonAnswer]":
    """A browser, unless somebody wants it otherwise, or there is none. Raises Failure."""
    from cronring.cli.login.browser import by_browser, has_browser
    from cronring.cli.login.device import by_device

    if device and not device_url:
        raise Failure("the issuer lets no device log in (it has no device_authorization_endpoint). Leave --device out")
    if not authorization and not device_url:
        raise Failure("the issuer names no way to log in: no authorization_endpoint, no device_authorization_endpoint")
    wants_device = device or not authorization or not has_browser()
    return by_device if wants_device and device_url else by_browser


@click.command()
@output_option
@addresses_option
def logout(output: str, controllers: tuple[str, ...]) -> None:
    """Forget the token that `cronring login` keeps for these controllers. The issuer isn't told.

    \b
    Example:
      cronring logout --controllers 10.0.0.1:7400,10.0.0.2:7400
    """
    from cronring.client.kept_logins import alone, forget_login

    with alone():
        forgotten = forget_login(controllers)
    if not forgotten:
        raise Failure(f"nobody is logged in for {','.join(controllers)}; --controllers says for which")
    if output == "json":
        print_json({"logged_out": controllers})
        return
    say(f"logged out, for {','.join(controllers)}")
