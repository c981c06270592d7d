"""When what the API with canned answers tells has been."""

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

EPOCH = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def stamp(seconds: float) -> Timestamp:
    result = Timestamp()
    result.FromDatetime((EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None))
    return result
