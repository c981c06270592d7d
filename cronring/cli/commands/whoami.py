"""`cronring whoami`: whom the controllers take one for."""

from typing import Final

import click

from cronring.cli.conversation import ask
from cronring.cli.options import controllers_option, output_option
from cronring.cli.output import print_fields, print_json, short_instant

_KINDS: Final = {
    "token": "the token", "user": "the user", "runner": "the runner", "controller": "the controller",
    "local": "nobody in particular",
}  # fmt: skip


@click.command()
@output_option
@controllers_option
def whoami(output: str, controllers: tuple[str, ...]) -> None:
    """Show whom the controllers take you for, what you may do, and for how long.

    \b
    Examples:
      cronring whoami
      cronring whoami --token-file ci.token
    """
    me = ask(controllers, lambda client: client.identities.who_am_i())
    if output == "json":
        print_json(me)
        return
    print_fields([
        ("you are", f"{_KINDS.get(me.kind, me.kind)} {me.name}".rstrip()),
        ("may", ", ".join(f"{grant.role}@{grant.namespace}" for grant in me.grants) or "nothing"),
        ("until", short_instant(me.expires_at) if me.expires_at else "no end is known"),
    ])  # fmt: skip
