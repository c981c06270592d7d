"""Log lines: for people on a terminal, JSON lines everywhere else."""

import json
import logging
import sys
from typing import Any, Final, TextIO

import structlog

from cronring.controller.colours import are_colours_wanted
from cronring.controller.config import LogFormat, LogLevel
from cronring.schema.visible import visible_block, visible_json, visible_line

_LEVELS: Final = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}

# These libraries log each lost connection; what that means for the controller stands in our own lines.
_NOISY: Final = ("grpc", "grpc._cython.cygrpc", "asyncpg", "aiohttp.access", "asyncio")


def set_up_logging(level: LogLevel, log_format: LogFormat) -> None:
    """Send structlog's and the standard library's lines to stderr, in one format."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # The command line's streams replace control characters. Our lines are made visible below, and may have colours: so
    # they go past that guard.
    stream = getattr(sys.stderr, "guarded", sys.stderr)
    as_console = log_format is LogFormat.CONSOLE or (log_format is LogFormat.AUTO and stream.isatty())
    finishing: list[structlog.types.Processor]
    if as_console:
        plain = structlog.dev.plain_traceback  # the other ones print what is in variables, too
        colours = stream.isatty() and are_colours_wanted()
        renderer = structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain)
        finishing = [structlog.processors.format_exc_info, _visible, renderer]
    else:
        finishing = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_json)]
    structlog.configure(
        processors=[*shared, *finishing],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(stream),  # a line in one write: processes may share a log
        cache_logger_on_first_use=True,
    )
    _adopt_standard_logging(_LEVELS[level], stream, shared, finishing)


def _visible(_logger: object, _name: str, values: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Make strangers' names and errors safe for a terminal. Only tracebacks keep several lines."""
    return {
        visible_line(key): visible_block(value)
        if key == "exception"
        else visible_line(value)
        if isinstance(value, str)
        else value
        for key, value in values.items()
    }


def _json(values: object, **options: Any) -> str:
    return visible_json(json.dumps(values, **options))


def _adopt_standard_logging(
    level: int, stream: TextIO, shared: list[structlog.types.Processor], finishing: list[structlog.types.Processor]
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *finishing],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(level, logging.ERROR))
