"""Idempotency keys, on both wires: which calls take one, and how it looks.

A request that is sent again with its key is not done again, but answered as before.
"""

import re
from typing import Final

from google.api import annotations_pb2
from google.protobuf.descriptor import MethodDescriptor

KEY_HEADER: Final = "Idempotency-Key"  # gRPC's metadata has it in lower case
REPLAYED: Final = "Idempotency-Replayed"
# Of what takes no key as there is nothing that could be done twice.
DONE_ONCE_ANYHOW: Final = "is for what changes something and has one answer; leave it out"
_BY_LEASE: Final = (
    "is not known to this method: its lease says what was done before, and a take that is repeated gives other"
    " messages; leave it out"
)
_LASTING: Final = ("cronring.v1.Drills.HoldDrill",)
_KEY: Final = re.compile(r"[!-~]{1,255}", re.ASCII)


def is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


def why_no_key(method: MethodDescriptor) -> str:
    """Why its calls take no key; "": they take one.

    Answers are kept with their keys, for a day. No secret is kept, and nothing for each message of a queue.
    """
    rule = method.GetOptions().Extensions[annotations_pb2.http]
    if rule.WhichOneof("pattern") in {None, "get"} or method.client_streaming:
        return DONE_ONCE_ANYHOW
    if method.full_name in _LASTING:
        return "is not known to this method: what it does lasts as long as the call; leave it out"
    if "secret" in method.output_type.fields_by_name:
        return "is not known to this method: its answer has a secret, which is kept nowhere; its name makes it once"
    if "lease" in method.input_type.fields_by_name or "lease" in method.output_type.fields_by_name:
        return _BY_LEASE
    return ""
