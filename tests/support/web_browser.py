"""What stands in for a browser: real HTTPS with a cookie jar, redirects followed by hand, and forms read and posted."""

import re
import ssl
from html import unescape
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import urljoin

import aiohttp
from multidict import CIMultiDict

from cronring.controller.api.cookies import SESSION
from tests.support.waiting import TIMEOUT_S


class Shown(NamedTuple):
    """An answer. `to`: where it leads, "": nowhere."""

    status: int
    to: str
    text: str
    headers: "CIMultiDict[str]"

    def fields(self) -> dict[str, str]:
        """Of the form in it."""
        return {
            unescape(name): unescape(value)
            for name, value in re.findall(r'<input[^>]* name="([^"]*)" value="([^"]*)"', self.text)
        }

    def cookies(self) -> list[str]:
        """As they are set."""
        return self.headers.getall("Set-Cookie", [])


class Browser:
    """`async with Browser(ca) as browser`. Its requests say that our own pages sent them, unless told otherwise."""

    def __init__(self, ca: Path) -> None:
        context = ssl.create_default_context(cafile=ca)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), cookie_jar=aiohttp.CookieJar(unsafe=True)
        )

    async def __aenter__(self) -> "Browser":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    @property
    def cookie(self) -> str:
        """Of its session; "": it has none."""
        return next((each.value for each in self._session.cookie_jar if each.key == SESSION), "")

    def forget(self, name: str) -> None:
        """Take one cookie away."""
        self._session.cookie_jar.clear(lambda each: each.key == name)

    async def get(self, url: str, **headers: str) -> Shown:
        return await self._ask("GET", url, headers, None)

    async def head(self, url: str) -> Shown:
        return await self._ask("HEAD", url, {}, None)

    async def post(self, url: str, form: dict[str, str] | None = None, **headers: str) -> Shown:
        return await self._ask("POST", url, {"Sec-Fetch-Site": "same-origin"} | headers, form or {})

    async def who(self, base: str) -> dict[str, Any]:
        """What /session says."""
        async with self._session.get(f"{base}/session") as answer:
            found: dict[str, Any] = await answer.json()
            return found | {"status": answer.status}

    async def type_token(self, base: str, token: str, path: str = "/login") -> Shown:
        """Into the form of /login."""
        page = await self.get(f"{base}{path}")
        return await self.post(f"{base}/login", page.fields() | {"token": token})

    async def come_back(self, base: str, issuer: str, path: str = "") -> str:
        """Log in at the issuer: the URL that it sends the browser to, where it hasn't gone yet."""
        begun = await self.get(f"{base}/login/{issuer}{path}")
        assert begun.status == 303, begun.text
        form = await self.get(begun.to)
        allowed = await self.post(urljoin(begun.to, "/authorize"), form.fields())
        assert allowed.status == 302, allowed.text
        return allowed.to

    async def log_in(self, base: str, issuer: str, path: str = "") -> Shown:
        """All the way."""
        return await self.get(await self.come_back(base, issuer, path))

    async def _ask(self, method: str, url: str, headers: dict[str, str], form: dict[str, str] | None) -> Shown:
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value}
        async with self._session.request(
            method, url, headers=sent, data=form, allow_redirects=False,
            timeout=aiohttp.ClientTimeout(TIMEOUT_S),
        ) as answer:  # fmt: skip
            return Shown(answer.status, answer.headers.get("Location", ""), await answer.text(), answer.headers.copy())
