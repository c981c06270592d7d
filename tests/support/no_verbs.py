"""A queue for calls of verbs, where no verb calls."""

import time

from cronring.controller.runners.verb_call_queue import VerbCallQueue
from cronring.protos.runner.v1 import runner_pb2 as wire


class _NoVerbs:
    async def answer(self, runner_id: str, call: wire.VerbCall) -> wire.VerbAnswer:
        raise AssertionError(f"{runner_id} asked for {call}")


def no_verbs() -> VerbCallQueue:
    return VerbCallQueue(_NoVerbs(), time.monotonic_ns)
