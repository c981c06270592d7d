"""What a watcher was told of both feeds, as a text: a token for each feed, and marks of single events beyond them."""

import base64
import hashlib
from typing import Final

from cronring.protos.caps import CAPS
from cronring.protos.cronring.v1.events_pb2 import Event

_OF_BOTH: Final = "."  # base64url has neither
_OF_MARKS: Final = "~"
_MARK_BYTES: Final = 6  # among some thousand events, two are alike once in ten million times
_MARK_LENGTH: Final = 8
_LENGTH_MAX: Final = CAPS["resume_token"].length


class Trail:
    """The trail of one feed. `lasting`: each event happens once. (A job's state may come again, and is news then.)"""

    def __init__(self, text: str, *, lasting: bool) -> None:
        self._token, _, marks = text.partition(_OF_MARKS)
        self._lasting = lasting
        self._marks: list[str] = []
        self._known = {marks[first : first + _MARK_LENGTH] for first in range(0, len(marks), _MARK_LENGTH)}

    @property
    def token(self) -> str:
        return self._token

    def is_news(self, event: Event) -> bool:
        """Whether it has not been told. From now on it has."""
        mark = _mark(event)
        is_known = mark in self._known
        self._known.discard(mark)
        self._marks.append(mark)
        return not is_known

    def come_to(self, token: str) -> None:
        """Everything up to this token has been told."""
        self._token = token
        self._marks.clear()
        if not self._lasting:
            self._known.clear()

    def text(self) -> str:
        """ "" where that is too long to be given back."""
        if len(self._token) + _MARK_LENGTH * (len(self._marks) + len(self._known)) >= _LENGTH_MAX:
            return ""
        return f"{self._token}{_OF_MARKS}{''.join([*self._marks, *sorted(self._known)])}".removesuffix(_OF_MARKS)


class Trails:
    """Of jobs and of executions."""

    def __init__(self, text: str) -> None:
        of_jobs, _, of_executions = text.partition(_OF_BOTH)
        self.jobs = Trail(of_jobs, lasting=False)
        self.executions = Trail(of_executions, lasting=True)

    @classmethod
    def begun(cls, of_jobs: str, of_executions: str) -> "Trails":
        return cls(f"{of_jobs}{_OF_BOTH}{of_executions}")

    def text(self) -> str:
        """ "" if so much runs that the text would be too long for a request: then the caller keeps its older token."""
        of_jobs, of_executions = self.jobs.text(), self.executions.text()
        text = f"{of_jobs}{_OF_BOTH}{of_executions}"
        return text if of_jobs and of_executions and len(text) <= _LENGTH_MAX else ""


def _mark(event: Event) -> str:
    if event.HasField("execution"):
        what = b"%d %d" % (event.kind, event.execution.id)
    else:
        what = b"%d " % event.kind + event.job.SerializeToString(deterministic=True)
    return base64.urlsafe_b64encode(hashlib.blake2b(what, digest_size=_MARK_BYTES).digest()).decode()
