"""Calls of cronring.v1.Queues, and who may make them: rows of the table in test_who_may.py."""

from typing import Any, Final

from cronring.protos.cronring.v1 import queues_pb2

_THERE: Final[dict[str, Any]] = {"namespace": "billing", "queue": "q"}
_LEASED: Final[dict[str, Any]] = {"namespace": "billing", "lease": 1}
# The method, a request, and a name in WHO.
QUEUE_CALLS: Final[tuple[tuple[str, Any, str], ...]] = (
    ("TakeMessages", queues_pb2.TakeMessagesRequest(**_THERE, consumer="c"), "operate"),
    ("ExtendLease", queues_pb2.ExtendLeaseRequest(**_LEASED), "operate"),
    ("FinishMessages", queues_pb2.FinishMessagesRequest(**_LEASED, message_ids=[1]), "operate"),
    ("RetryMessages", queues_pb2.RetryMessagesRequest(**_LEASED, message_ids=[1]), "operate"),
    ("ReleaseMessages", queues_pb2.ReleaseMessagesRequest(**_LEASED), "operate"),
    ("PutMessage", queues_pb2.PutMessageRequest(**_THERE, payload="1"), "operate"),
    ("ListQueues", queues_pb2.ListQueuesRequest(), "token"),
    ("ListQueues", queues_pb2.ListQueuesRequest(namespace="billing"), "view"),
    ("ListMessages", queues_pb2.ListMessagesRequest(**_THERE), "view"),
    ("ListDeadLetters", queues_pb2.ListDeadLettersRequest(**_THERE), "view"),
    ("ReplayDeadLetters", queues_pb2.ReplayDeadLettersRequest(**_THERE, all=True), "operate"),
    ("RemoveDeadLetters", queues_pb2.RemoveDeadLettersRequest(**_THERE, all=True), "operate"),
    ("SetQueue", queues_pb2.SetQueueRequest(**_THERE, max_deliveries=3), "operate"),
)
