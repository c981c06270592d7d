"""Rules about the PostgreSQL server: what it is, how it is set, and who is connected to it."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from cronring.controller.core.doctor.finding import Finding, Trouble, found, listed, problem, warning
from cronring.schema.duration import measured

OLDEST_MAJOR: Final = 14  # date_trunc with a zone came in 12, bodies of SQL functions in 14
NEWEST_MAJOR: Final = 18
CONNECTIONS_OF_A_CONTROLLER: Final = 12  # a pool of 10, one that listens, one for maintenance
SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
GIBIBYTE: Final = 1 << 30
XID_WARNING: Final = 500_000_000
XID_PROBLEM: Final = 1_500_000_000  # at 2,146 million PostgreSQL takes no more writes
IDLE_WARNING_MS: Final = 10_000
OPEN_WARNING_MS: Final = 900_000

SETTINGS: Final = (
    "server_version_num", "server_version", "default_transaction_read_only", "default_transaction_isolation", "fsync",
    "full_page_writes", "synchronous_commit", "autovacuum", "track_counts", "statement_timeout", "lock_timeout",
    "transaction_timeout", "idle_session_timeout",
)  # fmt: skip

Settings = Mapping[str, str]


class ServerState(NamedTuple):
    standby: bool
    size_bytes: int
    xid_age: int


class ConnectionUse(NamedTuple):
    """`..._free` None: there is no limit. `ours`: sessions of controllers."""

    server_free: int
    usable: int
    database_free: int | None
    role_free: int | None
    ours: int


class OpenTransaction(NamedTuple):
    """`blocks`: how many sessions wait for its locks."""

    pid: int
    role: str
    application: str
    idle: bool
    open_ms: int
    state_ms: int
    locked: list[str]
    blocks: int


class PreparedTransaction(NamedTuple):
    gid: str
    owner: str
    open_ms: int


class ReplicationSlot(NamedTuple):
    name: str
    active: bool
    kept_bytes: int


def check_version(settings: Settings) -> Finding:
    major = int(settings["server_version_num"]) // 10_000
    troubles = []
    if major < OLDEST_MAJOR:
        seen = f"PostgreSQL {settings['server_version']} is older than {OLDEST_MAJOR}, the oldest that works"
        troubles.append(problem(seen, f"Upgrade PostgreSQL to {OLDEST_MAJOR} or later (pg_upgrade)."))
    elif major > NEWEST_MAJOR:
        seen = f"PostgreSQL {settings['server_version']} is newer than {NEWEST_MAJOR}, the newest that was tried"
        troubles.append(warning(seen, "Upgrade cronring, or try this version of PostgreSQL in a test first."))
    return found("postgresql version", troubles, f"PostgreSQL {settings['server_version']}")


def check_writable(settings: Settings, state: ServerState) -> Finding:
    troubles = []
    if state.standby:
        troubles.append(problem("this server is a standby: it takes no claim",
                                "Name all hosts in the URL (host=a,b): the one that takes writes is found by "
                                "itself. If none does, promote one."))  # fmt: skip
    if settings["default_transaction_read_only"] == "on":
        troubles.append(problem("default_transaction_read_only is on: no claim is written",
                                "ALTER DATABASE ... RESET default_transaction_read_only (or of the role), then restart "
                                "controllers; some platforms set it when the disk is full."))  # fmt: skip
    return found("writes", troubles, "the server takes writes")


def check_durability(settings: Settings) -> Finding:
    """What is acknowledged must survive a crash of PostgreSQL, or results are lost and ticks may run twice."""
    troubles = []
    if settings["fsync"] != "on":
        troubles.append(problem("fsync is off: a crash of the machine may lose or corrupt everything",
                                "Set fsync = on in postgresql.conf and reload."))  # fmt: skip
    if settings["synchronous_commit"] == "off":
        troubles.append(problem("synchronous_commit is off: after a crash of PostgreSQL, claims and results of the "
                                "last moment are gone, and their ticks run again",
                                "ALTER DATABASE ... SET synchronous_commit = on (or of the role, or in "
                                "postgresql.conf), then restart controllers."))  # fmt: skip
    if settings["full_page_writes"] != "on":
        troubles.append(warning("full_page_writes is off: a crash may tear pages, unless the file system can't",
                                "Set full_page_writes = on and reload."))  # fmt: skip
    return found("durability", troubles, f"fsync on, synchronous_commit {settings['synchronous_commit']}")


def check_isolation(settings: Settings) -> Finding:
    isolation = settings["default_transaction_isolation"]
    troubles = []
    if isolation != "read committed":
        troubles.append(problem(f"default_transaction_isolation is {isolation}: claims and ends that meet fail, "
                                "and are repeated late",
                                "ALTER DATABASE ... SET default_transaction_isolation = 'read committed' (or of "
                                "the role), then restart controllers."))  # fmt: skip
    return found("transaction isolation", troubles, isolation)


def check_timeouts(settings: Settings) -> Finding:
    """The controllers' pool sets its own statement_timeout. All other timeouts are the server's."""
    troubles: list[Trouble] = []
    for name, least_ms, harm in (
        ("statement_timeout", MINUTE_MS, "migrations and the upkeep of history (partitions, retention) are cut off"),
        ("transaction_timeout", MINUTE_MS, "the upkeep of history (partitions, retention) is cut off"),
        ("idle_session_timeout", 10 * MINUTE_MS, "idle connections of controllers are cut, also the one that listens"),
        ("lock_timeout", SECOND_MS, "claims and ends that wait for one another fail, and are repeated late"),
    ):
        value_ms = int(settings.get(name, "0"))
        if 0 < value_ms < least_ms:
            grave = problem if value_ms < SECOND_MS else warning
            troubles.append(grave(f"{name} of new sessions is {measured(value_ms)}: {harm}",
                                  f"ALTER DATABASE ... SET {name} = 0 (or RESET it; look at the role, too), then "
                                  "restart controllers."))  # fmt: skip
    return found("timeouts", troubles, "none that cuts off what controllers do")


def check_autovacuum(settings: Settings, state: ServerState) -> Finding:
    troubles = [
        problem(f"{name} is off: dead rows pile up, and claims slow down from hour to hour",
                f"Set {name} = on in postgresql.conf and reload.")
        for name in ("autovacuum", "track_counts") if settings[name] != "on"
    ]  # fmt: skip
    if state.xid_age > XID_WARNING:
        grave = problem if state.xid_age > XID_PROBLEM else warning
        troubles.append(grave(f"the oldest transaction id is {state.xid_age:,} old; beyond 2 billion PostgreSQL stops "
                              "taking writes",
                              "End what holds it back (open and prepared transactions, replication slots), then "
                              "VACUUM (FREEZE)."))  # fmt: skip
    return found("autovacuum", troubles, f"on; the database has {size(state.size_bytes)}")


def check_connections(use: ConnectionUse) -> Finding:
    troubles = []
    for what, free, remedy in (
        ("the server's max_connections", use.server_free, "raise max_connections, or end sessions of others"),
        ("the database's CONNECTION LIMIT", use.database_free, "ALTER DATABASE ... CONNECTION LIMIT"),
        ("the role's CONNECTION LIMIT", use.role_free, "ALTER ROLE ... CONNECTION LIMIT"),
    ):
        if free is not None and free < CONNECTIONS_OF_A_CONTROLLER:
            grave = problem if free <= 2 else warning
            troubles.append(grave(f"{max(free, 0)} connections are free of {what}",
                                  f"A controller takes up to {CONNECTIONS_OF_A_CONTROLLER}: {remedy}."))  # fmt: skip
    well = f"{use.server_free} of {use.usable} are free; controllers have {use.ours}"
    return found("connections", troubles, well)


def check_transactions(transactions: Sequence[OpenTransaction]) -> Finding:
    troubles = []
    for open_one in transactions:
        who = f"pid {open_one.pid} ({open_one.role}, {open_one.application or 'no application name'})"
        holds = f", holds locks on {listed(open_one.locked)}" if open_one.locked else ""
        ending = f"Once you know what it is: SELECT pg_terminate_backend({open_one.pid});"
        if open_one.blocks:
            seen = f"{who} blocks {open_one.blocks} sessions for up to {measured(open_one.open_ms)}{holds}"
            troubles.append(problem(seen, ending))
        elif open_one.idle and open_one.state_ms >= IDLE_WARNING_MS:
            seen = f"{who} is idle in a transaction since {measured(open_one.state_ms)}{holds}"
            troubles.append(warning(seen, ending))
        elif open_one.open_ms >= OPEN_WARNING_MS:
            since = measured(open_one.open_ms)
            seen = f"{who} has a transaction open since {since}{holds}: VACUUM can clear nothing since"
            troubles.append(warning(seen, ending))
    return found("open transactions", troubles, "none that is in the way")


def check_prepared(transactions: Sequence[PreparedTransaction]) -> Finding:
    troubles = [
        (problem if each.open_ms > 10 * MINUTE_MS else warning)(
            f"prepared transaction {each.gid} of {each.owner} is open since {measured(each.open_ms)}: it keeps its "
            "locks, and VACUUM from clearing",
            f"COMMIT PREPARED '{each.gid}' or ROLLBACK PREPARED '{each.gid}', as its owner decides.",
        )
        for each in transactions if each.open_ms > MINUTE_MS
    ]  # fmt: skip
    return found("prepared transactions", troubles, "none that is old")


def check_slots(slots: Sequence[ReplicationSlot]) -> Finding:
    troubles = [
        (problem if each.kept_bytes > 16 * GIBIBYTE else warning)(
            f"replication slot {each.name} is unused and keeps {size(each.kept_bytes)} of WAL: the disk fills up",
            f"Bring its standby back, or SELECT pg_drop_replication_slot('{each.name}').",
        )
        for each in slots if not each.active and each.kept_bytes > GIBIBYTE
    ]  # fmt: skip
    return found("replication slots", troubles, f"{len(slots)}, none that holds much WAL for nobody")


def size(count: int) -> str:
    """Bytes for people."""
    return f"{count / GIBIBYTE:.1f} GiB" if count >= GIBIBYTE else f"{count / (1 << 20):.1f} MiB"
