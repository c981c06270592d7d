"""What a verb gets at of its runner's, as docs/security.md has it in a table: run by root, by a user, with --run-as."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from cronring.trust.names import SECRETS
from tests.attacks.modules import prying
from tests.support.cluster import Process
from tests.support.others import OTHER, USER, as_root, as_user
from tests.support.secured import SecuredCluster
from tests.support.waiting import wait_until

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "security.md"
RIGHTS: Final = "-all,+setuid,+setgid,+kill"
OF_IMAGE: Final = f"{RIGHTS},+dac_read_search"  # as docker-compose.yml has it
# In the words of the page's table: what, and who reaches it: (run by root, by another user, with --run-as).
TABLE: Final = {
    "environment": "the runner's environment (`/proc/PPID/environ`)",
    "memory": "its memory (`/proc/PPID/mem`): its private key",
    "tracing": "the same by `ptrace`",
    "descriptors": "its descriptors (`/proc/PPID/fd`, `pidfd_getfd`): connections, files",
    "files": "files by which it is let in: `--certs`, `--join-token-file FILE`",
    "standard input's file": "a join token that only root may read, by `--join-token-file -`",
    "signals": "signals to it: `kill`, `SIGSTOP`",
    "siblings": "other children of it, with their payloads",
    "ancestors": "whoever started it, if that is the same user",
    "root": "root, by `setuid`",
}


class Stories:
    """One controller, and a runner for each way to start one; each hosts the hostile verb as a module of its own."""

    def __init__(self, cluster: SecuredCluster) -> None:
        self.cluster = cluster
        self.runners: dict[str, Process] = {}
        cluster.start_controller()
        cluster.let_in()
        made = cluster.ask("runner-grant", "create", "--name", "joined", "--may-activate", "--expires", "1d")
        assert made.returncode == 0, made.stderr
        secret = made.stdout.split()[-1]
        self.stdin = self.private("root.join", secret, 0)
        self.own = self.private("user.join", secret, USER)
        certs = cluster.pki.runner("tests")
        (certs / "tls.key").chmod(0o600)
        self.certs = {0: certs, OTHER: cluster.folder / "certs-of-other"}
        shutil.copytree(certs, self.certs[OTHER])
        for each in self.certs[OTHER].iterdir():
            os.chown(each, OTHER, OTHER)

    def private(self, name: str, text: str, owner: int) -> Path:
        file = self.cluster.folder / name
        file.write_text(text)
        file.chmod(0o600)
        os.chown(file, owner, owner)
        return file

    def start(self, name: str, files: tuple[Path, ...], *extra: str, wrapper: tuple[str, ...] = ()) -> None:
        module = self.cluster.folder / f"pry_{name}.py"
        shutil.copy(prying.__file__, module)
        mine = {"PRY_OUT": self.told(name), "PRY_FILES": ":".join(map(str, files)), "PRY_STDIN": self.stdin}
        self.cluster.environment |= {key: str(value) for key, value in mine.items()}
        self.runners[name] = self.cluster.start_runner(module, extra=extra, wrapper=wrapper)

    def joining(self, file: Path | str) -> tuple[str, ...]:
        return "--join-token-file", str(file), "--ca", str(self.cluster.pki.ca)

    def told(self, name: str) -> Path:
        return self.cluster.folder / "told" / name

    async def account(self, name: str, kind: str = "") -> dict[str, Any]:
        file, runner = self.told(name).with_suffix(kind), self.runners[name]

        def is_told() -> bool:
            assert runner.alive(), runner.tail()
            return file.exists()

        await wait_until(is_told, lambda: f"{name} told nothing:\n{runner.tail()}")
        answer: dict[str, Any] = json.loads(file.read_text())
        return answer


@pytest.fixture(scope="module")
def stories(module_database_url: str) -> Iterator[Stories]:
    as_root()
    folder = Path(tempfile.mkdtemp(prefix="cronring-hostile-"))
    folder.chmod(0o711)
    (folder / "told").mkdir()
    (folder / "told").chmod(0o777)
    secret = prying.canary(folder)
    try:
        with SecuredCluster(module_database_url, folder) as cluster:
            assert isinstance(cluster, SecuredCluster)
            made = Stories(cluster)
            cluster.environment |= {name: f"{secret}-{name}" for name in SECRETS} | {"OWN_SETTING": "is theirs"}
            start_all(made)
            yield made
    finally:
        shutil.rmtree(folder)


def start_all(made: Stories) -> None:
    keys = {owner: folder / "tls.key" for owner, folder in made.certs.items()}
    made.start("root", (keys[0],), "--certs", str(made.certs[0]))
    reads_stdin = ("sh", "-c", f'exec "$@" < {made.stdin}', "sh", *as_user(USER))
    made.start("user", (made.own,), *made.joining("-"), wrapper=reads_stdin)
    secrets = (*keys.values(), made.stdin)
    made.start("run_as", secrets, *made.joining(made.stdin), "--run-as", str(USER), wrapper=as_root(OF_IMAGE))
    by_rights = ("--certs", str(made.certs[OTHER]), "--run-as", str(USER))
    made.start("capable", secrets, *by_rights, wrapper=as_user(OTHER, RIGHTS))


def rows() -> Mapping[str, list[str]]:
    """Of the page's table: by its first cell, the others."""
    _, _, part = PAGE.read_text().partition("## What an author's code can reach\n")
    lines = re.findall(r"^\| (.+) \|$", part.partition("\n## ")[0], re.MULTILINE)
    return {cells[0]: cells[1:] for cells in (line.split(" | ") for line in lines)}


@pytest.mark.parametrize(("column", "names"), [(0, ["root"]), (1, ["user"]), (2, ["run_as", "capable"])])
async def test_what_is_reached_is_what_the_page_says(stories: Stories, column: int, names: list[str]) -> None:
    says = rows()
    for name in names:
        reaches = (await stories.account(name))["reaches"]
        assert set(reaches) == set(TABLE)
        for what, words in TABLE.items():
            if (what, column) != ("ancestors", 1):  # here root has started it
                assert says[words][column] == ("yes" if reaches[what] else "no"), (name, what)


@pytest.mark.parametrize("name", ["root", "user", "run_as", "capable"])
async def test_no_secret_is_in_an_environment_or_a_command_line(stories: Stories, name: str) -> None:
    told = await stories.account(name)
    assert not SECRETS.intersection(told["environment"])
    assert "OWN_SETTING" in told["environment"]
    assert told["canary"] == []


@pytest.mark.parametrize("name", ["user", "run_as"])
async def test_a_child_has_the_descriptors_that_it_needs_and_no_other(stories: Stories, name: str) -> None:
    told = await stories.account(name)
    # Standard streams and the lifeline; the runner's socket, and the board.
    streams, ours = ["/dev/null", "pipe:", "pipe:", "pipe:"], ["/memfd:cronring-board (deleted)", "socket:"]
    assert kinds(told["descriptors"]) == sorted([*streams, *ours])
    assert kinds(told["descriptors_of_copy"]) == sorted([*streams, ours[0]])
    loop = ["anon_inode:[eventpoll]", "socket:", "socket:"]
    assert kinds(await stories.account(name, ".async")) == sorted([*kinds(told["descriptors"]), *loop])
    described = await stories.account(name, ".described")
    answer = [what for what in described["descriptors"].values() if what.endswith("(deleted)")]
    assert len(answer) == 1
    assert kinds(described["descriptors"]) == sorted([*streams, *answer])
    assert described["user"] == [USER] * 3


def kinds(descriptors: dict[str, str]) -> list[str]:
    """What they are, without the numbers of pipes and sockets."""
    return sorted(re.sub(r":\[\d+\]", ":", what) for what in descriptors.values())


@pytest.mark.parametrize("name", ["run_as", "capable"])
async def test_children_are_another_user_in_every_respect(stories: Stories, name: str) -> None:
    told = await stories.account(name)
    user = [[USER] * 3, [USER] * 3, [USER], 0o077]
    assert told["user"] == user
    assert told["names"] == ["/nonexistent", "nobody", "nobody"]
    assert told["capabilities"] == ["0" * 16] * 3
    assert not told["may_gain"]


async def test_who_runs_as_root_is_warned(stories: Stories) -> None:
    await stories.account("root")
    assert "verbs_run_as_root" in stories.runners["root"].log.read_text()
    assert not any(
        "verbs_run_as_root" in each.log.read_text() for name, each in stories.runners.items() if name != "root"
    )


@pytest.mark.parametrize("name", ["run_as", "capable"])
async def test_children_of_another_user_die_with_their_runner(stories: Stories, name: str) -> None:
    """Last, as it kills what the other tests look at."""
    await stories.account(name)
    runner = stories.runners[name]
    children = psutil.Process(runner.pid).children(recursive=True)
    assert children
    runner.kill()
    await wait_until(lambda: not any(each.is_running() for each in children), lambda: f"{children} live on")
