"""A small issuer of tokens on loopback: real HTTP, real keys. It can be stopped, slowed, and given other keys.

It approves of whoever asks: a login's form is posted by `approve`, or by whatever stands in for a browser.
"""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections import Counter
from typing import Any, Final
from urllib.parse import unquote_plus, urlencode

import jwt
from aiohttp import BasicAuth, web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT_ID: Final = "cronring-cli"
AUDIENCE: Final = "cronring"
USER_CODE: Final = "WDJB-MJHT"
BITS: Final = 2_048


class TestKey:
    """A pair of RSA keys with a name."""

    __test__ = False

    def __init__(self, kid: str, bits: int = BITS) -> None:
        self.kid = kid
        self.private = rsa.generate_private_key(65_537, bits)

    def public(self) -> dict[str, Any]:
        """As issuers publish it."""
        entry: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(self.private.public_key()))
        return entry | {"kid": self.kid, "use": "sig", "alg": "RS256"}

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        return jwt.encode(claims, self.private, "RS256", headers={"kid": self.kid} | header)


class TestIssuer:
    """`async with TestIssuer() as issuer`. `asked` counts requests by path."""

    __test__ = False

    def __init__(self, *, token_s: int = 300, interval_s: int = 1) -> None:
        self.asked: Counter[str] = Counter()
        self.keys = [TestKey("first")]
        self.slow_s = 0.0
        self.claims: dict[str, Any] = {"sub": "ada@example.org", "groups": ["sre"]}
        self.token_s = token_s
        self.interval_s = interval_s
        self.approves = True
        self.pending = 1  # answers to a device before somebody has typed its code
        self.answer: web.Response | None = None  # of /keys, in place of the keys
        self.client_secret = ""  # which a client has to show; "": it is a public one
        self.says_who = True  # its answers have `iss` (RFC 9207), and its configuration says so
        self.configured: dict[str, Any] = {}  # what its configuration says otherwise
        self.id_claims: dict[str, Any] = {}  # what its ID tokens say otherwise; None: they don't say it
        self.id_token = ""  # what is given in place of one
        self._codes: dict[str, dict[str, str]] = {}
        self._refreshes: set[str] = set()
        self._devices: set[str] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/keys"

    def rotate(self, kid: str) -> None:
        """The old key is published no more."""
        self.keys = [TestKey(kid)]

    def token(self, *, now_s: float | None = None, **claims: Any) -> str:
        """Signed by the latest key. A claim that is None isn't in it."""
        now = int(time.time() if now_s is None else now_s)
        said = {"iss": self.url, "aud": AUDIENCE, "iat": now, "exp": now + self.token_s} | self.claims | claims
        return self.keys[-1].sign({name: value for name, value in said.items() if value is not None})

    async def start(self) -> None:
        """Where it was before, if it was."""
        app = web.Application()
        app.add_routes([
            web.get("/.well-known/openid-configuration", self._configuration),
            web.get("/keys", self._keys),
            web.post("/device", self._device),
            web.get("/authorize", self._form),
            web.post("/authorize", self._authorize),
            web.post("/token", self._token),
        ])  # fmt: skip
        app.middlewares.append(self._count)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> "TestIssuer":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @web.middleware
    async def _count(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked[request.path] += 1
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _configuration(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "jwks_uri": self.jwks_url,
                "authorization_endpoint": f"{self.url}/authorize",
                "device_authorization_endpoint": f"{self.url}/device",
                "token_endpoint": f"{self.url}/token",
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": self.says_who,
            }
            | self.configured
        )

    async def _keys(self, _request: web.Request) -> web.Response:
        if self.answer is not None:
            return web.Response(status=self.answer.status, body=self.answer.body, headers=self.answer.headers)
        return web.json_response({"keys": [key.public() for key in self.keys]})

    async def _device(self, request: web.Request) -> web.Response:
        form = await request.post()
        if form.get("client_id") != CLIENT_ID:
            return web.json_response({"error": "invalid_client"}, status=401)
        code = secrets.token_urlsafe(16)
        self._devices.add(code)
        return web.json_response({
            "device_code": code, "user_code": USER_CODE, "verification_uri": f"{self.url}/verify",
            "verification_uri_complete": f"{self.url}/verify?user_code={USER_CODE}", "expires_in": 60,
            "interval": self.interval_s,
        })  # fmt: skip

    async def _form(self, request: web.Request) -> web.Response:
        """Its fields hold what was asked, as real ones do; posting it is to approve."""
        fields = "".join(
            f'<input type="hidden" name="{name}" value="{value}">' for name, value in request.query.items()
        )
        page = f'<form method="post" action="/authorize">{fields}<button>Allow</button></form>'
        return web.Response(text=page, content_type="text/html")

    async def _authorize(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        assert form["response_type"] == "code"
        assert form["code_challenge_method"] == "S256"
        assert form["client_id"] == CLIENT_ID
        answer = {"state": form["state"]} | ({"iss": self.url} if self.says_who else {})
        if self.approves:
            answer["code"] = secrets.token_urlsafe(16)
            self._codes[answer["code"]] = form
        else:
            answer["error"] = "access_denied"
        raise web.HTTPFound(f"{form['redirect_uri']}?{urlencode(answer)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        nonce: dict[str, Any] = {}
        match form["grant_type"]:
            case "authorization_code":
                asked = self._codes.pop(form["code"], None)
                nonce = {"nonce": asked["nonce"]} if asked is not None and "nonce" in asked else {}
                refused = self._refuse_client(request, form) or self._refuse_code(form, asked)
            case "urn:ietf:params:oauth:grant-type:device_code":
                refused = self._refuse_device(form)
            case "refresh_token":
                refused = "" if form["refresh_token"] in self._refreshes else "invalid_grant"
                self._refreshes.discard(form["refresh_token"])
            case _:
                refused = "unsupported_grant_type"
        if refused:
            return web.json_response({"error": refused}, status=400)
        refresh = secrets.token_urlsafe(16)
        self._refreshes.add(refresh)
        return web.json_response({
            "access_token": self.token(), "token_type": "Bearer", "expires_in": self.token_s, "refresh_token": refresh,
            "id_token": self.id_token or self.token(**{"aud": CLIENT_ID} | nonce | self.id_claims),
        })  # fmt: skip

    def _refuse_client(self, request: web.Request, form: dict[str, str]) -> str:
        """By either of the two ways that a secret may be shown."""
        given = request.headers.get("Authorization")
        if given is not None:
            pair = BasicAuth.decode(given)
            known = unquote_plus(pair.login) == CLIENT_ID and unquote_plus(pair.password) == self.client_secret
        else:
            known = form.get("client_id") == CLIENT_ID and form.get("client_secret", "") == self.client_secret
        return "" if known else "invalid_client"

    def _refuse_code(self, form: dict[str, str], asked: dict[str, str] | None) -> str:
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        fits = asked is not None and asked["code_challenge"] == challenge
        return "" if fits and asked and asked["redirect_uri"] == form["redirect_uri"] else "invalid_grant"

    def _refuse_device(self, form: dict[str, str]) -> str:
        if form["device_code"] not in self._devices:
            return "invalid_grant"
        if not self.approves:
            return "access_denied"
        if self.pending > 0:
            self.pending -= 1
            return "authorization_pending"
        return ""
