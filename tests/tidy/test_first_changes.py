"""docs/first-changes.md: each list of files is what one would find by searching for the example."""

import re
import subprocess
from typing import NamedTuple

import pytest

from tests.tidy.test_tidy import ROOT

PRODUCT = ("controller", "cronring", "protos", "schema", "sql")
GENERATED = re.compile(r"_pb2|^sql/(parameters\.py|schema\.sql)$|/openapi\.json$")


class Example(NamedTuple):
    word: str
    listed: list[str]
    named: list[str]


def examples() -> list[Example]:
    sections = (ROOT / "docs/first-changes.md").read_text().split("\n## ")[1:]
    found = []
    for section in sections:
        word = re.search(r"The example\s+is\s+`(\w+)`", section)
        assert word is not None, section
        listed = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
        named = [name for name in re.findall(r"`([\w/.]+)`", section) if "/" in name]
        found.append(Example(word[1], listed, named))
    return found


EXAMPLES = examples()


def test_there_are_four() -> None:
    assert [each.word for each in EXAMPLES] == ["pause_after_failures", "missed_policy", "ListLimits", "GetTemplate"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.word)
def test_the_list_is_complete(example: Example) -> None:
    in_python = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", example.word)
    command = ["git", "grep", "-liw", "-e", example.word, "-e", in_python, "--", *PRODUCT]
    saying = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(example.listed) == sorted(name for name in saying if not GENERATED.search(name))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.word)
def test_all_that_is_named_is_there(example: Example) -> None:
    missing = [name for name in example.named if not (ROOT / name).exists()]
    assert not missing
