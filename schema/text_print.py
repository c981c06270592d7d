"""A module in its text form: one canonical text for one module, as digests are made over it."""

from collections.abc import Iterator

from cronring.schema.duration import format_duration
from cronring.schema.keys import qualified
from cronring.schema.module import DEFAULT_POLICY, DataField, DataType, Module, Verb
from cronring.schema.policy_model import Policy, RawValue


def print_module(module: Module) -> str:
    """The text of a valid module. It says everything about it but the lines of its source.

    What validate() would find fault with may give a text that doesn't parse, or parses to another module.
    """
    blocks = [_verb_lines(verb) for verb in module.verbs] + [_type_lines(data) for data in module.types]
    lines = [*_comment(module.doc, ""), f"module {qualified(module.namespace, module.name)} {{"]
    for index, block in enumerate(blocks):
        if index:
            lines.append("")
        lines += block
    lines += ["}", ""]
    return "\n".join(lines)


def verb_signature(verb: Verb) -> str:
    """`close_month(Order) Unit`; a question mark says that the parameter may be left out."""
    return f"{verb.name}({verb.request}{'?' if verb.request_optional else ''}) {verb.response}"


def verb_metadata(verb: Verb) -> Iterator[str]:
    """What stands below a verb, a line each. Defaults are left out."""
    word, _, rest = verb.schedule.partition(" ")
    if word == "manual":
        yield "+manual"
    elif word in _KINDS:
        yield f'{_KINDS[word]} "{rest}"'
    elif verb.schedule:
        yield f'+cron "{verb.schedule}"'
    if verb.anchor:
        yield f'+anchor "{verb.anchor}"'
    if verb.policy is not DEFAULT_POLICY:
        yield from _policy(verb.policy)
    if verb.timeout_ms is not None:
        yield f'+timeout "{format_duration(verb.timeout_ms)}"'
    if verb.on_disconnect != "stop":
        yield f"+on_disconnect {verb.on_disconnect}"
    if verb.payload:
        yield f"+payload {verb.payload}"
    if verb.is_async:
        yield "+async"


_KINDS = {"every": "+every", "at": "+once"}


def policy_text(name: str, policy: Policy) -> str:
    """One field's value as the text form has it, without quotes; "" for the default."""
    return _plain(policy.raw().get(name, ""))


def _plain(value: RawValue) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _policy(policy: Policy) -> Iterator[str]:
    for name, value in policy.raw().items():
        yield f"+{name} {value}" if isinstance(value, int) else f"+{name} {_quoted(_plain(value))}"


def _quoted(text: str) -> str:
    """As Cursor.quoted reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _verb_lines(verb: Verb) -> list[str]:
    return [
        *_comment(verb.doc, "  "),
        f"  verb {verb_signature(verb)}",
        *(f"    {metadata}" for metadata in verb_metadata(verb)),
    ]


def _type_lines(data: DataType) -> list[str]:
    if not data.fields:
        return [*_comment(data.doc, "  "), f"  data {data.name} {{}}"]
    fields = [f"    {data_field(field)}," for field in data.fields]
    return [*_comment(data.doc, "  "), f"  data {data.name} {{", *fields, "  }"]


def data_field(field: DataField) -> str:
    """`note: str | None = null`; `note?: str` where only the author's code knows what an absent one is."""
    if field.default:
        return f"{field.name}: {field.type} = {field.default}"
    return f"{field.name}{'?' if field.optional else ''}: {field.type}"


def _comment(doc: str, indent: str) -> list[str]:
    if not doc:
        return []
    return [f"{indent}// {line}" if line else f"{indent}//" for line in doc.split("\n")]
