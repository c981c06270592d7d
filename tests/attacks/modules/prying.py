"""A hostile verb: it tries to get at what its runner holds, and tells what it got. Each reach is True if it did."""

import ctypes
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cronring import cron, every

KEY = b"-----BEGIN " + b"PRIVATE KEY-----"  # in two: nobody is to find it in this file
CHUNK = 1 << 20
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
PIDFD_OPEN, PIDFD_GETFD = 434, 438

libc = ctypes.CDLL(None, use_errno=True)


def own_descriptors() -> dict[str, str]:
    """But for the one that lists them."""
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
    return found


def keep(told: Any, kind: str = "") -> None:
    """Once, in a file that appears whole."""
    file = Path(os.environ["PRY_OUT"]).with_suffix(kind)
    beside = file.with_suffix(f".{os.getpid()}")
    if not file.exists():
        beside.write_text(json.dumps(told))
        beside.rename(file)


if "PRY_OUT" in os.environ:  # the first to import it is the child that describes it
    keep({"user": os.getresuid(), "descriptors": own_descriptors()}, ".described")


def reached(attempt: Callable[..., Any], *arguments: Any) -> bool:
    try:
        return bool(attempt(*arguments))
    except OSError:
        return False


def environment(pid: int) -> bool:
    return bool(Path(f"/proc/{pid}/environ").read_bytes())


def memory(pid: int, wanted: bytes) -> bool:
    """Is that anywhere in what it may write to?"""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", buffering=0) as held:
        for line in maps:
            span, rights = line.split()[:2]
            begin, end = (int(each, 16) for each in span.split("-"))
            if rights.startswith("rw") and found_in(held, begin, end, wanted):
                return True
    return False


def found_in(held: Any, begin: int, end: int, wanted: bytes) -> bool:
    for offset in range(begin, end, CHUNK):
        try:
            held.seek(offset)
            if wanted in held.read(min(CHUNK + len(wanted), end - offset)):
                return True
        except OSError:
            return False
    return False


def descriptors(pid: int) -> bool:
    return bool(os.listdir(f"/proc/{pid}/fd"))


def taken_descriptor(pid: int) -> bool:
    """One of its sockets or files, by pidfd_getfd."""
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    return pidfd >= 0 and any(libc.syscall(PIDFD_GETFD, pidfd, fd, 0) >= 0 for fd in range(32))


def traced(pid: int) -> bool:
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) != 0:
        return False
    libc.ptrace(PTRACE_INTERRUPT, pid, None, None)
    os.waitpid(pid, 0)
    libc.ptrace(PTRACE_DETACH, pid, None, None)
    return True


def signalled(pid: int) -> bool:
    os.kill(pid, 0)
    return True


def became_root() -> bool:
    """In a copy of this process: a verb that is root stays so."""
    copy = os.fork()
    if copy == 0:
        try:
            os.setuid(0)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def ancestors() -> list[int]:
    """Above the runner."""
    found, pid = [], parent_of(os.getppid())
    while pid > 1:
        found.append(pid)
        pid = parent_of(pid)
    return found


def siblings() -> list[int]:
    every_pid = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in every_pid if pid != os.getpid() and reached(lambda pid: parent_of(pid) == os.getppid(), pid)]


def canary(folder: Path) -> str:
    """A secret that no other test has."""
    return f"hunter2-{folder.name}"


def canary_seen() -> list[str]:
    """Which processes' environment or command line has a secret of ours, of all that can be read."""
    seen, secret = [], canary(Path(os.environ["PRY_OUT"]).parents[1]).encode()
    for name in (name for name in os.listdir("/proc") if name.isdigit()):
        for what in ("environ", "cmdline"):
            try:
                if secret in Path(f"/proc/{name}/{what}").read_bytes():
                    seen.append(f"{what} of {Path(f'/proc/{name}/comm').read_text().strip()} {name}")
            except OSError:
                continue
    return seen


def descriptors_of_copy() -> dict[str, str]:
    reader, writer = os.pipe()
    copy = os.fork()
    if copy == 0:
        os.close(reader)
        mine = own_descriptors()
        del mine[str(writer)]
        os.write(writer, json.dumps(mine).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        answer: dict[str, str] = json.loads(told.read())
    os.waitpid(copy, 0)
    return answer


def reaches() -> dict[str, bool]:
    runner = os.getppid()
    return {
        "environment": reached(environment, runner),
        "memory": reached(memory, runner, KEY),
        "tracing": reached(traced, runner),
        "descriptors": reached(descriptors, runner) or taken_descriptor(runner),
        "files": any(reached(Path(each).read_bytes) for each in os.environ["PRY_FILES"].split(":") if each),
        "standard input's file": reached(Path(os.environ["PRY_STDIN"]).read_bytes),
        "signals": reached(signalled, runner),
        "siblings": any(reached(environment, each) and reached(descriptors, each) for each in siblings()),
        "ancestors": any(reached(environment, each) for each in ancestors()),
        "root": became_root(),
    }


def status(field: str) -> str:
    return next(line.split(":")[1].strip() for line in Path("/proc/self/status").open() if line.startswith(field))


def account() -> dict[str, Any]:
    descriptors = {"descriptors": own_descriptors(), "descriptors_of_copy": descriptors_of_copy()}
    mask = os.umask(0)
    os.umask(mask)
    return {
        "pid": os.getpid(),
        "runner": os.getppid(),
        "user": [os.getresuid(), os.getresgid(), os.getgroups(), mask],
        "names": [os.environ.get(name) for name in ("HOME", "USER", "LOGNAME")],
        "may_gain": status("NoNewPrivs") == "0",
        "capabilities": [status(field) for field in ("CapPrm", "CapEff", "CapAmb")],
        "reaches": reaches(),
        "canary": canary_seen(),
        "environment": sorted(os.environ),
        **descriptors,
    }


@every("1s")
def pry() -> None:
    """Tell what there is, once."""
    if not Path(os.environ["PRY_OUT"]).exists():
        keep(account())


@every("1s")
async def pry_async() -> None:
    """The descriptors of a child that many runs share."""
    keep(own_descriptors(), ".async")


@cron("0 0 1 1 *")
def never() -> None:
    """So that there is a second child for sync verbs, idle."""
