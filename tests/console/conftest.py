"""A cluster with certificates, its people, and Chromium. A test fails for whatever the browser complains of."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    StorageState,
    ViewportSize,
    expect,
    sync_playwright,
)

from cronring.trust.keyfile import make_key, write_keys
from tests.console.hosted import until_hosted
from tests.support.browsing import ARGUMENTS, chromium_here
from tests.support.databases import PostgresServer
from tests.support.secured import SecuredCluster

SHOP: Final = Path(__file__).parent / "modules" / "shop.py"
TRACES: Final = "https://traces.example/find?id={trace_id}"
LAPTOP: Final[ViewportSize] = {"width": 1280, "height": 800}
# It logs each answer of 400 and above, and each connection that ends, whatever the page makes of it.
NETWORK: Final = "Failed to load resource"
expect.set_options(timeout=15_000)  # ms; a page that has to come right is waited for, on a busy machine too


@pytest.fixture(scope="module")
def modules() -> Sequence[Path]:
    """What the cluster's runner hosts."""
    return [SHOP]


@pytest.fixture(scope="module")
def cluster(
    postgres_servers: Callable[[str], PostgresServer], tmp_path_factory: pytest.TempPathFactory, modules: Sequence[Path]
) -> Iterator[SecuredCluster]:
    server = postgres_servers("postgres18")
    name = server.create_database()
    with SecuredCluster(server.url(name), tmp_path_factory.mktemp("console")) as made:
        made.let_in()
        key = tmp_path_factory.mktemp("keys") / "secrets.key"
        write_keys(key, [make_key()])
        for more in ((), (), ("--trace-url", TRACES)):  # at 2: so that pages are seen with and without it
            made.start_controller("--secrets-key", str(key), *more)
        made.start_runner(*modules)
        for module in modules:
            until_hosted(made, module.stem)
        yield made
    server.drop_database(name)


@pytest.fixture(scope="module")
def chromium(cluster: SecuredCluster) -> Iterator[Browser]:
    """It trusts the cluster's certificates: it keeps no file of a host whose certificate has an error."""
    known = ",".join(sorted({key_digest(file) for file in cluster.pki.folder.glob("controller-*/tls.crt")}))
    arguments = [*ARGUMENTS, f"--ignore-certificate-errors-spki-list={known}"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_here(), args=arguments)
        yield browser
        browser.close()


def key_digest(file: Path) -> str:
    """Of the public key of a certificate: what Chromium knows it by."""
    key = x509.load_pem_x509_certificate(file.read_bytes()).public_key()
    told = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(told).digest()).decode()


class Visitor:
    """A browser that is logged in at a cluster; `complaints`: of its console, its pages, and the policy of content."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.context = context
        self.base = base
        self.complaints: list[str] = []
        context.on("console", self._heard)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and NETWORK not in message.text:
            self.complaints.append(message.text)

    def page(self, path: str = "/") -> Page:
        page = self.context.new_page()
        page.goto(self.base + path)
        return page


def logged_in(context: BrowserContext, base: str, token: str) -> StorageState:
    """What a browser keeps of a session that was begun there, by the form for tokens."""
    page = context.new_page()
    page.goto(f"{base}/login")
    page.fill("#token", token)
    page.click("button")
    page.goto("about:blank")  # to close a single page hangs now and then (Debian's Chromium, playwright 1.65)
    return context.storage_state()


@pytest.fixture(scope="module")
def sessions(cluster: SecuredCluster) -> dict[str, StorageState]:
    """By role, once begun: every controller knows them, and to log in anew loads two pages more."""
    return {}


@pytest.fixture
def visit(
    chromium: Browser, cluster: SecuredCluster, sessions: dict[str, StorageState]
) -> Iterator[Callable[..., Visitor]]:
    """A visitor with a role: `visit("viewer")`; by the controller of that number."""
    visitors: list[Visitor] = []

    def come(role: str = "admin", at: int = 0, scheme: Literal["light", "dark"] = "light") -> Visitor:
        base = f"https://{cluster.controllers[at].http}"
        context = chromium.new_context(
            ignore_https_errors=True, viewport=LAPTOP, color_scheme=scheme, storage_state=sessions.get(role)
        )
        context.set_default_timeout(30_000)
        visitor = Visitor(context, base)
        visitors.append(visitor)
        if role not in sessions:
            sessions[role] = logged_in(context, base, token_of(cluster, role))
        return visitor

    yield come
    for visitor in visitors:
        visitor.context.close()
        assert visitor.complaints == []


_tokens: dict[tuple[str, str], str] = {}


def token_of(cluster: SecuredCluster, role: str) -> str:
    """Of one that may do what the role may, everywhere; or what several may, each there: "viewer@a,admin@b"."""
    known = (cluster.database_url, role)
    if known not in _tokens:
        roles = [part for each in role.split(",") for part in ("--role", each)]
        name = re.sub("[^a-z-]", ".", role)
        made = ("token", "create", "--name", name, *roles, "--namespace", "*")
        _tokens[known] = str(cluster.on_database(*made))
    return _tokens[known]
