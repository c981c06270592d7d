"""A desk for calls of verbs, where no verb calls."""

import time

from cronring.controller.runners.verb_desk import VerbDesk
from cronring.protos.runner.v1 import runner_pb2 as wire


class _NoVerbs:
    async def answer(self, runner_id: str, call: wire.VerbCall) -> wire.VerbAnswer:
        raise AssertionError(f"{runner_id} asked for {call}")


def no_verbs() -> VerbDesk:
    return VerbDesk(_NoVerbs(), time.monotonic_ns)
