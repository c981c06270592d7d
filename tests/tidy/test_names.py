"""One name, one thing: public classes of the core and of schema are told apart by their names alone."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.tidy.test_tidy import ROOT, sources

ROOMS = ("controller/core/", "schema/")


def classes(path: Path) -> list[str]:
    body = ast.parse(path.read_text()).body
    return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_no_public_class_name_twice_in_core_and_schema() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        name = str(path.relative_to(ROOT))
        if name.startswith(ROOMS):
            for each in classes(path):
                places[each].append(name)
    assert len(places) > 100, "these are not all"
    assert not {each: files for each, files in places.items() if len(files) > 1}
