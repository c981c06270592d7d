"""What somebody wants of a job, between its value (schema/job.py) and the wire, once for each direction.

Fields go by their names: what is new in JobSpec only has to be added to jobs.proto.
"""

from typing import Any

from cronring.protos.cronring.v1 import jobs_pb2
from cronring.protos.instants import instant_us, timestamp
from cronring.protos.modules import policy_message, policy_of
from cronring.schema.job import JobSpec
from cronring.schema.policy import parse_policy


def spec_fields(spec: JobSpec) -> dict[str, Any]:
    """As fields of a message: JobSpec and Job have them by the same names."""
    return spec._asdict() | {
        "anchor": timestamp(spec.anchor),
        "policy": policy_message(parse_policy(spec.policy)),
        "labels": dict(spec.labels),
    }


def encode_spec(spec: JobSpec) -> jobs_pb2.JobSpec:
    """What isn't said is absent."""
    return jobs_pb2.JobSpec(**spec_fields(spec) | {"timeout_ms": spec.said_timeout_ms or None})


def decode_spec(said: jobs_pb2.JobSpec) -> JobSpec:
    """As it stands, however wrong it is: who takes it judges each field, and puts texts into their canonical form."""
    anchor = instant_us(said.anchor) if said.HasField("anchor") else None
    policy = policy_of(said.policy).text if said.policy.ByteSize() else ""
    return spec_said(said, anchor=anchor, policy=policy, labels=dict(said.labels))


def spec_said(said: jobs_pb2.JobSpec, **judged: Any) -> JobSpec:
    """All that is said, by its names; `judged` in place of what it says of these fields."""
    return JobSpec(**{name: getattr(said, name) for name in JobSpec._fields if name not in judged} | judged)
