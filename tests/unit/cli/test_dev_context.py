"""Where a dev can be asked, as other terminals find it."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cronring.cli import running_dev as holding
from cronring.cli.running_dev import PORTS_NAME, DevHold, FixedPorts
from cronring.client import running_dev
from cronring.client.running_dev import DevTold, context_file, controllers_of_dev
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi


def test_nobody_but_its_user_may_read_it() -> None:
    held = DevHold()
    assert held.take()
    held.tell(DevTold(("127.0.0.1:1",)))
    assert stat.S_IMODE(context_file().stat().st_mode) == 0o600
    assert stat.S_IMODE(context_file().parent.stat().st_mode) == 0o700
    assert controllers_of_dev() == ("127.0.0.1:1",)
    held.release()
    assert controllers_of_dev() == ()


def test_of_several_devs_the_first_is_found_and_the_others_by_their_addresses() -> None:
    first, second, third = DevHold(), DevHold(), DevHold()
    assert first.take()
    assert not second.take()
    second.tell(DevTold(("127.0.0.1:2", "127.0.0.1:3"), "ca of 2", "token of 2"))
    assert controllers_of_dev() == ("127.0.0.1:2", "127.0.0.1:3")  # the first has yet to say where it is
    first.tell(DevTold(("127.0.0.1:1",), "ca of 1", "token of 1"))
    assert controllers_of_dev() == ("127.0.0.1:1",)
    found = [running_dev.running_dev(each) for each in (["127.0.0.1:3"], ["127.0.0.1:1"], ["127.0.0.1:4"])]
    assert [each.ca if each else None for each in found] == ["ca of 2", "ca of 1", None]
    first.release()
    assert controllers_of_dev() == ("127.0.0.1:2", "127.0.0.1:3")
    assert third.take()
    second.release()
    third.release()
    assert os.listdir(context_file().parent) == ["dev.json"]


def test_what_killed_devs_left_beside_the_first_is_removed() -> None:
    first = DevHold()
    assert first.take()
    script = (
        "import os, signal; from cronring.cli.running_dev import DevHold; "
        "from cronring.client.running_dev import DevTold; held = DevHold(); held.take(); "
        "held.tell(DevTold(('127.0.0.1:9',))); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert len(os.listdir(context_file().parent)) == 2
    assert running_dev.running_dev(["127.0.0.1:9"]) is None
    second = DevHold()
    second.take()
    assert sorted(os.listdir(context_file().parent)) == [f"dev-{os.getpid()}.json", "dev.json"]
    second.release()
    first.release()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no such hold")
def test_of_devs_with_different_files_one_has_the_fixed_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{PORTS_NAME} {os.getpid()}"  # others have the real ones meanwhile
    monkeypatch.setattr(holding, "PORTS_NAME", name)
    first, second = FixedPorts(), FixedPorts()
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()
    second.release()
    killed = f"import os, socket; socket.socket(socket.AF_UNIX).bind({name!r}); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed], check=False)
    assert first.take()
    first.release()


def test_what_a_killed_dev_left_is_seen_to_be_stale() -> None:
    script = (
        "import os, signal; from cronring.cli.running_dev import DevHold; "
        "from cronring.client.running_dev import DevTold; held = DevHold(); held.take(); "
        "held.tell(DevTold(('127.0.0.1:9',))); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert json.loads(context_file().read_text())["controllers"] == ["127.0.0.1:9"]
    assert controllers_of_dev() == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"controllers": 7}', "\x00"])
def test_garbage_is_no_dev(text: str) -> None:
    held = DevHold()
    assert held.take()
    context_file().write_text(text)
    assert controllers_of_dev() == ()
    held.release()


def test_nowhere_to_write_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert not DevHold().take()


def test_a_command_needs_no_addresses_while_dev_runs(api: FakeApi, cronring: Cronring) -> None:
    held = DevHold()
    held.take()
    held.tell(DevTold((api.address,)))
    assert "billing.refresh" in cronring("jobs", "list").stdout
    held.tell(DevTold(("127.0.0.1:1",)))
    for given, environment, source in (
        (["--controllers", "127.0.0.1:2"], {"CRONRING_CONTROLLERS": "127.0.0.1:3"}, "--controllers"),
        ([], {"CRONRING_CONTROLLERS": "127.0.0.1:3"}, "CRONRING_CONTROLLERS"),
        ([], {}, f"the running `cronring dev` ({context_file()})"),
    ):
        failed = cronring("jobs", "list", *given, **environment)
        assert failed.exit_code == 3
        assert f"the addresses are from {source})" in failed.stderr
    held.release()
    assert os.environ["XDG_STATE_HOME"] in str(context_file())
