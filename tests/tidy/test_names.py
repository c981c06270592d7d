"""One name, one thing: public classes are told apart by their names alone."""

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

from tests.tidy.test_tidy import ROOT, sources

ROOMS: Final = ("controller/", "cronring/", "protos/", "schema/", "sql/")
# What users import calls a thing by the plain word that a core has for it as well: it shows them the same thing.
SHOWN: Final = ("cronring/client/", "cronring/jobs.py", "cronring/virtual/records.py")


def classes(path: Path) -> list[str]:
    body = ast.parse(path.read_text()).body
    return [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_no_public_class_name_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        name = str(path.relative_to(ROOT))
        if name.startswith(ROOMS) and not name.startswith(SHOWN):
            for each in classes(path):
                places[each].append(name)
    assert len(places) > 700, "these are not all"
    twice = {each: files for each, files in places.items() if len(files) > 1}
    assert not twice, f"give one of each another name, or make one of both: {twice}"
