"""What options of `cronring jobs create` and `update` say, as a spec, and which of its fields they name."""

from typing import TYPE_CHECKING, Any

from cronring.cli.instants import resolved
from cronring.cli.job_options import labels_of, schedule_text, timeout_ms
from cronring.cli.policies import given_policy

if TYPE_CHECKING:
    from cronring.client.model import JobSpec


def spec_of(values: dict[str, Any], zone: str | None = None) -> "JobSpec":
    """`zone`: of instants without one; None: --timezone."""
    from cronring.client.model import JobSpec
    from cronring.client.payloads import JsonText

    clocks = zone or values["timezone"] or ""
    schedule = schedule_text(values["cron"], values["every"], values["at"], values["manual"], clocks)
    if schedule is None and values["after"]:
        schedule = "manual"  # it has no ticks of its own
    return JobSpec(
        schedule=schedule or "",
        policy=given_policy(values, clocks),
        anchor=resolved(values["anchor"], clocks).replace(microsecond=0) if values["anchor"] else None,
        payload=JsonText(values["payload"] or ""),
        labels=labels_of(values["label"]),
        timeout_ms=timeout_ms(values["timeout"]),
        on_disconnect=values["on_disconnect"] or "",
    )


def given_fields(values: dict[str, Any]) -> list[str]:
    """Paths of what was given, as UpdateJob names them; of what is given empty, too."""
    fields = ["schedule"] if any(values[name] for name in ("cron", "every", "at", "manual", "after")) else []
    for option, field in (
        ("anchor", "anchor"),
        ("payload", "payload"),
        ("timeout", "timeout_ms"),
        ("on_disconnect", "on_disconnect"),
    ):
        if values[option] is not None:
            fields.append(field)
    fields += [f"labels.{key}" for key, _ in values["label"]]
    return fields + [f"policy.{name}" for name in given_policy(values)]
