"""Verbs that use more than they may, each time or at first."""

import hashlib
import json
import os
import time

from cronring import Context, every, manual

JOURNAL = os.environ["JOURNAL"]


def write(ctx: Context) -> None:
    with open(JOURNAL, "a") as journal:
        journal.write(json.dumps({"job": ctx.job, "attempt": ctx.attempt, "at": time.time()}) + "\n")


@manual(memory_limit="128MiB", retries=1, backoff="100ms", retry_on=["out_of_memory"], pause_after_failures=3)
def too_much_at_first(ctx: Context) -> None:
    write(ctx)
    held = []
    while ctx.attempt == 1:
        held.append(bytearray(b"x" * (4 << 20)))
        time.sleep(0.01)


@manual(cpu_limit="500ms", memory_limit="1GiB")
async def burns(ctx: Context) -> None:
    write(ctx)
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 100_000_000)


@every("1s")
async def beside(ctx: Context) -> None:
    write(ctx)


@manual
def unlimited(ctx: Context) -> None:
    bytearray(b"x" * (300 << 20))
