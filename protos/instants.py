"""Instants, which are int microseconds since 1970, as Timestamps of the wire, and back."""

from google.protobuf.timestamp_pb2 import Timestamp


def timestamp(instant_us: int | None) -> Timestamp | None:
    """None stays None: the field is absent then."""
    if instant_us is None:
        return None
    seconds, microseconds = divmod(instant_us, 1_000_000)
    return Timestamp(seconds=seconds, nanos=microseconds * 1_000)


def instant_us(stamp: Timestamp) -> int:
    return stamp.seconds * 1_000_000 + stamp.nanos // 1_000
