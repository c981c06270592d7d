"""A cluster as it is deployed: certificates of its own CA, tokens, and no plaintext anywhere."""

import datetime as dt
import json
import os
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

from cronring.client import AsyncClient
from cronring.controller.ports.tokens import NewRunnerGrant
from cronring.controller.services.identities import WantedToken, make_token
from cronring.controller.store.pool import Database
from cronring.controller.store.tokens import PostgresTokens
from cronring.schema.identity import Role
from cronring.schema.spiffe import SpiffeName, controller_name, runner_name
from cronring.trust.certificates import Authority, Pair, issue, new_authority
from tests.support import programs
from tests.support.cluster import READY_S, Cluster, Process, free_port
from tests.support.databases import run_coroutine

CLUSTER: Final = "cronring"
DAY: Final = dt.timedelta(days=1)


class Pki:
    """A CA and the folders that it fills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.pair = new_authority(CLUSTER)
        self.trusted = self.pair.certificate
        self._folders: dict[Path, SpiffeName] = {}
        self.save()

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def key(self) -> Path:
        return self.folder / "ca.key"

    def save(self) -> None:
        self.key.write_bytes(self.pair.key)
        self.ca.write_bytes(self.trusted)

    def authority(self) -> Authority:
        return Authority.read(self.pair.certificate, self.pair.key)

    def issue(self, name: SpiffeName, lifetime: dt.timedelta = DAY, where: str = "", host: str = "127.0.0.1") -> Path:
        """A folder with ca.crt, tls.crt and tls.key; made anew, in the same one, for the same name."""
        folder = self._folder(name, where)
        folder.mkdir(exist_ok=True)
        pair = issue(self.authority(), name, lifetime, (host,) if name.kind == "controller" else ())
        self.write(folder, pair)
        self._folders[folder] = name
        return folder

    def write(self, folder: Path, pair: Pair) -> None:
        """As `cronring certs renew` does: each file whole, the key before the certificate."""
        for file, content in (("ca.crt", self.trusted), ("tls.key", pair.key), ("tls.crt", pair.certificate)):
            beside = folder / f".{file}.new"
            beside.write_bytes(content)
            beside.replace(folder / file)

    def renew_all(self, lifetime: dt.timedelta = DAY) -> None:
        for folder, name in self._folders.items():
            self.issue(name, lifetime, folder.name)

    def spread(self) -> None:
        """ca.crt alone, to everybody."""
        self.save()
        for folder in self._folders:
            beside = folder / ".ca.crt.new"
            beside.write_bytes(self.trusted)
            beside.replace(folder / "ca.crt")

    def controller(self, name: str, host: str = "127.0.0.1") -> Path:
        return self._standing(controller_name(CLUSTER, name), host=host)

    def runner(self, grant: str, namespace: str = "default") -> Path:
        return self._standing(runner_name(CLUSTER, namespace, grant))

    def _standing(self, name: SpiffeName, host: str = "127.0.0.1") -> Path:
        """As it was issued: who runs by it would open new streams if it were made anew."""
        folder = self._folder(name)
        return folder if self._folders.get(folder) == name else self.issue(name, host=host)

    def _folder(self, name: SpiffeName, where: str = "") -> Path:
        return self.folder / (where or f"{name.kind}-{name.name}")


class SecuredCluster(Cluster):
    """As Cluster; `pki`: who everybody is."""

    def __init__(self, database_url: str, folder: Path, environment: dict[str, str] | None = None) -> None:
        super().__init__(database_url, folder, environment)
        self.pki = Pki(folder / "pki")
        self.environment = {name: value for name, value in self.environment.items() if name != "CRONRING_INSECURE"}
        self.environment["CRONRING_CA"] = str(self.pki.ca)
        self.peers: list[str] = []

    def __enter__(self) -> "SecuredCluster":
        return self

    def _controller_at(
        self, grpc: str, http: str, *extra: str, wrapper: tuple[str, ...] = (), advertise: str = ""
    ) -> Process:
        host = grpc.rpartition(":")[0]
        peer = f"{host}:{self.peer_port()}"
        if peer not in self.peers:
            self.peers.append(peer)
        certs = self.pki.controller(f"c{self.peers.index(peer) + 1}", host)
        trust = ("--certs", str(certs), "--peer", peer, "--ca-key", str(self.pki.key))
        return super()._controller_at(grpc, http, *trust, *extra, wrapper=wrapper, advertise=advertise)

    def peer_port(self) -> int:
        """Where the next controller listens for its peers."""
        return free_port()

    def let_in(self) -> None:
        """Make the token of everything, and the grant of its runners, in the database itself."""
        self.environment["CRONRING_TOKEN"] = run_coroutine(_made(self.database_url))

    def start_runner(self, *files: Path, extra: tuple[str, ...] = (), wrapper: tuple[str, ...] = ()) -> Process:
        """By a certificate of grant `tests`, unless `extra` says how it is let in."""
        if not {"--certs", "--join-token-file"} & set(extra):
            extra = ("--certs", str(self.pki.runner("tests")), *extra)
        addresses = self.addresses if "--join-token-file" in extra else ",".join(self.peers)
        process = self._start(
            f"runner-{len(self.runners) + 1}", "runner", *map(str, files), "--controllers", addresses, *extra,
            wrapper=wrapper,
        )  # fmt: skip
        self.runners.append(process)
        return process

    def client(self, token: str = "") -> AsyncClient:
        """As `ask`, without a process of its own."""
        token = token or self.environment["CRONRING_TOKEN"]
        return AsyncClient(self.addresses.split(","), READY_S, token=token, ca=self.pki.ca, insecure=False)

    def on_database(self, *arguments: str) -> Any:
        """A CLI command that talks to PostgreSQL itself, such as that which makes the first token."""
        done = programs.run((*arguments, "--database-url", self.database_url), self.environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "json" in arguments else done.stdout.strip()

    def http(self, controller: Process, path: str) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=os.fspath(self.pki.ca))
        try:
            with urllib.request.urlopen(f"https://{controller.http}{path}", timeout=1, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()


async def _made(url: str) -> str:
    """A token that may do everything."""
    database = await Database.open(url, "test", 1)
    try:
        tokens = PostgresTokens(database)
        await tokens.create_runner_grant(NewRunnerGrant("tests", "default", (), True, None, None, "tests", None))
        _, secret = await make_token(tokens, WantedToken("tests", ((Role.ADMIN, "*"),), None, "tests"))
    finally:
        await database.close()
    return secret
