"""Options as environment variables: which there are, and what is said of those that nobody reads."""

import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Final

import click

from cronring.cli.failures import suggestion
from cronring.cli.printing import say
from cronring.client.environment import TOKEN
from cronring.trust.names import DEV_PARENT

PREFIX: Final = "CRONRING"
WARNED_MAX: Final = 5
NAME_MAX: Final = 80  # of a name that is compared with ours
# What processes of ours tell those that they start; and what no option may be, as `ps` would show it.
_WITHOUT_OPTION: Final = frozenset(
    {DEV_PARENT, "CRONRING_STOP_ON_EOF", TOKEN}
    | {f"CRONRING_{name}" for name in ("MESSAGE_ID", "WORKSPACE", "DELIVERY", "LEASE", "JOB")}
)

# What most people set. Else each command would be imported, to see whether it reads them.
SHARED: Final = frozenset(
    f"{PREFIX}_{name}" for name in ("CONTROLLERS", "DATABASE_URL", "OUTPUT", "AS", "TOKEN_FILE", "CA")
)


def known(command: click.Command, prefix: str = PREFIX) -> Iterator[str]:
    """Every variable that an option of this command, or of one below it, reads."""
    for param in command.params:
        if isinstance(param, click.Option) and param.name is not None:
            own = param.envvar
            yield from [own] if isinstance(own, str) else own or ()
            if param.allow_from_autoenv:
                yield f"{prefix}_{param.name.upper()}"
    for name, each in command.commands.items() if isinstance(command, click.Group) else ():
        yield from known(each, f"{prefix}_{name.upper().replace('-', '_')}")


def warn_of_unknown(root: click.Command) -> None:
    """On stderr: a misspelt setting is no setting, and nobody would notice."""
    given = sorted({name for name in os.environ if name.startswith(f"{PREFIX}_")} - _WITHOUT_OPTION - SHARED)
    names = _WITHOUT_OPTION.union(known(root)) if given else _WITHOUT_OPTION
    unknown = [name for name in given if name not in names]
    for name in unknown[:WARNED_MAX]:
        meant = suggestion(name, _likely_first(name, names)) if len(name) <= NAME_MAX else ""
        say(f"warning: {name[:NAME_MAX]} is set, and no option reads it.{meant}", err=True)
    if len(unknown) > WARNED_MAX:
        say(f"warning: so are {len(unknown) - WARNED_MAX} other variables", err=True)


def _likely_first(name: str, names: Iterable[str]) -> list[str]:
    """There are more than `nearest` reads: those of the same command come first."""

    def begins_alike(each: str) -> int:
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(each, name, strict=False)))

    return sorted(names, key=lambda each: (-begins_alike(each), each))
