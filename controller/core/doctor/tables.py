"""Rules about the tables: migrations, indexes, partitions, vacuum."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cronring.controller.core.doctor.finding import Finding, found, listed, problem, unchecked, warning
from cronring.schema.duration import measured

# What the migrations make. tests/conformance/test_doctor.py holds this against a migrated database.
INDEXES: Final[Mapping[str, frozenset[str]]] = {
    table: frozenset(f"{table}_{name}" for name in names.split())
    for table, names in {
        "controllers": "pkey",
        "cron_actions": "at deployment execution job pkey template untold",
        "cron_activations": "after due job pkey",
        "cron_audit_chain": "pkey",
        "cron_audit_log": "at pkey seq_key unsealed",
        "cron_closed_books": "pkey",
        "cron_closings": "pkey",
        "cron_dead_letters": "pkey queue workspace",
        "cron_defaults": "pkey",
        "cron_deliveries": "log old pkey waiting webhook_id_event_id_key",
        "cron_executions": "cancelling decided of_controller of_runner once pkey troubled",
        "cron_failing": "pkey",
        "cron_fence_checks": "pkey",
        "cron_followers": "after pkey",
        "cron_jobs": "changed due key labels late orphaned paused_until pkey removed set template",
        "cron_figures": "pkey",
        "cron_folding": "pkey",
        "cron_interval_jobs": "id_key listed pkey",
        "cron_keys": "pkey",
        "cron_late": "pkey",
        "cron_limits": "module pkey rule value",
        "cron_lives": "pkey until",
        "cron_maintenance": "pkey",
        "cron_notifier": "pkey",
        "cron_partitions": "pkey",
        "cron_pauses": "pkey",
        "cron_payloads": "pkey",
        "cron_queue": "age ended execution lane pkey",
        "cron_queue_lanes": "lease namespace_queue_workspace_key pkey ready",
        "cron_queue_listeners": "pkey",
        "cron_queue_wakes": "pkey",
        "cron_queues": "pkey",
        "cron_request_keys": "expires pkey",
        "cron_retrying": "pkey",
        "cron_runner_grants": "freed name pkey secret_hash_key",
        "cron_schedules": "open pkey",
        "cron_sessions": "pkey principal secret_hash_key token",
        "cron_sets": "pkey",
        "cron_skips": "job pkey",
        "cron_templates": "namespace_name_key pkey",
        "cron_tokens": "name pkey secret_hash_key",
        "cron_unfolded": "job pkey",
        "cron_verb_calls": "made pkey",
        "cron_webhooks": "name_key pkey",
        "cron_histories": "pkey",
        "cron_zone_data": "pkey",
        "cronring_migrations": "pkey",
        "deployments": "key_key namespace_module_digest_key one_active pkey",
        "runners": "pkey",
    }.items()
}
# Every claim and every end writes into each index of these.
HOT_TABLES: Final = frozenset({"cron_jobs", "cron_executions", "controllers", "runners"})

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
DEAD_ROWS: Final = 100_000
DEAD_PER_LIVE: Final = 4


class Applied(NamedTuple):
    """A migration, of the database or of this program."""

    version: int
    name: str
    checksum: str


class IndexState(NamedTuple):
    table: str
    name: str
    valid: bool


class HistoryState(NamedTuple):
    """How far ahead partitions reach; how long ago maintenance ran; `leased_ms`: how long a controller has held a
    lease.
    """

    ahead_ms: int | None
    checked_ms: int | None
    leased_ms: int | None


class TableState(NamedTuple):
    table: str
    live: int
    dead: int
    never_vacuumed: bool


def check_migrations(applied: Sequence[Applied], known: Sequence[Applied]) -> Finding:
    """`known` are this program's."""
    others = [
        problem(f"migration {there.version:04} {there.name} is another one than this program's",
                "Use the release of cronring that migrated this database.")
        for there, here in zip(applied, known, strict=False) if there.checksum != here.checksum
    ]  # fmt: skip
    if others:
        return found("schema", others, "")
    migrate = "Run `cronring migrate --database-url ...` of the release that your controllers run."
    troubles = []
    if len(applied) < len(known):
        missing = [f"{each.version:04} {each.name}" for each in known[len(applied) :]]
        troubles.append(problem(f"migrations are missing: {listed(missing)}", migrate))
    if len(applied) > len(known):
        troubles.append(problem(f"the schema is at version {len(applied)}, newer than this program's {len(known)}",
                                "Upgrade cronring on this machine: pip install --upgrade cronring"))  # fmt: skip
    return found("schema", troubles, f"version {len(applied)}, as this program's")


def check_indexes(states: Sequence[IndexState], scripts: Sequence[str]) -> Finding:
    """`scripts` of the migrations, for how to make what is missing."""
    if not states:
        return unchecked("indexes", "there are no tables of cronring in this schema")
    there: dict[str, dict[str, bool]] = {}
    for state in states:
        there.setdefault(state.table, {})[state.name] = state.valid
    troubles = []
    for table, names in INDEXES.items():
        troubles += [
            problem(f"index {name} of {table} is missing", _making(table, name, scripts))
            for name in sorted(names - there.get(table, {}).keys())
        ]
        for name, valid in there.get(table, {}).items():
            if not valid:
                troubles.append(problem(f"index {name} of {table} is not valid: it is written, and never read",
                                        _mending(table, name, scripts)))  # fmt: skip
            elif name not in names and table in HOT_TABLES:
                troubles.append(warning(f"index {name} of {table} is none of cronring's, and claims write into it",
                                        f"DROP INDEX CONCURRENTLY {name}, unless somebody needs it."))  # fmt: skip
    return found("indexes", troubles, f"{sum(map(len, INDEXES.values()))}, all there and valid")


def _making(table: str, name: str, scripts: Sequence[str]) -> str:
    """The statement that makes the index without blocking writers. For a constraint's index: where its statement is."""
    made = re.compile(rf"CREATE (UNIQUE )?INDEX {name} (ON [^;]+);")
    matches = [match for script in scripts for match in made.finditer(script)]
    if not matches:
        return f"{name} belongs to a constraint of {table}: add it as sql/migrations has it."
    # PostgreSQL can't make an index of a partitioned table concurrently.
    concurrently = "" if table == "cron_executions" else "CONCURRENTLY "
    return f"CREATE {matches[-1][1] or ''}INDEX {concurrently}{name} {' '.join(matches[-1][2].split())};"


def _mending(table: str, name: str, scripts: Sequence[str]) -> str:
    """REINDEX would not make an index that one partition lacks. So a partitioned table's index is made anew."""
    if table != "cron_executions":
        return f"REINDEX INDEX CONCURRENTLY {name};"
    return f"DROP INDEX {name}; {_making(table, name, scripts)}"


def check_history(state: HistoryState) -> Finding:
    """Partitions for the days to come, and whether anybody looks after them."""
    troubles = []
    upkeep = (
        "A controller makes them by itself, 30 s after its start and every 10 minutes; its log says "
        "`history_not_looked_after` and why where it can't (no right to create tables, a timeout, a lock)."
    )
    young = state.leased_ms is None or state.leased_ms < 5 * 60_000
    if state.ahead_ms is None or state.ahead_ms < 0:
        troubles.append(problem("there is no partition for today: executions go into cron_executions_later", upkeep))
    elif state.ahead_ms < 2 * DAY_MS and not young:
        troubles.append(warning(f"partitions of cron_executions reach only {measured(state.ahead_ms)} ahead", upkeep))
    if not young and (state.checked_ms is None or state.checked_ms > HOUR_MS):
        since = "ever" if state.checked_ms is None else f"for {measured(state.checked_ms)}"
        troubles.append(warning(f"nobody has looked after history {since}", upkeep))
    ahead = measured(state.ahead_ms) if state.ahead_ms is not None else "-"
    return found("partitions", troubles, f"made for {ahead} ahead")


def check_bloat(states: Sequence[TableState]) -> Finding:
    troubles = []
    for each in states:
        if each.never_vacuumed:
            troubles.append(warning(f"autovacuum is switched off for {each.table}",
                                    f"ALTER TABLE {each.table} RESET (autovacuum_enabled)"))  # fmt: skip
        if each.dead > DEAD_ROWS and each.dead > DEAD_PER_LIVE * each.live:
            seen = f"{each.table} has {each.dead:,} dead rows beside {each.live:,} live ones"
            remedy = f"Look for open transactions and slots that hold VACUUM back; then VACUUM (VERBOSE) {each.table}"
            troubles.append(warning(seen, remedy))
    return found("dead rows", troubles, f"{sum(each.dead for each in states):,} in {len(states)} tables")
