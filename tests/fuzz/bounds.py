"""What every target is held to: an input is taken or refused with the documented error, soon, and in little memory."""

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Final, NamedTuple

SECONDS: Final = 1.0  # of this thread's own CPU, so that busy neighbours don't count
BYTES: Final = 64 << 20


class Misbehaved(AssertionError):
    """The product did what it must not do with this input."""


class Target(NamedTuple):
    """`run` raises only when the product misbehaves. An input of up to 64 KiB may take `seconds` and `bytes_max`."""

    name: str
    run: Callable[[bytes], None]
    seconds: float = SECONDS
    bytes_max: int = BYTES


def as_text(data: bytes) -> str:
    """Any text there is can come out, lone surrogates included: JSON has them."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def as_wire_text(data: bytes) -> str:
    """A text as it comes out of protobuf, HTTP or a file: UTF-8."""
    return data.decode("utf-8", "replace")


def placed(error: object, text: str) -> None:
    """It says what, and where in the text."""
    message, position = getattr(error, "message", None), getattr(error, "position", None)
    if not message or not isinstance(message, str):
        raise Misbehaved(f"{error!r} says nothing")
    if not isinstance(position, int) or not 0 <= position <= len(text):
        raise Misbehaved(f"{error!r}: position {position} is not in the text of {len(text)} characters")
    if len(str(error)) > 4_000:
        raise Misbehaved(f"an error of {len(str(error))} characters")


def held(target: Target, data: bytes, *, memory: bool = True) -> None:
    """Run it within its bounds. Raises whatever the target raises, and Misbehaved for time and memory.

    `memory`: look at it too, which takes two to four times as long, while tracing.
    """
    tracing = memory and not tracemalloc.is_tracing()
    if tracing:
        tracemalloc.start()
    try:
        before = 0
        if memory:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
        since_ns = time.thread_time_ns()
        target.run(data)
        took_s = (time.thread_time_ns() - since_ns) / 1e9
        grown = tracemalloc.get_traced_memory()[1] - before if memory else 0
    finally:
        if tracing:
            tracemalloc.stop()
    if took_s > target.seconds * (3 if memory else 1):
        gc.collect()
        raise Misbehaved(f"{target.name}: {took_s:.2f} s for {len(data)} bytes; at most {target.seconds} s")
    if grown > target.bytes_max:
        raise Misbehaved(f"{target.name}: {grown} bytes of memory for {len(data)} bytes")
