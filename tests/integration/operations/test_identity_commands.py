"""`cronring token`, `cronring runner-grant` and `cronring whoami`, as people and pipelines use them."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from cronring.cli.root import cli
from cronring.schema.identity import Kind, Principal, Role, RoleGrant
from cronring.schema.tokens import SecretKind, secret_fault
from tests.support.identified import Identified, identified

Cronring = Callable[..., Result]
CREATE = ("token", "create", "--name", "ci", "--role", "deployer", "--namespace", "billing")
GRANT = ("runner-grant", "create", "--name", "east")


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in list(os.environ):
        if name.startswith("CRONRING_") and name != "CRONRING_INSECURE":
            monkeypatch.delenv(name)


@pytest.fixture
def api(database_url: str) -> Iterator[Identified]:
    with identified(database_url) as served:
        yield served


@pytest.fixture
def cronring(api: Identified) -> Cronring:
    def call(*arguments: str, **environment: str) -> Result:
        here = {"CRONRING_CONTROLLERS": api.address, "CRONRING_AS": "ann"}
        return CliRunner().invoke(cli, list(arguments), env=here | environment, catch_exceptions=False)

    return call


def test_a_token_is_all_of_standard_output_and_works(cronring: Cronring) -> None:
    done = cronring(*CREATE)
    assert done.exit_code == 0, done.stderr
    secret = done.stdout.removesuffix("\n")
    assert secret_fault(SecretKind.TOKEN, secret) == ""
    assert done.stderr.startswith("the token ci is deployer@billing, until 2")
    assert secret not in done.stderr
    me = cronring("whoami", CRONRING_TOKEN=secret)
    assert me.stdout.splitlines()[:2] == ["you are  the token ci", "may      deployer@billing"]
    assert json.loads(cronring("whoami", "-o", "json", CRONRING_TOKEN=secret).stdout)["name"] == "ci"


def test_one_for_ever_is_warned_of_and_roles_have_their_places(cronring: Cronring) -> None:
    done = cronring("token", "create", "--name", "board", "--role", "viewer", "--role", "operator@prod",
                    "--namespace", "*", "--expires", "never", "-o", "json")  # fmt: skip
    assert "warning: this token works until somebody revokes it" in done.stderr
    made = json.loads(done.stdout)
    assert (made["token"]["expires_at"], made["token"]["created_by"]) == (None, "ann")
    assert made["token"]["grants"] == [
        {"role": "viewer", "namespace": "*"}, {"role": "operator", "namespace": "prod"},
    ]  # fmt: skip
    assert secret_fault(SecretKind.TOKEN, made["secret"]) == ""


def test_into_a_file_it_goes_for_its_owner_alone(cronring: Cronring, tmp_path: Path) -> None:
    path = tmp_path / "ci.token"
    done = cronring(*CREATE, "--secret-file", str(path), "-o", "json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(done.stdout)["token"]["name"] == "ci"
    assert path.read_text().strip() not in done.output
    me = cronring("whoami", "--token-file", str(path))
    assert (me.exit_code, me.stderr) == (0, "")
    again = cronring(*CREATE[:3], "other", *CREATE[4:], "--secret-file", str(path))
    assert (again.exit_code, "File exists; nothing was made" in again.stderr) == (1, True)
    assert "other" not in cronring("token", "list").stdout


def test_where_nothing_is_made_no_file_is_left(cronring: Cronring, tmp_path: Path) -> None:
    done = cronring("token", "create", "--name", "ci", "--role", "operater", "--secret-file", str(tmp_path / "x"))
    assert (done.exit_code, done.stdout, (tmp_path / "x").exists()) == (1, "", False)
    assert "--role: 'operater' is none of" in done.stderr
    assert "did you mean 'operator'?" in done.stderr


def test_lists_and_revocations(cronring: Cronring) -> None:
    assert "cronring token create" in cronring("token", "list").stderr
    secret = cronring(*CREATE).stdout.strip()
    cronring("whoami", CRONRING_TOKEN=secret)
    head, row = cronring("token", "list").stdout.splitlines()
    assert head.split()[:3] == ["NAME", "MAY", "EXPIRES"]
    assert row.split()[:2] == ["ci", "deployer@billing"]
    assert " - " not in row, "it has been used"
    assert "Did you mean 'ci'?" in cronring("token", "revoke", "cii").stderr
    assert cronring("token", "revoke", "ci").stdout == "the token ci is revoked\n"
    refused = cronring("whoami", CRONRING_TOKEN=secret)
    assert (refused.exit_code, "the token 'ci' was revoked" in refused.stderr) == (1, True)
    assert secret not in refused.output
    assert cronring("token", "list").stdout == ""
    assert cronring("token", "list", "--count").stdout == "0\n"
    assert cronring("token", "list", "--count", "--revoked").stdout == "1\n"
    assert cronring("token", "list", "--revoked").stdout.splitlines()[0].endswith("REVOKED")
    assert json.loads(cronring("token", "list", "--revoked", "-o", "json").stdout)[0]["revoked_by"] == "ann"


def test_who_is_no_admin_is_told_so(cronring: Cronring, api: Identified) -> None:
    api.anybody = Principal(Kind.USER, "bob", (RoleGrant(Role.OPERATOR, "billing"),))
    done = cronring(*CREATE)
    assert done.exit_code == 1
    assert "user:bob is no admin of the namespace billing" in done.stderr
    assert "`cronring whoami` shows who you are" in done.stderr
    assert "the user bob" in cronring("whoami").stdout


def test_the_first_one_is_made_in_the_database_itself(cronring: Cronring, api: Identified, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(api.url)
    first = ("token", "create", "--name", "me", "--role", "admin", "--namespace", "*")
    done = cronring(*first, "--database-url", f"@{tmp_path}/url", CRONRING_CONTROLLERS="127.0.0.1:1")
    assert done.exit_code == 0, done.stderr
    assert "made in PostgreSQL itself" in done.stderr
    secret = done.stdout.strip()
    (row,) = json.loads(cronring("token", "list", "-o", "json", CRONRING_TOKEN=secret).stdout)
    assert (row["name"], row["grants"]) == ("me", [{"role": "admin", "namespace": "*"}])
    assert row["created_by"].startswith("database:")
    taken = cronring(*first, "--database-url", f"@{tmp_path}/url")
    assert (taken.exit_code, "a token 'me' already" in taken.stderr) == (1, True)
    wrong = cronring("token", "create", "--name", "x y", "--role", "boss", "--database-url", f"@{tmp_path}/url")
    assert (wrong.exit_code, "2 values are wrong" in wrong.stderr) == (1, True)


def test_controllers_that_are_typed_are_asked_whatever_database_a_variable_names(
    cronring: Cronring, api: Identified
) -> None:
    asked = cronring(*CREATE, "--controllers", api.address, CRONRING_DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert asked.exit_code == 0, asked.stderr
    both = cronring(*CREATE, "--controllers", api.address, "--database-url", "postgresql://127.0.0.1:1/x")
    assert (both.exit_code, "a token is made in one place" in both.stderr) == (2, True)


def test_a_join_token_is_all_of_standard_output(cronring: Cronring) -> None:
    done = cronring(*GRANT, "--namespace", "billing", "--modules", "invoices, dunning", "--uses", "3")
    assert done.exit_code == 0, done.stderr
    assert secret_fault(SecretKind.JOIN, done.stdout.strip()) == ""
    assert "the runner grant east is for billing/invoices,dunning; 3 more, until" in done.stderr
    head, row = cronring("runner-grant", "list").stdout.splitlines()
    assert head.split()[:3] == ["NAME", "HOSTS", "MAY"]
    assert row.split()[:3] == ["east", "billing/invoices,dunning", "no"]
    (told,) = json.loads(cronring("runner-grant", "list", "-o", "json").stdout)
    assert (told["may_activate"], told["may_enroll"], told["uses_left"]) == (False, True, 3)
    assert json.loads(cronring("runner-grant", "list", "--count", "-o", "json").stdout) == {"runner_grants": 1}
    assert cronring("session", "list", "--count").stdout == "0\n"
    assert cronring("runner-grant", "revoke", "east").stdout == "the runner grant east is revoked\n"
    assert "there is no runner grant 'east'" in cronring("runner-grant", "revoke", "east").stderr
    assert "REVOKED" in cronring("runner-grant", "list", "--revoked").stdout


def test_certificates_of_another_pki_need_no_join_token(cronring: Cronring, tmp_path: Path) -> None:
    done = cronring(*GRANT, "--certificate-only", "--may-activate")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "default/*; by certificates alone" in done.stderr
    for useless in (("--uses", "3"), ("--expires", "1h")):
        refused = cronring(*GRANT, "--certificate-only", *useless)
        assert (refused.exit_code, "--certificate-only: " in refused.stderr) == (1, True)
    none = cronring(*GRANT, "--certificate-only", "--secret-file", str(tmp_path / "x"))
    assert (none.exit_code, (tmp_path / "x").exists()) == (2, False)


def test_names_are_completed(cronring: Cronring, api: Identified) -> None:
    cronring(*CREATE)
    cronring(*GRANT)
    for command, begun, whole in ((cli.commands["token"], "c", "ci"), (cli.commands["runner-grant"], "e", "east")):
        assert isinstance(command, click.Group)
        revoke = command.commands["revoke"]
        context = click.Context(revoke)
        context.params["controllers"] = api.address
        found = revoke.params[0].shell_complete(context, begun)
        assert [item.value for item in found] == [whole]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*CREATE, "--expires", "500ms"), "out of range"),
        (("token", "create", "--name", "x"), "Missing option '--role'"),
        ((*GRANT, "--modules", "a,b c"), "--modules: 'b c' is no "),
        (("runner-grant", "create", "--name", "East"), "--name: must have 1 to 63 lower case letters"),
    ],
)
def test_what_is_wrong_names_its_option(cronring: Cronring, arguments: tuple[str, ...], says: str) -> None:
    assert says in cronring(*arguments).stderr
