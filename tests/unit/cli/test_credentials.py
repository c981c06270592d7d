"""The bearer token of whoever asks: where it comes from, that every call carries it, and that nothing shows it."""

from pathlib import Path

import grpc
import pytest

from cronring.client import AsyncClient, ClientError, PermissionDenied, Unauthenticated
from tests.unit.cli.conftest import Cronring
from tests.unit.cli.fake_api import FakeApi

TOKEN = "crt_xyzzy"


def file_of(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "token"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


async def test_unary_calls_and_streams_carry_it(api: FakeApi) -> None:
    async with AsyncClient([api.address], token=TOKEN) as client:
        await client.jobs.list()
        async for _ in client.jobs.watch():
            break
        assert (await client.jobs.trigger("billing.refresh")) is not None
    assert [each.get("authorization") for each in api.carried] == [f"Bearer {TOKEN}"] * 3


async def test_nothing_is_carried_without_one_and_nothing_shows_it(api: FakeApi) -> None:
    async with AsyncClient([api.address]) as client:
        await client.jobs.list()
    assert "authorization" not in api.carried[-1]
    holder = AsyncClient([api.address], token=TOKEN)
    assert TOKEN not in f"{holder!r} {holder} {holder._failover!r}"
    with pytest.raises(ValueError, match="line breaks") as caught:
        AsyncClient([api.address], token=f"{TOKEN}\n")
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, Unauthenticated, "CRONRING_TOKEN_FILE"),
        (grpc.StatusCode.PERMISSION_DENIED, PermissionDenied, "cronring whoami"),
    ],
)
async def test_who_is_refused_is_told_what_to_do(
    api: FakeApi, code: grpc.StatusCode, kind: type[ClientError], says: str
) -> None:
    api.failure = code, "no such token"
    async with AsyncClient([api.address], token=TOKEN) as client:
        with pytest.raises(kind, match=says) as caught:
            await client.jobs.list()
        with pytest.raises(kind, match="no such token"):
            await client.jobs.pause("billing.refresh")
    assert TOKEN not in str(caught.value)


def test_a_refusal_ends_a_command_with_1(asked: Cronring, api: FakeApi) -> None:
    api.failure = grpc.StatusCode.UNAUTHENTICATED, "this token was revoked"
    done = asked("jobs", "list")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: this token was revoked\n  Give your token: --token-file FILE")


def test_a_flag_is_above_the_token_and_that_is_above_the_file_of_the_environment(
    cronring: Cronring, api: FakeApi, tmp_path: Path
) -> None:
    path = file_of(tmp_path, "crt_file\n")
    here = {"CRONRING_CONTROLLERS": api.address}
    for arguments, environment, carried in (
        ((), {}, None),
        ((), {"CRONRING_TOKEN": TOKEN}, TOKEN),
        ((), {"CRONRING_TOKEN_FILE": path}, "crt_file"),
        ((), {"CRONRING_TOKEN_FILE": path, "CRONRING_TOKEN": TOKEN}, TOKEN),
        (("--token-file", path), {"CRONRING_TOKEN": TOKEN}, "crt_file"),
    ):
        done = cronring("jobs", "list", *arguments, **here, **environment)
        assert (done.exit_code, done.stderr) == (0, "")
        assert api.carried[-1].get("authorization") == (carried and f"Bearer {carried}")


def test_a_file_that_others_can_read_is_warned_of(asked: Cronring, api: FakeApi, tmp_path: Path) -> None:
    done = asked("jobs", "list", "--token-file", file_of(tmp_path, TOKEN, 0o640))
    assert done.exit_code == 0
    assert "others on this machine can read the token" in done.stderr
    assert "chmod 600" in done.stderr
    assert TOKEN not in done.output
    assert api.carried[-1]["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "has no token"), ("a" * 20_000, "has too much"), (f"{TOKEN} {TOKEN}", "spaces"), (f"{TOKEN}ä", "letters")],
)
def test_a_file_without_a_token_is_refused_and_not_repeated(
    asked: Cronring, api: FakeApi, tmp_path: Path, text: str, says: str
) -> None:
    done = asked("jobs", "list", "--token-file", file_of(tmp_path, text))
    assert (done.exit_code, api.requests) == (1, [])
    assert says in done.stderr
    assert TOKEN not in done.output


def test_a_file_that_is_not_there_is_named(asked: Cronring, tmp_path: Path) -> None:
    done = asked("jobs", "list", "--token-file", f"{tmp_path}/none")
    assert (done.exit_code, f"{tmp_path}/none: No such file" in done.stderr) == (1, True)


def test_no_flag_takes_a_token(asked: Cronring) -> None:
    """It would be in every list of processes."""
    assert "No such option" in asked("jobs", "list", "--token", TOKEN).stderr


def test_what_curl_reads_of_a_folder_is_as_it_is_written(cronring: Cronring, tmp_path: Path) -> None:
    """Curl knows no \\u of JSON."""
    folder = tmp_path / 'é "x"'
    folder.mkdir()
    ca = folder / "ca.pem"
    ca.write_text("")
    given = {"CRONRING_CA": str(ca), "CRONRING_TOKEN": TOKEN, "CRONRING_INSECURE": ""}
    told = cronring("token", "curl", "--controllers", "127.0.0.1:1", **given)
    written = str(ca).replace('"', '\\"')
    assert told.stdout.splitlines()[2:] == [f'cacert = "{written}"', f'header = "authorization: Bearer {TOKEN}"']
