"""Every target by its name: one function each, `bytes -> None`, which raises only when the product misbehaves.

Requests are drawn from our own descriptors (`drawn.py`). schemathesis does so for HTTP
(tests/integration/api/test_rest_schema.py) and has no gRPC (docs/decisions/0099).
"""

from typing import Final

from tests.fuzz import bodies, certificates, doors, encrypted, lines, packets, rest, servers, texts, tokens
from tests.fuzz.bounds import Target

_TEXTS: Final = (
    Target("pattern", texts.pattern),
    Target("schedule", texts.schedule),
    Target("duration", texts.duration),
    Target("retry_after", texts.retry_after),
    Target("filter", texts.filters),
    Target("instant", texts.instant),
    Target("timezone", texts.timezone),
    Target("window", texts.window),
    Target("jitter", texts.jitter),
    Target("size", texts.size),
    Target("schema_text", texts.schema_text, seconds=3.0),
    Target("crontab", texts.crontab, seconds=3.0),
)

_BODIES: Final = (
    Target("policy", bodies.policy),
    Target("policy_text", bodies.policy_text),
    Target("payload", bodies.payload),
    Target("metrics", bodies.metrics),
    Target("context_report", bodies.context_report),
    Target("webhook", bodies.webhook),
    Target("page_token", bodies.page_token),
    Target("watch_token", bodies.watch_token),
    Target("reports", bodies.reports),
    Target("token", tokens.token),
    Target("token_claims", tokens.token_claims),
    Target("issuer_keys", tokens.issuer_keys),
    Target("envelope", encrypted.envelope),
    Target("key_file", encrypted.key_file),
    Target("key_answer", encrypted.key_answer),
    Target("child_line", lines.child_line),
    Target("runner_line", lines.runner_line),
    Target("job_line", lines.job_line),
    Target("set_yaml", lines.set_yaml, seconds=3.0),
    Target("set_toml", lines.set_toml, seconds=3.0),
    Target("rest_body", rest.rest_body, seconds=3.0),
    Target("rest_query", rest.rest_query, seconds=3.0),
)
_IDENTITIES: Final = (
    Target("door", doors.door),
    Target("join_token", doors.join_token),
    Target("certificate", certificates.certificate),
    Target("san", certificates.san),
    Target("csr", certificates.csr),
    Target("pem_files", certificates.pem_files),
    Target("spiffe", certificates.spiffe),
)
_WIRE: Final = (
    Target("gossip_packet", packets.gossip_packet),
    Target("gossip_cluster", packets.gossip_cluster, seconds=10.0),
    Target("controller_message", packets.controller_message),
)
# Against a real controller, which is another process: its time and memory are looked at there.
SERVED: Final = (
    Target("grpc_request", servers.grpc_request, seconds=10.0),
    Target("runner_stream", servers.runner_stream, seconds=10.0),
    Target("http_bytes", servers.http_bytes, seconds=10.0),
    Target("grpc_bytes", servers.grpc_bytes, seconds=10.0),
)

TARGETS: Final[dict[str, Target]] = {
    target.name: target for target in (*_TEXTS, *_BODIES, *_IDENTITIES, *_WIRE, *SERVED)
}
