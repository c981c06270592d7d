"""Log lines: for people on a terminal, JSON lines everywhere else."""

import logging
import sys
from typing import Final

import structlog

from controller.config import LogFormat, LogLevel

_LEVELS: Final = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
}

# These say each lost connection in their own words; what it means for the controller is our notes' matter.
_NOISY: Final = ("grpc", "grpc._cython.cygrpc", "asyncpg", "aiohttp.access", "asyncio")


def set_up_logging(level: LogLevel, log_format: LogFormat) -> None:
    """Send structlog's and the standard library's lines to stderr, in one format."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    as_console = log_format is LogFormat.CONSOLE or (log_format is LogFormat.AUTO and sys.stderr.isatty())
    finishing: list[structlog.types.Processor]
    if as_console:
        finishing = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    else:
        finishing = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, *finishing],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one write: processes may share a log
        cache_logger_on_first_use=True,
    )
    _adopt_standard_logging(_LEVELS[level], shared, finishing)


def _adopt_standard_logging(
    level: int, shared: list[structlog.types.Processor], finishing: list[structlog.types.Processor]
) -> None:
    handler = logging.StreamHandler(sys.stderr)
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
