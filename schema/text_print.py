"""A module in its text form: one canonical text for one module, as digests are made over it."""

from collections.abc import Iterator

from schema.duration import format_duration
from schema.keys import DEFAULT_NAMESPACE
from schema.module import Module, Verb
from schema.schedule import is_interval


def print_module(module: Module) -> str:
    """The text of a valid module. It says everything about it but the lines of its source.

    What validate() would find fault with may give a text that doesn't parse, or parses to another module.
    """
    name = module.name if module.namespace == DEFAULT_NAMESPACE else f"{module.namespace}/{module.name}"
    lines = [*_comment(module.doc, ""), f"module {name} {{"]
    for index, verb in enumerate(module.verbs):
        if index:
            lines.append("")
        lines += _comment(verb.doc, "  ")
        lines.append(f"  verb {verb.name}({verb.request}) {verb.response}")
        lines += [f"    {metadata}" for metadata in verb_metadata(verb)]
    lines += ["}", ""]
    return "\n".join(lines)


def verb_metadata(verb: Verb) -> Iterator[str]:
    """What stands below a verb, a line each. Defaults are left out."""
    if is_interval(verb.schedule):
        yield f'+every "{verb.schedule.removeprefix("every ")}"'
    elif verb.schedule:
        yield f'+cron "{verb.schedule}"'
    if verb.timeout_ms:
        yield f'+timeout "{format_duration(verb.timeout_ms)}"'
    if verb.on_disconnect != "stop":
        yield f"+on_disconnect {verb.on_disconnect}"
    if verb.is_async:
        yield "+async"


def _comment(doc: str, indent: str) -> list[str]:
    if not doc:
        return []
    return [f"{indent}// {line}" if line else f"{indent}//" for line in doc.split("\n")]
