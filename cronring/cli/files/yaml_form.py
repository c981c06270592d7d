"""YAML as this program reads and writes it: JSON's types, and every other word is text.

YAML 1.1 makes `on` true, 12:30 a number and 2027-03-29 a date. Here true, false, null and JSON's numbers mean what they
mean in JSON. What is written is quoted so that readers of YAML 1.1 read the same. docs/decisions/0095
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml
from yaml import CSafeDumper, CSafeLoader  # ten times as fast as those in Python
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from cronring.cli.files.parsed import ParsedFile, UnreadableFile

NODES_MAX: Final = 2_000_000  # with all that aliases repeat: 10,000 jobs of 100 values
FAULTS_MAX: Final = 100
_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAG}str"
_MERGE: Final = f"{_TAG}merge"
_KNOWN: Final = frozenset(f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq", "merge"))
_INT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_RULES: Final = (
    ("null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("int", _INT, list("-0123456789")),
    ("float", _FLOAT, list("-0123456789")),
    ("merge", re.compile("<<"), ["<"]),
)


class _Loader(CSafeLoader):
    """With these types alone."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as yaml declares it


class _Dumper(CSafeDumper):
    """Quotes what either version of YAML would take for something else than text."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - values that are equal stand there twice
        return True


for _name, _rule, _first in _RULES:
    whole = re.compile(rf"(?:{_rule.pattern})\Z")
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", whole, _first)
    _Dumper.add_implicit_resolver(f"{_TAG}{_name}", whole, _first)


def _number(kind: Callable[[str], object]) -> Callable[[Any, Node], object]:
    return lambda loader, node: kind(loader.construct_scalar(node))


_Loader.add_constructor(f"{_TAG}int", _number(int))
_Loader.add_constructor(f"{_TAG}float", _number(float))


def _represented(dumper: Any, text: str) -> Node:
    """Lines that read well stand as they are. What a terminal would obey, or hide, stands where it can be escaped."""
    lines, plain = "\n" in text, text.replace("\n", "").isprintable()
    node: Node = dumper.represent_scalar(_TEXT, text, style='"' if not plain else "|" if lines else None)
    return node


_Dumper.add_representer(str, _represented)


def parse(text: str) -> ParsedFile:
    """Raises UnreadableFile, with the lines of what is wrong."""
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return ParsedFile({}, {})
        if not isinstance(root, MappingNode):
            raise UnreadableFile((1, "it is no mapping, with `set:` and `jobs:` at its top"))
        faults = list(_Looked(root).faults())
        if faults:
            raise UnreadableFile(*sorted(faults)[:FAULTS_MAX])
        values = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, why = mark.line + 1 if mark else 0, error.problem or error.context
        raise UnreadableFile((line, f"it is no YAML: {why}")) from None
    except yaml.YAMLError as error:
        raise UnreadableFile((0, f"it is no YAML: {error}")) from None
    except RecursionError:
        raise UnreadableFile((0, "it is nested too deep")) from None
    except (ValueError, KeyError) as error:
        raise UnreadableFile((0, f"a number, or a value with a tag, can't be read: {error}")) from None
    finally:
        loader.dispose()
    return ParsedFile(values, {key.value: _lines(node) for key, node in root.value})


def dump(values: object) -> str:
    """Any of JSON's values, as a document without its marks."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def _lines(node: Node) -> list[int]:
    return [each.start_mark.line + 1 for each in node.value] if isinstance(node, SequenceNode) else []


class _Looked:
    """The nodes of a document, before values are made of them: what can't be, and how many they come to."""

    def __init__(self, root: MappingNode) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}

    def faults(self) -> Iterator[tuple[int, str]]:
        yield from self._of(self._root)
        if self._sizes[id(self._root)] > NODES_MAX:
            yield 0, f"its aliases repeat themselves to more than {NODES_MAX:,} values; write fewer of them"

    def _of(self, node: Node) -> Iterator[tuple[int, str]]:
        """Each node once, however many aliases name it. 0 while it is looked at: then it holds itself."""
        line = node.start_mark.line + 1
        if id(node) in self._sizes:
            if not self._sizes[id(node)]:
                yield line, "an alias names what it stands in"
            return
        self._sizes[id(node)] = 0
        size = 1
        if node.tag not in _KNOWN:
            yield line, f"the tag {node.tag.removeprefix(_TAG)!r:.60} is none of JSON's types; leave it out"
        if isinstance(node, MappingNode):
            yield from self._keys(node)
        for child in _children(node):
            yield from self._of(child)
            size += self._sizes[id(child)]
        self._sizes[id(node)] = min(size, NODES_MAX + 1)

    def _keys(self, node: MappingNode) -> Iterator[tuple[int, str]]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, ScalarNode) or key.tag not in {_TEXT, _MERGE}:
                shown = repr(key.value)[:60] if isinstance(key, ScalarNode) else "a list or a mapping"
                yield line, f"the key {shown} is no text; put it in quotes"
            elif key.value in first and key.tag != _MERGE:
                yield line, f"the key {key.value!r:.120} stands twice: also in line {first[key.value]}"
            else:
                first[key.value] = line


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, SequenceNode):
        yield from node.value
