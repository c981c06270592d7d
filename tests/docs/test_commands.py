"""Every command of README and docs is run, on a real cluster, in the order of a reader."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.conftest import fresh_folder
from tests.acceptance.dev import Dev
from tests.docs.reading import ROOT, WALKED, Command, blocks, commands, pages
from tests.support import programs
from tests.support.databases import PostgresServer
from tests.support.waiting import POLL_S

EXAMPLES: Final = ROOT / "examples"
# What can't be run here, by its beginning, and why.
NOT_RUN: Final = {
    "cronring login": "asks another machine; tests/integration/identity/test_login.py runs it",
    "cronring logout": "nobody is logged in",
    "git clone": "asks another machine",
    "make demo": "tests/acceptance/test_demo.py runs it",
    "make test": "this is a part of it",
    "python3 -m venv": "makes what this runs in",
    "pip install": "asks a package index",
    "export ": "sets what the test gives",
}
# What a reader has and the test has not, or the other way round.
IN_PLACE_OF: Final = (
    (r"10\.0\.0\.1:7400,10\.0\.0\.2:7400|10\.0\.0\.1:7400", "{controller}"),
    (r"10\.0\.0\.1:7480|10\.0\.0\.1:7500", "127.0.0.1:0"),
    (r"postgresql://…|\$CRONRING_DATABASE_URL", "{database}"),
    (r"\bJOB\b|billing\.sync", "billing.close_day"),
    (r"^3600x$", "86400x"),
    (r"^365d$", "20d"),
    (r"^ID$|\b4711\b", "{execution}"),
    (r"https://example\.com/hooks/cron", "http://127.0.0.1:9/hooks/cron"),
)  # fmt: skip
# They go on until somebody ends them. By then: what each has said, and its exit code for Ctrl-C.
ENDLESS: Final = {
    "controller": ("started", 0),
    "runner": ("runner_started", 0),
    "logs -f": ("waiting for its next execution", 130),
    "events --follow": ("cluster", 130),
    "executions watch": ("pulse", 130),
    "jobs watch": ("changes follow", 130),
}
# Something that happens each second, for those who watch.
PULSE: Final = """from cronring import every


@every("1s")
def beat() -> None: ...


@every("1s")
def fails() -> None:
    raise RuntimeError("as it must")
"""
MORE: Final = {
    "top": ["--once"],  # no terminal is here
    "drill kill-owner": ["--yes", "--for", "2s"],  # nor anybody to consent
    "dev": ["--for", "3s"],
}
# Exit codes other than 0 that are an answer, too.
ANSWERS: Final = {
    "audit": {0, 1}, "audit-log verify": {0, 1}, "doctor": {0, 1}, "lint": {0, 1}, "drill kill-owner": {0, 1},
    "executions cancel": {0, 1},  # it may have ended
    "executions retry": {0, 1},  # one that has completed is not tried again
    "webhook test": {0, 1},  # nobody listens there
    "apply": {0, 2},  # it would change something
    "webhook redeliver": {0, 1}, "rollback": {0, 1},  # there may be nothing to go back to
}  # fmt: skip
OF_WHAT_HAS_ENDED: Final = ("/retry", "/cancel")  # refused with 409: a run that has completed
PATIENCE_S: Final = 60.0  # on a busy machine
# Where controllers with --insecure are: they are no members of a cluster with certificates.
APART: Final = "apart"


class Cluster:
    """A dev on a database, as commands find it."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("CRONRING_") and name != "COLUMNS"
        } | {"XDG_STATE_HOME": str(folder / "state")}
        self.values: dict[str, str] = {}

    def run(self, words: list[str], sign: str = "") -> tuple[int, str]:
        """Its exit code, and what it has said. With a `sign` in that, Ctrl-C."""
        log = self.folder / "said"
        program = programs.start(words, log, self.environment, self.folder)
        deadline = time.monotonic() + PATIENCE_S
        while sign and program.poll() is None and time.monotonic() < deadline:
            if sign in log.read_text():
                program.send_signal(signal.SIGINT)
                break
            time.sleep(POLL_S)  # a poll with a deadline: a file has no other way to tell
        try:
            code = program.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            code = program.wait()
        return code, log.read_text()

    def fill(self, word: str) -> str:
        for pattern, value in IN_PLACE_OF:
            word = re.sub(pattern, value.format_map(self.values), word)
        return word


@pytest.fixture(scope="module")
def cluster(postgres_servers: Callable[[str], PostgresServer]) -> Iterator[Cluster]:
    """One for all pages: what one page makes, the next ones use."""
    server = postgres_servers("postgres18")
    name = server.create_database(template="template1")
    with fresh_folder() as folder:
        yield from _dev(folder, server.url(name))
    server.drop_database(name)


def _dev(folder: Path, empty_database_url: str) -> Iterator[Cluster]:
    for source in ("billing.py", "crawl.py", "jobs.ndjson", "jobs.yaml"):
        shutil.copy(EXAMPLES / source, folder)
    (folder / "reports.py").write_text("from cronring import verb\n\n\n@verb\ndef month() -> None: ...\n")
    (folder / "pulse.py").write_text(PULSE)
    made = Cluster(folder, empty_database_url)
    files = [str(folder / name) for name in ("billing.py", "crawl.py", "reports.py", "pulse.py")]
    with Dev([*files, "--database-url", empty_database_url], folder, environment=made.environment) as dev:
        dev.wait_for(lambda line: "a runner hosts" in line)
        code, said = made.run(["jobs", "trigger", "billing.close_day", "--wait"])
        assert code == 0, said
        _, listed = made.run(["executions", "list", "--job", "billing.close_day", "-o", "json"])
        _, members = made.run(["cluster", "members", "-o", "json"])
        made.values = {
            "controller": json.loads(members)[0]["grpc_address"],
            "http": json.loads(members)[0]["http_address"], "database": empty_database_url,
            "execution": str(json.loads(listed)[0]["id"]),
        }  # fmt: skip
        _give_certificates(made)
        code, said = made.run(["migrate", "--schema", APART, "--database-url", empty_database_url])
        assert code == 0, said
        yield made
        dev.interrupt()
        assert dev.finish() == 0


def _give_certificates(cluster: Cluster) -> None:
    """What the pages have made by docs/security.md: here it is the dev's own."""
    trust = Path(json.loads((cluster.folder / "state/cronring/dev.json").read_text())["ca"]).parent
    for source, name in (("ca.crt", "ca.crt"), ("ca.crt", "ca/ca.crt"), ("ca.key", "ca/ca.key")):
        (cluster.folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(trust / source, cluster.folder / name)
    shutil.copy(trust / "secrets.key", cluster.folder)
    shutil.copytree(trust / "controller-1", cluster.folder / "certs" / "c1")
    grant = "runner-grant create --name billing --modules billing --may-activate --secret-file billing.join"
    code, said = cluster.run(grant.split())
    assert code == 0, said


def begins(words: list[str], table: dict[str, object] | tuple[str, ...]) -> str:
    text = " ".join(words)
    return next((each for each in table if text == each or text.startswith(f"{each} ")), "")


def tried(page: str) -> list[Command]:
    """But for what is in NOT_RUN, and pytest's, which tests below run."""
    beginnings = (*NOT_RUN, "python -m pytest")
    return [command for command in commands(page) if not command.text.startswith(beginnings)]


PAGES: Final = [page for page in pages() if page not in WALKED and tried(page)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page(page: str, cluster: Cluster) -> None:
    failed = [f"{each.text}\n{problem}" for each in tried(page) if (problem := _problem(cluster, each))]
    assert not failed, "\n\n".join(failed)


def test_pages_have_commands() -> None:
    assert sum(len(tried(page)) for page in PAGES) > 60


def _problem(cluster: Cluster, command: Command) -> str:
    """What was wrong with it; "": nothing."""
    if command.words[0] == "curl":
        return _problem_of_curl(cluster, command.text)
    if command.words[0] != "cronring":
        return "no command that the test knows: add it to NOT_RUN with a reason, or write it otherwise"
    words = [cluster.fill(word) for word in command.words[1:]]
    if ">" in words:  # into a file
        words = words[: words.index(">")]
    more: list[str] = MORE.get(begins(words, tuple(MORE)), [])
    if words[0] in {"controller", "migrate"} and "--database-url" not in words:
        more = [*more, "--database-url", cluster.database]
    if words[0] == "controller":
        more = [*more, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]  # of an option that is there twice, the last
        more += ["--schema", APART] if "--insecure" in words else []
    if words[0] == "drill" and "--for" in words:  # a short one will do
        at = words.index("--for")
        del words[at : at + 2]
    if words[0] == "dev" and "--for" in words:
        more = []
    words += more
    sign, ended = ENDLESS.get(begins(words, tuple(ENDLESS)), ("", 0))
    code, said = cluster.run(words, sign)
    allowed = ANSWERS.get(begins(words, tuple(ANSWERS)), {ended})
    return "" if code in allowed and "Traceback" not in said else f"exit code {code} of {words}: {said[-1500:]}"


def _problem_of_curl(cluster: Cluster, text: str) -> str:
    """As a reader types it beside a dev, who has `cronring` on the PATH."""
    line = cluster.fill(text).replace("127.0.0.1:7480", cluster.values["http"])
    line = line.replace("curl ", "curl --fail-with-body --max-time 60 ", 1)
    (binaries := cluster.folder / "bin").mkdir(exist_ok=True)
    (found := binaries / "cronring").write_text(f'#!/bin/sh\nexec {sys.executable} -m cronring.cli.main "$@"\n')
    found.chmod(0o700)
    environment = cluster.environment | {"PATH": f"{binaries}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=cluster.folder, env=environment, text=True, capture_output=True, check=False
    )
    answered = any(each in text for each in OF_WHAT_HAS_ENDED) and '"status": 409' in done.stdout
    return (
        "" if done.returncode == 0 or answered else f"exit code {done.returncode} of {line}: {done.stdout}{done.stderr}"
    )


def test_readme_shows_the_example() -> None:
    module = (EXAMPLES / "billing.py").read_text()
    assert module in [text for language, text in blocks("README.md") if language == "python"]


def test_the_first_test_that_is_copied_passes(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "billing.py", tmp_path)
    (first, *_) = [text for language, text in blocks("docs/testing.md") if language == "python"]
    (tmp_path / "test_billing.py").write_text(first)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_billing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", pages())
def test_python_of_the_docs_is_python(page: str) -> None:
    for language, text in blocks(page):
        if language == "python":
            compile(text, page, "exec", flags=0x2000)  # PyCF_ALLOW_TOP_LEVEL_AWAIT


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.name)
def test_examples_are_valid_modules(file: Path) -> None:
    done = programs.run(["check", str(file)])
    assert done.returncode == 0, done.stderr
