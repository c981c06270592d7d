"""Logs which runners came and went, and why: one line at the beginning of each stream, and one at its end."""

from typing import Final

import grpc

from cronring.controller.ports.log import OperatorLog
from cronring.controller.runners.streams import CloseReason
from cronring.protos.runner.v1 import runner_pb2 as wire

# Ends that are nobody's fault: this controller leaves, or a newer stream of the runner has replaced this one.
_BLAMELESS: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED}


class Comings:
    """`log` takes the lines; the counts of them are metrics."""

    def __init__(self, log: OperatorLog) -> None:
        self._log = log

    def came(self, hello: wire.Hello, address: str, modules: list[wire.RegisteredModule]) -> None:
        """The runner is registered, and may get runs. `address`: of its end of the stream."""
        self._log.info(
            "runner_connected", runner=hello.runner_id, host=hello.hostname, pid=hello.pid, address=address,
            version=hello.version, modules=", ".join(map(_hosted, hello.modules, modules)),
        )  # fmt: skip

    def went(self, runner_id: str, closed: CloseReason | None, *, registered: bool, draining: bool) -> None:
        """`closed`: why this side ended the stream; None: it ended over there, or on the way."""
        if closed is not None and closed.code not in _BLAMELESS:
            self._log.warning("runner_cut_off", runner=runner_id, reason=f"{closed.code.name}: {closed.details}")
        elif registered and closed is not None:
            self._log.info("runner_disconnected", runner=runner_id, reason=closed.details)
        elif registered and draining:
            self._log.info("runner_disconnected", runner=runner_id, reason="it has drained, and left")
        elif registered:
            self._log.warning("runner_gone", runner=runner_id, reason="its stream broke, and it had not drained")


def _hosted(hosted: wire.HostedModule, registered: wire.RegisteredModule) -> str:
    """The deployment's key, like `billing@1f2e3d`; or the module's name, if it was refused."""
    if registered.problem:
        return f"{hosted.schema.name} (refused)"
    return registered.deployment + ("" if registered.active else " (not active)")
