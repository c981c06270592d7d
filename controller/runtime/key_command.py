"""Keys that another program wraps and unwraps, such as one that asks a KMS. docs/security.md has its protocol."""

import asyncio
import base64
import contextlib
import json
import os
import shlex
import signal
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cronring.controller.errors import KeysAway, SecretLocked
from cronring.controller.ports.secrets import WrappedKey
from cronring.schema.duration import measured
from cronring.trust.envelopes import KEY_BYTES, KEY_ID
from cronring.trust.names import SECRETS

VERSION: Final = 1
PREFIX: Final = "kms:"  # of the ids of its keys, so that a key file's id is never taken for one of them
TIMEOUT_S: Final = 5.0
KILLED_S: Final = 1.0  # how long to wait for the end of a killed program
ANSWER_BYTES_MAX: Final = 64 * 1024
REASON_LENGTH_MAX: Final = 300
AT_ONCE: Final = 4
CURRENT_S: Final = 60.0  # how long the answer to "which key wraps?" is kept
# Unwrapped keys are kept this long, as a KMS must not be asked for each delivery. A key that was revoked there goes on
# working here for this long.
REMEMBERED_S: Final = 300.0
REMEMBERED_MAX: Final = 1_000
SILENT_S: Final = 2.0  # after a missing answer, all questions fail at once for so long


class _Remembered(NamedTuple):
    data_key: bytes
    until_s: float


class CommandKeys:
    """cronring.controller.ports.secrets.KeySource. `now_s`: a monotonic clock. Raises ValueError for no command."""

    def __init__(self, command: str, now_s: Callable[[], float]) -> None:
        self._arguments = split_command(command)
        self._now_s = now_s
        self._places = asyncio.Semaphore(AT_ONCE)
        self._current, self._asked_s = "", float("-inf")
        self._silent_until_s, self._silence = float("-inf"), ""
        self._remembered: OrderedDict[tuple[str, bytes, str], _Remembered] = OrderedDict()

    def has(self, key_id: str) -> bool:
        return key_id.startswith(PREFIX)

    async def current(self) -> str:
        if self._now_s() - self._asked_s >= CURRENT_S:
            self._learn(_key_id(await self._ask({"do": "current"})))
        return self._current

    async def wrap(self, data_key: bytes, context: str) -> WrappedKey:
        answer = await self._ask({"do": "wrap", "data_key": _base64(data_key), "context": context})
        key_id, wrapped = _key_id(answer), _bytes(answer, "wrapped")
        self._learn(key_id)
        return WrappedKey(key_id, wrapped)

    async def unwrap(self, wrapped: WrappedKey, context: str) -> bytes:
        name = (wrapped.key_id, wrapped.wrapped, context)
        known = self._remembered.get(name)
        if known is not None and known.until_s > self._now_s():
            return known.data_key
        question = {"do": "unwrap", "key": wrapped.key_id.removeprefix(PREFIX), "wrapped": _base64(wrapped.wrapped)}
        data_key = _bytes(await self._ask({**question, "context": context}), "data_key")
        if len(data_key) != KEY_BYTES:
            raise SecretLocked(f"--secrets-command unwrapped {len(data_key)} bytes; a data key has {KEY_BYTES}")
        self._remembered.pop(name, None)
        self._remembered[name] = _Remembered(data_key, self._now_s() + REMEMBERED_S)
        if len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return data_key

    def _learn(self, key_id: str) -> None:
        self._current, self._asked_s = key_id, self._now_s()

    async def _ask(self, question: dict[str, str]) -> dict[str, Any]:
        """Raises KeysAway; SecretLocked for what it refuses."""
        async with self._places:
            if self._now_s() < self._silent_until_s:
                raise KeysAway(self._silence)
            try:
                answer = await _run(self._arguments, {"version": VERSION, **question})
            except KeysAway as error:
                self._silent_until_s, self._silence = self._now_s() + SILENT_S, str(error)
                raise
        if "error" in answer:
            raise SecretLocked(f"--secrets-command refused to {question['do']}: {_words(answer['error'])}")
        return answer


def split_command(command: str) -> list[str]:
    """A program and its arguments, as a shell would split them; none is asked. Raises ValueError."""
    arguments = shlex.split(command)
    if not arguments:
        raise ValueError("it names no program")
    return arguments


async def _run(arguments: list[str], question: dict[str, Any]) -> dict[str, Any]:
    """The program's answer. The question goes by its standard input, which no list of processes shows."""
    environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise KeysAway(f"--secrets-command can't be started: {arguments[0]}: {error.strerror}") from error
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said = await _exchange(process, json.dumps(question).encode() + b"\n")
            code = await process.wait()
    except BaseException as error:
        await _end(process)
        if isinstance(error, TimeoutError):
            raise KeysAway(f"--secrets-command gave no answer within {measured(TIMEOUT_S * 1_000)}") from None
        raise
    if code != 0:
        raise KeysAway(f"--secrets-command ended with exit code {code}")
    return _answer(said)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill it, and what it has started: a grandchild may hold its output open."""
    assert process.stdout is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):  # a process that has left its group may live on
        async with asyncio.timeout(KILLED_S):
            while await process.stdout.read(ANSWER_BYTES_MAX):
                pass  # asyncio doesn't see the end of a process before its output was read
            await process.wait()


async def _exchange(process: asyncio.subprocess.Process, question: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):  # it may answer without reading
        process.stdin.write(question)
        await process.stdin.drain()
        process.stdin.close()
    said = b""
    while len(said) <= ANSWER_BYTES_MAX and (more := await process.stdout.read(ANSWER_BYTES_MAX)):
        said += more
    if len(said) > ANSWER_BYTES_MAX:
        raise KeysAway(f"--secrets-command answered with more than {ANSWER_BYTES_MAX} bytes")
    return said


def _answer(said: bytes) -> dict[str, Any]:
    """Parse an answer. It may hold a key, so errors quote nothing of it. Raises KeysAway."""
    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise KeysAway("--secrets-command answered with something other than a JSON object")
    return answer


def _key_id(answer: dict[str, Any]) -> str:
    key_id = f"{PREFIX}{answer.get('key', '')}"
    if key_id == PREFIX or not KEY_ID.fullmatch(key_id):
        raise KeysAway("--secrets-command answered without the id of a key, or with one that can't be")
    return key_id


def _bytes(answer: dict[str, Any], name: str) -> bytes:
    try:
        found = base64.b64decode(str(answer.get(name, "")), validate=True)
    except ValueError:
        found = b""
    if not found:
        raise KeysAway(f"--secrets-command answered without {name!r} in base64")
    return found


def _words(text: object) -> str:
    return "".join(each if each.isprintable() else " " for each in str(text))[:REASON_LENGTH_MAX]


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
