"""docs/security.md, typed in its order: from nothing to certificates, tokens, a run, and a refusal."""

import json
import re
import time
from pathlib import Path
from typing import Final

import pytest

from tests.docs.reading import WALKED
from tests.docs.walking import PATIENCE_S, Desk, lines, saved
from tests.support.cluster import free_port

PAGE = WALKED[0]
# The page's ports may be taken here.
_PORT: Final = re.compile(r"(?<=127\.0\.0\.1:)\d+")


@pytest.mark.timeout(300)
def test_the_walk_of_the_page(tmp_path: Path, empty_database_url: str) -> None:
    ports: dict[str, str] = {}

    def filled(text: str) -> str:
        text = text.replace("postgresql://…", f"'{empty_database_url}'")
        return _PORT.sub(lambda found: ports.setdefault(found[0], str(free_port())), text)

    typed = 0
    with Desk(tmp_path) as desk:
        for name, content in saved(PAGE):
            (desk.folder / name).write_text(content)
        for line in lines(PAGE):
            code, said = desk.type(line.terminal, filled(line.text))
            assert code == line.code, f"{line.text} ended with {code}:\n{said}"
            assert "Traceback" not in said
            typed += 1
            if line.code:
                assert "no token" in said
        assert typed > 25
        listed = json.loads(_answered(desk, "cronring executions list --job hello.greet -o json"))
        assert "completed" in {row["outcome"] for row in listed}


def _answered(desk: Desk, text: str) -> str:
    """At the page's end the CA was replaced, and controllers look at their folders every ten seconds."""
    until = time.monotonic() + PATIENCE_S
    code, said = desk.type("third", text)
    while code and time.monotonic() < until:
        code, said = desk.type("third", text)
    assert code == 0, said
    return said


def test_the_page_has_what_the_walk_is_about() -> None:
    """Else the test above would pass on a page that leaves it out."""
    read = [*lines(PAGE)]
    assert [name for name, _ in saved(PAGE)] == ["hello.py"]
    assert [line.code for line in read if "env -u CRONRING_TOKEN_FILE" in line.text] == [1]
    assert {line.terminal for line in read} == {"first", "second", "third", "fourth"}
    assert any("--wait" in line.text for line in read)
