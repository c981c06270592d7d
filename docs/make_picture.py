"""Draw docs/demo.svg: `make picture` runs the demo in a terminal of its own, kills a controller, and keeps the end."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 118, 34
DEMO_S = 24
KILL_AFTER_S = 12


def first_controller(family: int) -> int:
    """The pid of the first controller among the children of dev. Raises LookupError when there is none."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            arguments = (stat.parent / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == family and b"controller" in arguments:
            return int(stat.parent.name)
    raise LookupError("dev has no controller")


def record() -> str:
    """What the demo prints to a terminal, a controller's death in the middle included."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "cronring.cli.main", "dev", "examples/demo.py", "--for", f"{DEMO_S}s"]
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    dev = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, cwd=ROOT, env=environment)
    os.close(follower)
    seen, kill_at = b"", None
    while True:
        try:
            chunk = os.read(leader, 1 << 16)
        except OSError:  # the terminal's other end is closed: the demo is over
            break
        if not chunk:
            break
        seen += chunk
        if kill_at is None and b"\x1b[?1049h" in seen:  # the picture has begun
            kill_at = time.monotonic() + KILL_AFTER_S
        if kill_at is not None and time.monotonic() > kill_at:
            os.kill(first_controller(dev.pid), signal.SIGKILL)
            kill_at = float("inf")
    dev.wait(timeout=30)
    return seen.decode(errors="replace")


def main() -> None:
    """Write the SVG. Exits with 1 when the demo ended without its picture."""
    kept = record().rpartition("\x1b[?1049l")[2].replace("\r", "")
    if not kept.strip():
        sys.exit("the demo left no picture")
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115  lives as long as this does
    console.print(Text.from_ansi(re.sub(r"\x1b\[\?\d+[hl]", "", kept).strip("\n")))
    svg = console.export_svg(title=f'make demo ARGS="--for {DEMO_S}s"')
    # The viewer's own monospace will do: a picture should not fetch fonts from somewhere.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")
    (ROOT / "docs" / "demo.svg").write_text(svg)


if __name__ == "__main__":
    main()
