"""Every target by its name: one function each, `bytes -> None`, which raises only when the product misbehaves."""

from typing import Final

from tests.fuzz import bodies, lines, texts
from tests.fuzz.bounds import Target

_TEXTS: Final = (
    Target("pattern", texts.pattern),
    Target("schedule", texts.schedule),
    Target("duration", texts.duration),
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
    Target("child_line", lines.child_line),
    Target("runner_line", lines.runner_line),
)

TARGETS: Final[dict[str, Target]] = {target.name: target for target in (*_TEXTS, *_BODIES)}
