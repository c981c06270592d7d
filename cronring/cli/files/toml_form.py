"""TOML as this program reads and writes it: instants are texts, as everywhere else."""

import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import tomli_w

from cronring.cli.files.parsed import ParsedFile, UnreadableFile


def parse(text: str) -> ParsedFile:
    """Raises UnreadableFile; the message of it has the line."""
    try:
        return ParsedFile(_plain(tomllib.loads(text)), {})
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFile((0, f"it is no TOML: {error}")) from None
    except ValueError as error:  # a number with more digits than Python reads
        raise UnreadableFile((0, f"a number can't be read: {error}")) from None
    except RecursionError:
        raise UnreadableFile((0, "it is nested too deep")) from None


def dump(values: Mapping[str, Any]) -> str:
    """Without nulls, which TOML has none of."""
    return tomli_w.dumps(values)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime | date | time) else value
