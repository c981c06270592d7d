"""What README and docs tell readers to type, block by block."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
# In the order of somebody who reads them: what one page makes, the next ones use.
FIRST: Final = ("docs/install.md", "README.md", "docs/running.md", "docs/control.md")
# Typed as one story by tests of their own, and not line by line on a cluster that is there.
WALKED: Final = ("docs/security.md", "docs/rest.md", "docs/interval-jobs.md")
SHELL: Final = {"", "sh", "bash", "shell", "console"}
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Blocks without a language that are no commands, by their beginning.
NO_COMMANDS: Final = {
    " your verbs --child process--": "a drawing",
    "// Bills.": "the text form of a module",
}


class Command(NamedTuple):
    """`words`: without its comment."""

    page: str
    text: str
    words: tuple[str, ...]


def pages() -> list[str]:
    others = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))
    return list(dict.fromkeys((*FIRST, *others, "CONTRIBUTING.md")))


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """(language, text) of each."""
    yield from _BLOCK.findall((ROOT / page).read_text())


def typed(block: str) -> list[str]:
    """What is typed of it, one after the other. A backslash at the end of a line goes on, and so does a quotation."""
    found, open_line = list[str](), ""
    for line in block.splitlines():
        open_line += line
        try:
            shlex.split(open_line, comments=True)
        except ValueError:
            open_line = open_line.removesuffix("\\") if line.endswith("\\") else f"{open_line}\n"
            continue
        found.append(open_line)
        open_line = ""
    assert not open_line, f"it does not end: {open_line}"
    return [line for line in found if line.strip()]


def commands(page: str) -> Iterator[Command]:
    """Each line that is typed; of blocks with a prompt, the lines behind one."""
    for language, text in blocks(page):
        if language not in SHELL or any(text.startswith(beginning) for beginning in NO_COMMANDS):
            continue
        prompted = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        for line in prompted or typed(text):
            for part in re.split(r";(?=\s*cronring\b)", line):
                words = shlex.split(part, comments=True)
                if words:
                    yield Command(page, part.strip(), tuple(words))
