"""Rules about what all controllers say, each of itself and of the others. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cronring.client.doctor import ControllerReport, NoReport
from cronring.controller.core.doctor.finding import (
    Finding,
    Trouble,
    Verdict,
    found,
    guarded,
    listed,
    problem,
    unchecked,
    warning,
)
from cronring.schema.duration import measured
from cronring.schema.zone import zone_data_version

WALL_OFFSET_US: Final = 1_000_000
CLOCK_ERROR_US: Final = 100_000
SLOW_HEALTH: Final = 4
DAY_MS: Final = 86_400_000
ENDS_SOON_MS: Final = 7 * DAY_MS
# Beyond these, something doesn't keep up.
QUEUE_LIMITS: Final = {"ends_pending": 5_000, "inbox_events": 1_000, "runner_queue_items": 10_000}

Reports = Sequence[ControllerReport]


def check_members(reports: Reports, silent: Sequence[NoReport], own_version: str) -> list[Finding]:
    """All of them. `own_version`: this program's."""
    rules = (
        ("controllers", lambda: check_answers(reports, silent)),
        ("ring", lambda: check_ring(reports)),
        ("peers", lambda: check_peers(reports)),
        ("controllers' leases", lambda: check_leases(reports)),
        ("clocks", lambda: check_clocks(reports)),
        ("versions", lambda: check_versions(reports, own_version)),
        ("zone data", lambda: check_zone_data(reports, zone_data_version())),
        ("settings", lambda: check_settings(reports)),
        ("queues", lambda: check_queues(reports)),
        ("runner streams", lambda: check_streams(reports)),
        ("certificates", lambda: check_certificates(reports)),
        ("issuers", lambda: check_issuers(reports)),
        ("secrets' keys", lambda: check_secrets_keys(reports)),
    )
    if not reports:
        return [check_answers(reports, silent)] + [unchecked(name, "no controller answered") for name, _ in rules[1:]]
    return [guarded(name, rule) for name, rule in rules]


def check_answers(reports: Reports, silent: Sequence[NoReport]) -> Finding:
    troubles = []
    seen_as = _seen_as(reports)
    for each in silent:
        believed = seen_as.get(each.address, {})
        known = f" ({', '.join(sorted(believed))})" if believed else ""
        what = f"no answer at {each.address}{known}: {each.reason}"
        if each.answered:
            advice = "Read its log."
            troubles.append(Trouble(Verdict.UNCHECKED, what, advice))
        elif believed and set().union(*believed.values()) == {"dead"}:
            advice = "The others have taken over. Start it anew, or another in its place; it is forgotten in 5 minutes."
            troubles.append(problem(f"{what}, and the others hold it for dead", advice))
        else:
            advice = (
                "Look at its process and its log, and whether this machine reaches it (--advertise, firewalls). If it "
                "stands still, restart it: the others adopt its runs."
            )
            troubles.append(problem(what, advice))
    if not reports and not silent:
        troubles.append(problem("there is none that holds a lease", "Start controllers, or give --controllers."))
    return found("controllers", troubles, f"{len(reports)} answered: {listed([each.id for each in reports])}")


def _seen_as(reports: Reports) -> dict[str, dict[str, set[str]]]:
    """By address, by id there: how the controllers that answered see it."""
    seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for report in reports:
        for member in report.members:
            if member.status != "left":
                seen[member.grpc_address][member.id].add(member.status)
    return seen


def check_ring(reports: Reports) -> Finding:
    groups: dict[str, list[str]] = defaultdict(list)
    for report in reports:
        groups[report.ring_digest].append(report.id)
    troubles = []
    if len(groups) > 1:
        sides = " | ".join(
            f"{', '.join(ids)}: {digest} of {len(next(r for r in reports if r.id == ids[0]).ring_members)}"
            for digest, ids in groups.items()
        )
        troubles.append(
            problem(
                f"they disagree on the ring: {sides}",
                "Some can't reach each other: see `peers`. No tick runs twice for it, but claims "
                "collide, and some ticks are half a second late. It heals with the network.",
            )
        )
    for report in reports:
        outside = [other.id for other in reports if report.id not in other.ring_members]
        if outside and not report.draining:
            troubles.append(
                problem(
                    f"{report.id} is not on the ring of {listed(outside)}",
                    "See `peers`; if it is alone with it, restart it.",
                )
            )
    answered = {report.id for report in reports}
    owners = {member for report in reports for member in report.ring_members}
    troubles += [
        problem(f"{missing} owns slots and did not answer", "See `controllers`.")
        for missing in sorted(owners - answered)
    ]
    first = reports[0]
    return found("ring", troubles, f"all agree on {first.ring_digest} of {len(first.ring_members)} members")


def check_peers(reports: Reports) -> Finding:
    """Who can't reach whom, and who is suspected by whom."""
    troubles = []
    for report in reports:
        for member in report.members:
            if member.unreachable:
                troubles.append(
                    problem(
                        f"{report.id} can't reach {member.id} at {member.grpc_address}: {member.unreachable}",
                        "If it is only this pair, or only one way, look at the network between "
                        "them (firewall, --advertise); else at the one that can't be reached.",
                    )
                )
            elif member.status == "suspect":
                troubles.append(
                    warning(
                        f"{report.id} suspects {member.id}, which answers",
                        "It lost probes: look for packet loss, and for a lack of CPU.",
                    )
                )
    ways = sum(1 for report in reports for member in report.members if member.id != report.id)
    return found("peers", troubles, f"each reaches each ({ways} ways)" if ways else "there is only one")


def check_leases(reports: Reports) -> Finding:
    troubles = []
    for report in reports:
        if report.draining:
            troubles.append(
                warning(
                    f"{report.id} is draining",
                    "It leaves when its runs have ended, or after --drain-timeout. Nothing to do if that is meant.",
                )
            )
        elif not report.database_ok:
            troubles.append(
                problem(
                    f"{report.id} can't reach PostgreSQL, and claims nothing",
                    "See `database`; if others reach it, look at the network from that host.",
                )
            )
        elif not report.lease_valid or report.not_ready:
            troubles.append(
                problem(
                    f"{report.id} claims nothing: {report.not_ready or 'its lease is over'}",
                    "If PostgreSQL is slow, see `open transactions`; if the process is, look for "
                    "`event_loop_late` in its log.",
                )
            )
        elif report.in_drill:
            troubles.append(
                warning(
                    f"{report.id} is in a drill, and claims nothing meanwhile",
                    "Nothing: it ends by itself within a minute.",
                )
            )
    held = [report.lease_held_ms for report in reports if report.lease_valid]
    return found(
        "controllers' leases",
        troubles,
        f"all controllers hold one, without a gap for {measured(min(held, default=0))} or longer",
    )


def check_clocks(reports: Reports) -> Finding:
    troubles = []
    for report in reports:
        if report.database_time is None:
            continue  # it has never reached PostgreSQL, as `controllers' leases` says
        if abs(report.wall_clock_offset_us) > WALL_OFFSET_US:
            apart = measured(report.wall_clock_offset_us / 1000)
            troubles.append(
                warning(
                    f"the clock of {report.id}'s host is {apart} off PostgreSQL's",
                    "Ticks go by PostgreSQL's clock alone, so they are right; times in logs are not. If it is "
                    "some minutes off, other controllers refuse its certificates. Run NTP (chrony) on both hosts.",
                )
            )
        if report.clock_error_us > CLOCK_ERROR_US:
            troubles.append(
                warning(
                    f"{report.id} knows PostgreSQL's clock only to {measured(report.clock_error_us / 1000)}",
                    "Round trips to PostgreSQL take that long: ticks are as late. Look at the "
                    "network, and at the load of the server.",
                )
            )
        if report.clock_steps:
            troubles.append(
                warning(
                    f"{report.id} saw PostgreSQL's clock set {report.clock_steps} times in an hour",
                    "Let NTP slew the clock of PostgreSQL's host (chrony without makestep), or "
                    "look whether there was a failover.",
                )
            )
    offsets = [report.wall_clock_offset_us for report in reports if report.database_time is not None]
    errors_us = max((report.clock_error_us for report in reports), default=0)
    widest = max((abs(offset) for offset in offsets), default=0)
    return found(
        "clocks", troubles, f"within {measured(widest / 1000)} of PostgreSQL's, known to {measured(errors_us / 1000)}"
    )


def check_versions(reports: Reports, own_version: str) -> Finding:
    troubles = _apart(
        ((report.version, report.id) for report in reports),
        own_version,
        lambda sides: warning(
            f"they are of different releases: {sides}", "That is well while a rolling upgrade goes on; finish it."
        ),
        lambda theirs: warning(
            f"controllers are of {theirs}, this program of {own_version}",
            "Use the doctor of their release: what it expects may differ.",
        ),
    )
    return found("versions", troubles, f"all are {own_version}")


def check_zone_data(reports: Reports, own: str) -> Finding:
    """By which rules ticks of time zones are reckoned. `own`: this program's."""
    troubles = _apart(
        ((report.zone_data or "an unknown version", report.id) for report in reports),
        own,
        lambda sides: warning(
            f"they go by different versions of tzdata: {sides}",
            "Install one in all their environments (pip install -U tzdata) and restart them. Until then a tick of "
            "a zone whose rules differ is where its controller has it. It runs once; `audit` may find it odd.",
        ),
        lambda theirs: warning(
            f"controllers go by tzdata {theirs}, this program by {own}",
            "Install theirs here: what explain, next and plan say of a zone may differ from what they do.",
        ),
    )
    return found("zone data", troubles, f"all go by tzdata {own}")


def _apart(
    versions: Iterable[tuple[str, str]], own: str, differ: Callable[[str], Trouble], foreign: Callable[[str], Trouble]
) -> list[Trouble]:
    """`versions`: what each member has, and its id. `differ` is given their sides, `foreign` what all but we have."""
    by_version: dict[str, list[str]] = defaultdict(list)
    for version, member in versions:
        by_version[version].append(member)
    if len(by_version) > 1:
        return [differ(" | ".join(f"{version}: {', '.join(ids)}" for version, ids in sorted(by_version.items())))]
    return [foreign(theirs) for theirs in by_version if theirs != own]


def check_settings(reports: Reports) -> Finding:
    """Those that have to be equal on all."""
    troubles = []
    for name in sorted(set().union(*(report.settings for report in reports))):
        values: dict[str, list[str]] = defaultdict(list)
        for report in reports:
            if name in report.settings:
                values[report.settings[name]].append(report.id)
        if len(values) > 1:
            sides = " | ".join(f"{value}: {', '.join(ids)}" for value, ids in values.items())
            flag = "--" + name.removesuffix("_ms").replace("_", "-")
            troubles.append(problem(f"{name} differs ({sides})", f"Start all with the same {flag}."))
    return found("settings", troubles, "equal on all")


def check_queues(reports: Reports) -> Finding:
    troubles = []
    for report in reports:
        for name, limit in QUEUE_LIMITS.items():
            waiting = report.queues.get(name, 0)
            if waiting > limit:
                advice = "It doesn't keep up: look at PostgreSQL's load, and for a lack of CPU."
                troubles.append(warning(f"{report.id}: {waiting:,} {name.replace('_', ' ')}", advice))
        if report.health >= SLOW_HEALTH:
            troubles.append(
                warning(
                    f"{report.id} finds itself slow (local health {report.health} of 8)",
                    "Its host is short of CPU, or its network loses packets.",
                )
            )
    held = sum(report.queues.get("held", 0) for report in reports)
    return found("queues", troubles, f"short; {held:,} executions are held")


def check_streams(reports: Reports) -> Finding:
    """A runner connects to every controller: one that a part of them don't have is half cut off."""
    everywhere = sorted(set().union(*(report.runners for report in reports)))
    troubles = []
    for runner in everywhere:
        without = [report.id for report in reports if runner not in report.runners and not report.draining]
        if without:
            troubles.append(
                warning(
                    f"runner {runner} is not connected to {listed(without)}",
                    "It goes on through the others. Look whether its host reaches those (--advertise, firewall).",
                )
            )
    return found("runner streams", troubles, f"{len(everywhere)} runners, each connected to each controller")


def check_certificates(reports: Reports) -> Finding:
    """Of controllers: once they have ended, nobody gets in any more."""
    renew = "`cronring certs renew DIR --ca CA`, or see to your PKI: it is read again within 10 s."
    troubles = []
    for report in reports:
        left_ms = report.certificate_left_ms
        if report.certificate_problem:
            troubles.append(
                problem(
                    f"{report.id} can't take what is in its folder: {report.certificate_problem}",
                    "It goes on with what it had. Put files there that belong together.",
                )
            )
        if left_ms is not None and left_ms <= 0:
            troubles.append(problem(f"the certificate of {report.id} ended {measured(-left_ms)} ago", renew))
        elif left_ms is not None and left_ms < ENDS_SOON_MS:
            rule = problem if left_ms < DAY_MS else warning
            troubles.append(rule(f"the certificate of {report.id} ends in {measured(left_ms)}", renew))
    plain = [report.id for report in reports if report.certificate_left_ms is None]
    if plain:
        return found("certificates", troubles, f"none: {listed(plain)} run with --insecure, for this machine alone")
    soonest = min(report.certificate_left_ms or 0 for report in reports)
    return found("certificates", troubles, f"the first ends in {measured(soonest)}")


def check_issuers(reports: Reports) -> Finding:
    """Of JWTs: the old keys go on, and new ones are not known."""
    troubles = [
        warning(
            f"{report.id} can't fetch keys: {report.issuer_problem}",
            "Look whether that host reaches the issuer. Tokens by keys that it has are still good.",
        )
        for report in reports
        if report.issuer_problem
    ]
    return found("issuers", troubles, "keys are there, or nobody needed them")


def check_secrets_keys(reports: Reports) -> Finding:
    """Who can't open secrets delivers nothing; two that encrypt by other keys undo each other's work."""
    troubles = [
        problem(
            f"{report.id}: {report.secrets_problem}",
            "Give all controllers the same --secrets-key; it is read again within 10 s. Nothing is lost meanwhile.",
        )
        for report in reports
        if report.secrets_problem
    ]
    keys = {report.secrets_key for report in reports}
    if len(keys) > 1:
        by_key = listed([f"{report.id} by {report.secrets_key or 'none'}" for report in reports])
        troubles.append(
            warning(
                f"controllers encrypt by other keys: {by_key}",
                "Give all the same file, with the same key first, or the same --secrets-command.",
            )
        )
    return found("secrets' keys", troubles, f"all encrypt by {max(keys)}" if max(keys) else "nobody has one")
