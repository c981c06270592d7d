"""The one place that opens channels to controllers, so that what must hold for all of them does."""

from typing import Final

import grpc

from cronring.protos.admission import UNCOMPRESSED

_OPTIONS: Final = (
    *UNCOMPRESSED,
    # Controllers are inside. A proxy that the environment names for the outside would only read along, or lose them.
    ("grpc.enable_http_proxy", 0),
)


def channel_to(address: str, *options: tuple[str, int], answer_bytes: int) -> grpc.aio.Channel:
    """To HOST:PORT; `answer_bytes`: the largest message that is read from there."""
    here = ("grpc.max_receive_message_length", answer_bytes)
    return grpc.aio.insecure_channel(address, options=(*_OPTIONS, here, *options))
