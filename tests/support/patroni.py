"""Three PostgreSQL 15 under Patroni, with one etcd: synchronous replication, fail-over, on loopback.

Debian's `patroni`, `etcd-server` and `postgresql-15`. A member is one Patroni and the PostgreSQL that it keeps; what is
started here ends with the `with` block. `Patroni.missing()` says what is not installed.
What its PostgreSQLs say is read as that of other test servers (tests/support/server_logs.py). A postmaster that is
killed before its processes says nothing of them, so no line has to be excused.
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import psutil

from tests.support.cluster import free_port
from tests.support.databases import LIBC, PR_SET_PDEATHSIG, SYSTEM_BIN
from tests.support.server_logs import LOGS

USER: Final = "postgres"
# Seconds. Patroni's own defaults are 30, 10 and 10; a leader's key that isn't renewed for TTL_S is up for election.
TTL_S: Final = 10
LOOP_WAIT_S: Final = 2
RETRY_TIMEOUT_S: Final = 3
START_S: Final = 60.0
CHANGE_S: Final = 60.0
POLL_S: Final = 0.1


def _die_with_parent() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # Patroni stops its PostgreSQL then


@dataclass
class Member:
    """One Patroni. `popen` is None while it is not running."""

    name: str
    port: int
    rest_port: int
    folder: Path
    popen: "subprocess.Popen[bytes] | None" = None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """Of its Patroni, and of the PostgreSQL that this started."""
        return self.folder / "patroni.log"

    def postgres(self) -> list[psutil.Process]:
        """Its PostgreSQL's processes, the postmaster first; none if it isn't running."""
        try:
            postmaster = psutil.Process(int((self.data / "postmaster.pid").read_text().split("\n", 1)[0]))
            if postmaster.name() != "postgres" or Path(postmaster.cwd()) != self.data:
                return []
            return [postmaster, *postmaster.children(recursive=True)]
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return []


class Patroni:
    """`start()` inside a `with`. Raises AssertionError with the logs' tails when the members don't get ready."""

    def __init__(self, members: int = 3) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cronring-patroni-"))
        self.folder.chmod(0o755)
        self._etcd: subprocess.Popen[bytes] | None = None
        self._etcd_ports = free_port(), free_port()
        self.members = [
            Member(f"member{number}", free_port(), free_port(), self.folder / f"member{number}")
            for number in range(1, members + 1)
        ]
        self._crash_logs = [LOGS.open(member.log) for member in self.members]

    @staticmethod
    def missing() -> str:
        """What has to be installed, in words; empty when everything is there."""
        wanted = {"patroni": shutil.which("patroni"), "etcd-server": shutil.which("etcd")}
        wanted["postgresql-15"] = shutil.which(str(SYSTEM_BIN / "postgres"))
        lacking = [package for package, found in wanted.items() if found is None]
        if os.geteuid() != 0:
            lacking.append("root, to run them as the user postgres")
        return ", ".join(lacking)

    def __enter__(self) -> "Patroni":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            self.kill(member)
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd.wait(timeout=60)
        for log in self._crash_logs:
            LOGS.close(log)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres") -> str:
        """Of all members: whoever connects finds the one that takes writes."""
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def start(self) -> None:
        """etcd, then the members; returns when one leads and another is its synchronous standby."""
        self._start_etcd()
        for member in self.members:
            member.folder.mkdir()
            shutil.chown(member.folder, USER)
            (member.folder / "patroni.json").write_text(json.dumps(self._configuration(member)))
            self.start_member(member)
        self._wait("a leader and a synchronous standby", lambda: self.roles().get("sync_standby") is not None, START_S)
        self._wait("all members stream", lambda: len(self._running()) == len(self.members), START_S)

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in self._etcd_ports)
        data = self.folder / "etcd"
        with (self.folder / "etcd.log").open("wb") as log:
            self._etcd = subprocess.Popen(
                ["etcd", "--name", "etcd", "--data-dir", str(data), "--listen-client-urls", client,
                 "--advertise-client-urls", client, "--listen-peer-urls", peer,
                 "--initial-advertise-peer-urls", peer, "--initial-cluster", f"etcd={peer}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  (takes no lock; nothing else survives a kill -9 of pytest)
            )  # fmt: skip

        def healthy() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{client}/health", timeout=1) as answer:
                return bool(answer.status == 200)
            return False

        self._wait("etcd", healthy, START_S)

    def _configuration(self, member: Member) -> dict[str, Any]:
        local = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"]
        dynamic = {
            "ttl": TTL_S, "loop_wait": LOOP_WAIT_S, "retry_timeout": RETRY_TIMEOUT_S,
            "synchronous_mode": True, "synchronous_mode_strict": True,
            "postgresql": {"use_pg_rewind": True, "parameters": {
                "max_connections": 200, "wal_log_hints": "on", "shared_buffers": "64MB", "timezone": "Asia/Kathmandu",
            }},
        }  # fmt: skip
        return {
            "scope": "cronring", "name": member.name,
            "restapi": {"listen": f"127.0.0.1:{member.rest_port}",
                        "connect_address": f"127.0.0.1:{member.rest_port}"},
            "etcd3": {"hosts": f"127.0.0.1:{self._etcd_ports[0]}"},
            "bootstrap": {"dcs": dynamic, "initdb": [{"encoding": "UTF8"}, {"auth": "trust"}], "pg_hba": local},
            "postgresql": {
                "listen": f"127.0.0.1:{member.port}", "connect_address": f"127.0.0.1:{member.port}",
                "data_dir": str(member.data), "bin_dir": str(SYSTEM_BIN), "pgpass": str(member.folder / "pgpass"),
                "parameters": {"unix_socket_directories": str(member.folder)}, "pg_hba": local,
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"},
                                   "rewind": {"username": "postgres"}},
            },
        }  # fmt: skip

    def start_member(self, member: Member) -> None:
        """Its Patroni, which starts (or first copies) its PostgreSQL. Doesn't wait."""
        with member.log.open("ab") as log:
            member.popen = subprocess.Popen(
                ["patroni", str(member.folder / "patroni.json")], user=USER, group=pwd.getpwnam(USER).pw_gid,
                extra_groups=[], cwd=member.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  (as above)
            )  # fmt: skip

    def kill(self, member: Member) -> None:
        """As a host that lost its power: Patroni and every process of its PostgreSQL at once."""
        victims = [*([psutil.Process(member.popen.pid)] if member.popen and member.popen.poll() is None else [])]
        for process in [*victims, *member.postgres()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if member.popen is not None:
            member.popen.wait(timeout=60)
            member.popen = None

    def roles(self) -> dict[str, Member]:
        """Of those that run, as Patroni tells: "leader", "sync_standby", and one "replica"."""
        by_name = {member.name: member for member in self.members}
        return {each["role"]: by_name[each["name"]] for each in self._cluster() if _runs(each)}

    def _running(self) -> list[str]:
        return [each["name"] for each in self._cluster() if _runs(each)]

    def _cluster(self) -> list[dict[str, Any]]:
        for member in self.members:
            if not _answers(member):
                continue
            with contextlib.suppress(OSError, ValueError):
                address = f"http://127.0.0.1:{member.rest_port}/cluster"
                with urllib.request.urlopen(address, timeout=1) as answer:
                    told: list[dict[str, Any]] = json.load(answer).get("members", [])
                    return told
        return []

    def leader(self) -> Member:
        """Who leads now; waits for one."""
        return self._wait_for_leader("a leader", None)

    def wait_for_other_leader(self, than: Member) -> Member:
        """Also while that one's Patroni stands still."""
        return self._wait_for_leader(f"another leader than {than.name}", than)

    def _wait_for_leader(self, what: str, than: Member | None) -> Member:
        found: list[Member] = []

        def leads() -> bool:
            leader = self.roles().get("leader")
            found[:] = [] if leader is None or leader is than else [leader]
            return bool(found)

        self._wait(what, leads, CHANGE_S)
        return found[0]

    def wait_for_all(self) -> None:
        """Until every member runs, and one of them is the synchronous standby."""
        self._wait(
            "all members", lambda: len(self._running()) == len(self.members) and "sync_standby" in self.roles(), START_S
        )

    def switch_over(self) -> tuple[Member, Member]:
        """`patronictl switchover` to the synchronous standby: who led, and who leads now."""
        self.wait_for_all()
        roles = self.roles()
        old, new = roles["leader"], roles["sync_standby"]
        done = subprocess.run(
            ["patronictl", "-c", str(old.folder / "patroni.json"), "switchover", "cronring", "--master", old.name,
             "--candidate", new.name, "--force"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"patronictl switchover: {done.stdout}{done.stderr}"
        return old, self.wait_for_other_leader(old)

    def _wait(self, what: str, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}: {self._cluster()}\n{self._tails()}"
            time.sleep(POLL_S)

    def _tails(self) -> str:
        logs = [self.folder / "etcd.log", *(member.log for member in self.members)]
        return "\n".join(f"{log}:\n{log.read_text(errors='replace')[-1500:]}" for log in logs if log.exists())


def _answers(member: Member) -> bool:
    return member.popen is not None and psutil.Process(member.popen.pid).status() != psutil.STATUS_STOPPED


def _runs(told: dict[str, Any]) -> bool:
    return told.get("state") in ("running", "streaming")
