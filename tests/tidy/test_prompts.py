"""Commands ask by one helper, which knows what to do where nobody can answer."""

import ast
from pathlib import Path

CLI = Path(__file__).parents[2] / "cronring/cli"
ASKING = {"click.confirm", "click.prompt", "click.pause", "input", "getpass.getpass", "getpass"}


def test_no_command_asks_by_itself() -> None:
    """Without a terminal a prompt of click's aborts with 1, and names no --yes."""
    asking = {
        f"{path.relative_to(CLI)}: {name}"
        for path in CLI.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in ASKING
    }
    options = {
        str(path.relative_to(CLI)) for path in CLI.rglob("*.py")
        if "confirmation_option" in path.read_text("utf-8") or "prompt=" in path.read_text("utf-8")
    }  # fmt: skip
    assert (asking, options) == ({"consent.py: click.confirm"}, set())
