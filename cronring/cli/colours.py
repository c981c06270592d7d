"""One colour per word, the same in tables and in the live display."""

from typing import Final

# Of lines about a change, by their first character.
SIGN_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow", "!": "yellow"}
_STYLES: Final = {
    "completed": "green",
    "alive": "green",
    "in_drill": "yellow",
    "scheduled": "default",
    "running": "cyan",
    "pending": "yellow",
    "draining": "yellow",
    "suspect": "yellow",
    "paused": "yellow",
    "orphaned": "magenta",
    "starting": "yellow",
    "failed": "red",
    "lost": "red",
    "timed_out": "red",
    "out_of_memory": "red",
    "out_of_cpu": "red",
    "cancelled": "magenta",
    "dead": "red",
    "left": "dim",
    "ok": "green",
    "warning": "yellow",
    "unchecked": "magenta",
    "problem": "red",
    "-": "dim",
}


def style_of(word: str) -> str:
    """Rich's style for a status, an outcome, or anything else (the default)."""
    return _STYLES.get(word, "default")
