"""What a child does from its first line to its last."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import json
import os
import socket
import sys
from types import ModuleType

from cronring.child.board import DUMP_SIGNAL, open_board
from cronring.child.channel import Channel
from cronring.child.errors import describe_error
from cronring.child.fork import watch_forks
from cronring.child.guard import die_with_parent
from cronring.child.load import load_file
from cronring.child.output import capture_output, keep_logging, keep_logging_of_import, line_buffer
from cronring.child.serve_async import serve_async
from cronring.child.serve_sync import serve_sync
from cronring.child.threads import follow_threads
from cronring.child.verbs import Verbs

COLLECTED_BY_DEFAULT = (700, 2_000)  # objects; CPython before 3.13, and since
COLLECTED_AFTER = 20_000


def main(arguments: list[str]) -> None:
    """`arguments`: one JSON object.

    It has mode ("describe", "async", "sync"), file (absolute), namespace, parent (pid), and file descriptors: lifeline,
    source, code (written in "describe", read in other modes), and answer ("describe") or socket and board (others).
    """
    options = json.loads(arguments[0])
    for name in ("lifeline", "source", "code", "socket", "board", "answer"):
        if name in options:
            os.set_inheritable(options[name], False)
    die_with_parent(options["lifeline"], options["parent"])
    path: str = options["file"]
    source = _read_all(options["source"])
    sys.argv = [path]
    if options["mode"] == "describe":
        from cronring.child.describe import describe  # noqa: PLC0415  # serving children have no use for it

        answer = json.dumps(describe(path, source, options["namespace"], options["code"]))
        with os.fdopen(options["answer"], "w", encoding="utf-8") as stream:
            stream.write(answer)
        return
    _serve(options, path, source)


def _read_all(descriptor: int) -> bytes:
    """Read a whole file, and close it."""
    data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    os.close(descriptor)
    return data


def _serve(options: dict[str, int | str], path: str, source: bytes) -> None:
    code = _read_all(int(options["code"]))
    sock = socket.socket(fileno=int(options["socket"]))
    watch_forks(sock)
    channel = Channel(sock)
    board = open_board(int(options["board"]))
    faulthandler.enable(2)
    faulthandler.register(DUMP_SIGNAL, 2, all_threads=True)
    line_buffer()
    keep_logging_of_import()
    if options["mode"] == "sync":
        module = _load(channel, path, source, code)
        keep_logging()
        spare_the_collector()
        serve_sync(channel, board, Verbs(module.__name__))
        return
    # The loop exists before the author's file is loaded: old libraries look for one at import.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    capture_output()  # before the file is loaded: it may bind the streams, in a logging handler for instance
    module = _load(channel, path, source, code)
    keep_logging()
    follow_threads(loop)
    spare_the_collector()
    serve_async(channel, board, Verbs(module.__name__), loop)


def spare_the_collector() -> None:
    """Keep the collector from what is loaded, as that stays anyway: looking at it took a fifth of short verbs' CPU.

    Thresholds that an author's file has set are left as they are.
    """
    # docs/decisions/0005: the collector cost a fifth of a child's CPU
    gc.freeze()
    if gc.get_threshold()[0] in COLLECTED_BY_DEFAULT:
        gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])


def _load(channel: Channel, path: str, source: bytes, code: bytes) -> ModuleType:
    try:
        return load_file(path, source, code)
    except BaseException as error:  # SystemExit at import is a failure too
        error_type, message, stack = describe_error(error)
        channel.send({"failed": [error_type, f"{message}\n\n{stack}".strip()]})
        channel.flush_all()
        sys.exit(1)
