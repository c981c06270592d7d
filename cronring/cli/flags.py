"""What the API calls its fields, as what was typed: `spec.policy.start_at` is --start-at, and `until_at` is --to."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from cronring.cli.failures import Failure
from cronring.schema.policy_model import FIELDS

if TYPE_CHECKING:
    from cronring.client.errors import Invalid

_LABEL: Final = ("set_label", "label")
# By field, the parameters of commands that set it. Fields that are called like their option need no line here.
_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "spec.schedule": ("cron", "every", "at", "manual"),
    "spec.anchor": ("anchor",),
    "spec.payload": ("payload",),
    "spec.labels": _LABEL,
    "spec.timeout_ms": ("timeout",),
    "spec.on_disconnect": ("on_disconnect",),
    **{f"spec.policy.{field.name}": (field.name,) for field in FIELDS},
    "namespace": ("namespace", "verb", "name"),
    "module": ("module", "verb"),
    "Idempotency-Key": ("idempotency_key",),
    "from_at": ("from",),
    "until_at": ("to",),
    "id": ("cancel", "execution_id", "id"),
    "reasons": ("reason",),
    "outcomes": ("outcome",),
    "page_size": ("limit",),
    "lasts_ms": ("expires",),
}
# Names in a description: of a policy with its value, and those that are no English words.
_NAMED: Final = re.compile(
    rf"\b({'|'.join(field.name for field in FIELDS)})=([\w.]+)"
    rf"|\b({'|'.join([*(field.name for field in FIELDS if '_' in field.name), 'from_at', 'until_at'])})\b"
)


def refused(error: "Invalid") -> Failure:
    """What a controller found wrong, in the words of the command that is running."""
    if not error.violations:
        return Failure(str(error))
    context = click.get_current_context(silent=True)
    told = [f"{_typed(context, field)}: {_described(context, text)}" for field, text in error.violations]
    if error.problems == 1:
        return Failure(told[0])
    first = "; the first of them" if error.problems > len(told) else ""
    return Failure("\n  ".join([f"{error.problems} values are wrong{first}:", *told]))


def _typed(context: click.Context | None, field: str) -> str:
    """The option or argument of a field; the field's own name where the command has none for it."""
    label = field.removeprefix("spec.labels.")
    if label != field:
        return f"{_flag(context, _LABEL) or 'label'} {label}"
    one = re.sub(r"\[\d+\]$", "", field)  # of a list
    names = _PARAMETERS.get(one, (one.rpartition(".")[2],) if not field.startswith("schema.") else ())
    return _flag(context, names) or field


def _flag(context: click.Context | None, names: Sequence[str]) -> str:
    """Of these parameters of the command, the one that was given; else the first that it has."""
    if context is None:
        return ""
    known = {parameter.name: parameter for parameter in context.command.params}
    found = [known[name] for name in names if name in known]
    given = [parameter for parameter in found if context.params.get(parameter.name or "") not in (None, False, ())]
    return next((_shown(parameter, context) for parameter in [*given, *found]), "")


def _shown(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(context)


def _described(context: click.Context | None, text: str) -> str:
    """The text with the names of policies in it as flags. What somebody wrote stands in quotes, and stays."""
    return "".join(_parts(context, text))


def _parts(context: click.Context | None, text: str) -> Iterator[str]:
    for number, part in enumerate(re.split(r"('[^']*'|`[^`]*`)", text)):
        yield part if number % 2 else _NAMED.sub(lambda match: _named(context, match), part)


def _named(context: click.Context | None, match: re.Match[str]) -> str:
    name = match[1] or match[3]
    flag = _flag(context, _PARAMETERS.get(name, (name,)))
    if not flag:
        return match[0]
    return f"{flag} {match[2]}" if match[1] else flag
