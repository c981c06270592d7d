"""`cronring login` as a process, against a small real issuer; and the controllers' verifier takes what it got."""

import asyncio
import base64
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from cronring.controller.identity.settings import GrantRule, IssuerSettings
from cronring.controller.identity.verifier import JwtVerifier
from cronring.controller.runtime.clock import SystemClock
from cronring.schema.identity import Role
from tests.support.issuer import AUDIENCE, CLIENT_ID, USER_CODE, TestIssuer
from tests.unit.cli.fake_api import FakeApi, serving

CONTROLLERS: Final = "127.0.0.1:9,127.0.0.1:10"
PATIENCE_S: Final = 60.0
# What stands in for a browser: it reads the form, posts it, and goes where it is sent.
BROWSER: Final = """
import re, sys, urllib.parse, urllib.request
url = sys.argv[1]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
page = opener.open(url).read().decode()
fields = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', page))
for forged in FORGED:
    try:
        opener.open(fields["redirect_uri"] + forged)
    except urllib.error.HTTPError as error:
        assert error.code in (400, 404), error.code
post = urllib.parse.urljoin(url, "/authorize")
print(opener.open(post, urllib.parse.urlencode(fields).encode()).read().decode(), file=open(sys.argv[0] + ".page", "w"))
"""
# What stands in for the package, with a keyring in a file.
KEYRING: Final = """
import json, pathlib
FILE = pathlib.Path(__file__).with_name("ring.json")
class Ring:
    priority = PRIORITY
def get_keyring():
    return Ring()
def _all():
    return json.loads(FILE.read_text()) if FILE.exists() else {}
def set_password(service, name, secret):
    FILE.write_text(json.dumps(_all() | {f"{service} {name}": secret}))
def get_password(service, name):
    return _all().get(f"{service} {name}")
def delete_password(service, name):
    FILE.write_text(json.dumps({key: value for key, value in _all().items() if key != f"{service} {name}"}))
"""


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Home:
    """Somebody's account on a machine without a display, and an issuer that knows them."""

    def __init__(self, folder: Path, issuer: TestIssuer) -> None:
        self.folder = folder
        self.issuer = issuer
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("CRONRING_", "XDG_", "DISPLAY", "WAYLAND", "BROWSER", "TERM", "SSH_"))
        } | {
            "XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state"),
            "CRONRING_INSECURE": "1",  # what answers here has no certificates
        }  # fmt: skip

    @property
    def file(self) -> Path:
        return self.folder / "config" / "cronring" / "credentials.json"

    def kept(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.file.read_text())["logins"]
        return found

    def with_browser(self, *forged: str) -> Path:
        program = self.folder / "browser.py"
        program.write_text(f"FORGED = {forged!r}\n{BROWSER}")
        self.environment["BROWSER"] = f"{sys.executable} {program} %s"
        return program

    def with_keyring(self, priority: float) -> Path:
        (self.folder / "keyring.py").write_text(KEYRING.replace("PRIORITY", str(priority)))
        self.environment["PYTHONPATH"] = str(self.folder)
        return self.folder / "ring.json"

    @asynccontextmanager
    async def began(self, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cronring.cli.main", *words, cwd=self.folder, env=self.environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def run(self, *words: str) -> Done:
        async with self.began(*words) as process, asyncio.timeout(PATIENCE_S):
            out, err = await process.communicate()
        assert "Traceback" not in err.decode()
        return Done(process.returncode or 0, out.decode(), err.decode())

    async def login(self, *more: str, controllers: str = CONTROLLERS) -> Done:
        return await self.run(
            "login", "--issuer", self.issuer.url, "--client-id", CLIENT_ID, "--controllers", controllers, *more
        )


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    async with TestIssuer() as issuer:
        yield Home(tmp_path, issuer)


@pytest.fixture
def verifier() -> Callable[[TestIssuer], AbstractAsyncContextManager[JwtVerifier]]:
    @asynccontextmanager
    async def made(issuer: TestIssuer) -> AsyncIterator[JwtVerifier]:
        grant = GrantRule("sre", Role.OPERATOR, "*", "groups")
        own = IssuerSettings("corp", issuer.url, AUDIENCE, issuer.jwks_url, grants=(grant,))
        found = JwtVerifier([own], SystemClock())
        yield found
        await found.close()

    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_by_a_browser(home: Home, verifier: Any) -> None:
    program = home.with_browser("?code=theirs&state=guessed", "?code=theirs", "/elsewhere?code=theirs")
    done = await home.login()
    assert done.code == 0, done.err
    assert done.out.startswith(f"logged in as ada@example.org, for {','.join(sorted(CONTROLLERS.split(',')))}\n")
    assert str(home.file) in done.out
    assert home.issuer.asked["/device"] == 0
    (kept,) = home.kept()
    assert (mode(home.file), mode(home.file.parent)) == (0o600, 0o700)
    assert kept["token"] not in done.out + done.err
    assert "You may close this window" in program.with_name("browser.py.page").read_text()
    async with verifier(home.issuer) as told:
        assert (await told.principal(kept["token"])).name == "corp/ada@example.org"


async def test_by_another_device(home: Home, verifier: Any) -> None:
    home.issuer.pending = 2
    done = await home.login()
    assert done.code == 0, done.err
    assert f"open {home.issuer.url}/verify on any device, and type the code {USER_CODE}" in done.err
    assert home.issuer.asked["/token"] == 3
    assert home.issuer.asked["/authorize"] == 0
    assert mode(home.file) == 0o600
    async with verifier(home.issuer) as told:
        assert (await told.principal(home.kept()[0]["token"])).name == "corp/ada@example.org"


@pytest.mark.parametrize("device", [True, False])
async def test_who_is_not_approved_is_not_logged_in(home: Home, device: bool) -> None:
    home.issuer.approves = False
    home.with_browser()
    done = await home.login(*(["--device"] if device else []))
    assert done.code == 1
    assert "the issuer has not logged you in: access_denied" in done.err
    assert not home.file.exists()


async def test_the_id_token_is_kept_for_who_wants_it(home: Home) -> None:
    home.issuer.pending = 0
    assert (await home.login("--id-token")).code == 0
    assert home.kept()[0]["id_token"] is True
    said = home.kept()[0]["token"].split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(said + "=="))["aud"] == CLIENT_ID


async def test_a_keyring_keeps_what_is_secret(home: Home) -> None:
    ring = home.with_keyring(5)
    home.issuer.pending = 0
    done = await home.login()
    assert done.code == 0, done.err
    assert "it is in the keyring" in done.out
    kept = json.loads(json.loads(ring.read_text())[f"cronring {','.join(sorted(CONTROLLERS.split(',')))}"])
    assert kept["token"] not in home.file.read_text()
    assert not home.kept()[0].keys() & {"token", "refresh_token", "client_secret"}
    assert (await home.run("logout", "--controllers", CONTROLLERS)).code == 0
    assert json.loads(ring.read_text()) == {}


async def test_a_keyring_that_is_only_a_file_is_none(home: Home) -> None:
    ring = home.with_keyring(0.5)
    home.issuer.pending = 0
    assert str(home.file) in (await home.login()).out
    assert not ring.exists()


async def test_an_issuer_does_nothing_to_a_terminal(home: Home) -> None:
    home.issuer.claims["sub"] = "\x1b[31mred\nlogged in as root" + "x" * 1_000
    home.issuer.pending = 0
    done = await home.login("--device")
    assert done.code == 0
    assert "\x1b" not in done.out + done.err
    assert len(done.out.splitlines()) == 2
    assert len(done.out) < 800


async def test_an_issuer_that_names_no_instant_names_no_end(home: Home) -> None:
    home.issuer.claims["exp"] = 10**30
    home.issuer.pending = 0
    done = await home.login("--device")
    assert done.code == 0, done.err
    assert "the token counts as long as the issuer says" in done.out


async def test_what_happened_is_json_for_programs(home: Home) -> None:
    home.issuer.pending = 0
    told = json.loads((await home.login("-o", "json", controllers="127.0.0.1:9")).out)
    assert told.pop("expires_at").endswith("Z")
    assert told == {
        "holder": "ada@example.org", "issuer": home.issuer.url, "controllers": ["127.0.0.1:9"], "renewed": True,
        "kept_in": str(home.file),
    }  # fmt: skip
    out = (await home.run("logout", "-o", "json", "--controllers", "127.0.0.1:9")).out
    assert json.loads(out) == {"logged_out": ["127.0.0.1:9"]}


async def test_logging_out_forgets(home: Home) -> None:
    home.issuer.pending = 0
    await home.login()
    await home.login(controllers="127.0.0.1:11")
    assert len(home.kept()) == 2
    done = await home.run("logout", "--controllers", "127.0.0.1:10,127.0.0.1:9")
    assert (done.code, done.out) == (0, "logged out, for 127.0.0.1:10,127.0.0.1:9\n")
    assert [each["controllers"] for each in home.kept()] == [["127.0.0.1:11"]]
    again = await home.run("logout", "--controllers", CONTROLLERS)
    assert again.code == 1
    assert "nobody is logged in for" in again.err


async def test_commands_carry_the_token_and_renew_it(home: Home) -> None:
    """Six of them at once, with one refresh token that counts once."""
    home.issuer.pending, home.issuer.token_s = 0, 20  # less than a command needs
    with serving(FakeApi()) as api:
        await home.login(controllers=f"{api.address},127.0.0.1:9")
        first = home.kept()[0]["token"]
        home.issuer.token_s = 300
        done = await asyncio.gather(*(home.run("jobs", "list", "--controllers", api.address) for _ in range(6)))
        assert [each.code for each in done] == [0] * 6, done
        second = home.kept()[0]["token"]
        assert second != first
        assert home.issuer.asked["/token"] == 2
        assert {each.get("authorization") for each in api.carried} == {f"Bearer {second}"}
        assert mode(home.file) == 0o600


async def test_the_token_is_shown_to_no_other_controllers(home: Home) -> None:
    home.issuer.pending = 0
    with serving(FakeApi()) as api:
        await home.login(controllers="127.0.0.1:9")
        assert (await home.run("jobs", "list", "--controllers", api.address)).code == 0
        assert (await home.run("jobs", "list", "--controllers", f"{api.address},127.0.0.1:9")).code == 0
        assert api.carried
        assert not any("authorization" in each for each in api.carried)


async def test_a_login_that_can_not_be_renewed_says_how_to_begin_again(home: Home) -> None:
    home.issuer.pending, home.issuer.token_s = 0, -60  # as if it had been a while ago
    await home.login()
    await home.issuer.stop()
    away = await home.run("jobs", "list", "--controllers", CONTROLLERS)
    assert away.code == 3
    assert "your login has expired, and can't be renewed now: " in away.err
    await home.issuer.start()
    home.issuer._refreshes.clear()
    refused = await home.run("jobs", "list", "--controllers", CONTROLLERS)
    assert refused.code == 1
    assert "it is not renewed: invalid_grant (HTTP 400). Log in again:" in refused.err
    assert f"cronring login --controllers 127.0.0.1:10,127.0.0.1:9 --issuer {home.issuer.url}" in refused.err


async def test_a_file_that_others_can_read_is_not_used(home: Home) -> None:
    home.issuer.pending = 0
    await home.login()
    home.file.chmod(0o640)
    done = await home.run("jobs", "list", "--controllers", CONTROLLERS)
    assert done.code == 1
    assert f"`chmod 600 {home.file}` ends that" in done.err
    home.file.chmod(0o600)
    home.file.write_text('{"logins": [{}]}')
    assert "is none of ours" in (await home.run("jobs", "list", "--controllers", CONTROLLERS)).err


@pytest.mark.parametrize(
    ("issuer", "code", "says"),
    [
        ("http://id.example.org", 3, "is not https (http is only for this machine), so nothing is asked there"),
        ("http://127.0.0.1:9", 3, "http://127.0.0.1:9/.well-known/openid-configuration: no answer: "),
        ("{url}/realms/x", 1, "says nothing of how to log in: HTTP 404"),
        ("http://localhost:{port}", 1, "says that it is 'http://127.0.0.1:{port}'; give --issuer as it calls itself"),
    ],
)
async def test_an_issuer_that_is_none(home: Home, issuer: str, code: int, says: str) -> None:
    port = home.issuer.url.rpartition(":")[2]
    url = issuer.format(url=home.issuer.url, port=port)
    done = await home.run("login", "--issuer", url, "--client-id", CLIENT_ID)
    assert done.code == code, done.err
    assert says.format(port=port) in done.err


async def test_ctrl_c_ends_the_waiting(home: Home) -> None:
    home.issuer.pending = 10_000
    words = ("login", "--issuer", home.issuer.url, "--client-id", CLIENT_ID)
    async with home.began(*words) as process, asyncio.timeout(PATIENCE_S):
        assert process.stderr is not None
        await process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert (process.returncode, b"Traceback" in err) == (130, False)
    assert not home.file.exists()
