"""What the cores of controllers and runners tell their logs."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogLine(NamedTuple):
    """Something worth a line in the log, or a count. `event` is a fixed word like "member_dead"; values are plain."""

    level: Level
    event: str
    values: Mapping[str, str | int | float | bool]
