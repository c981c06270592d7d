"""Whom `--run-as` takes, and the reason why it doesn't."""

import os
import pwd
import subprocess
import sys

import pytest

from cronring.runner import run_as
from cronring.runner.run_as import RunAs, find_user
from tests.support.others import USER, as_user

NOBODY = pwd.getpwuid(USER)
UNKNOWN = 3_999_999_999


@pytest.fixture
def rightful(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root is, whoever runs these tests."""
    monkeypatch.setattr(run_as, "_capabilities", lambda: -1)


@pytest.mark.usefixtures("rightful")
def test_a_user_has_its_groups_and_one_with_a_group_has_that_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getgrouplist", lambda _, gid: [gid, 4, 7])
    expected = RunAs(NOBODY.pw_name, USER, NOBODY.pw_gid, (NOBODY.pw_gid, 4, 7), NOBODY.pw_dir)
    assert find_user(NOBODY.pw_name) == find_user(str(USER)) == expected
    assert find_user(f"{USER}:4") == RunAs(NOBODY.pw_name, USER, 4, (4,), NOBODY.pw_dir)
    assert find_user(f"{UNKNOWN}:4") == RunAs(str(UNKNOWN), UNKNOWN, 4, (4,), "/")
    home = {"HOME": NOBODY.pw_dir, "USER": NOBODY.pw_name, "LOGNAME": NOBODY.pw_name}
    assert expected.environment() == home


@pytest.mark.usefixtures("rightful")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("root", "root reaches whatever the runner holds"),
        ("0:65534", "root reaches whatever the runner holds"),
        ("nobody-such", "there is no user 'nobody-such' here"),
        ("", "there is no user '' here"),
        (f"{2**32 - 1}:4", "there is no user '4294967295' here"),
        (f"{USER}:no-such-group", "there is no group 'no-such-group' here"),
        (f"{USER}:", "there is no group '' here"),
        (str(UNKNOWN), f"give {UNKNOWN}:GROUP"),
    ],
)
def test_who_is_refused(given: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        find_user(given)


@pytest.mark.usefixtures("rightful")
def test_its_own_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: USER)
    with pytest.raises(ValueError, match="so its verbs would reach what it holds"):
        find_user(str(USER))


def test_who_may_not_become_others_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_as, "_capabilities", lambda: 1 << 5 | 1 << 7)
    with pytest.raises(ValueError, match=r"lacks CAP_SETGID\. Start it as root, or with systemd's Ambient"):
        find_user(str(USER))


def test_a_process_that_closes_itself_still_reads_what_is_its_own() -> None:
    """What the kernel gives of /proc to a process of a user that isn't root, once it has closed itself."""
    wrapper = as_user(USER) if os.geteuid() == 0 else ()
    code = (
        "import os, subprocess, sys\n"
        "from cronring.trust.prctl import close_to_own_user\n"
        "close_to_own_user()\n"
        "assert os.listdir('/proc/self/fd') and open('/proc/self/stat').read() and open('/proc/self/limits').read()\n"
        "other = subprocess.run([sys.executable, '-c', 'import os; open(f\"/proc/{os.getppid()}/environ\").read()'])\n"
        "sys.exit(other.returncode)\n"
    )
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd="/"
    )
    assert (done.returncode, "PermissionError" in done.stderr) == (1, True), done.stderr
