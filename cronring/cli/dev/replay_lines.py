"""A replay without a terminal: one line for each happening, in text or JSON."""

import json
import os
from datetime import datetime
from typing import Any, TextIO

from cronring.cli.dev.replay_news import News, fields
from cronring.cli.output import instant_text, quoted
from cronring.schema.visible import visible_json, visible_line
from cronring.virtual.records import Execution


class Lines:
    """Lines reach a pipe as they happen."""

    def __init__(self, output: TextIO, as_json: bool) -> None:
        self._output = output
        self._as_json = as_json

    def tell(self, at: datetime, news: News) -> None:
        """Raises BrokenPipeError, once, when nobody reads it any more."""
        word, values = fields(news)
        if self._as_json:
            output = {"output": news.output} if isinstance(news, Execution) and news.output else {}
            text = json_line({"at": at, "event": word, **values, **output})
        else:
            pairs = " ".join(f"{key}={_text(value)}" for key, value in values.items())
            text = f"{instant_text(at.replace(microsecond=at.microsecond // 1000 * 1000))} {word} {pairs}".rstrip()
        try:
            self._output.write(text + "\n")
            self._output.flush()
        except BrokenPipeError:
            # What is still to be written goes nowhere, this buffer's content at exit included.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._output.fileno())
            raise

    def draw(self) -> None:
        """Nothing moves here."""

    def close(self) -> None:
        """Nothing to put back."""


def json_line(values: dict[str, Any]) -> str:
    return visible_json(json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=_plain))


def _plain(value: object) -> str | None:
    return instant_text(value) if isinstance(value, datetime) else str(value)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return instant_text(value) or "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value) if value is not None else "-"
    return quoted(text) if not text or any(c in text for c in ' "=') or visible_line(text) != text else text
