"""The pages of /login, as elements of HTML. Writing the elements escapes their texts, so that nobody can forget it.

There is no script, and only the one style sheet: the Content-Security-Policy forbids more.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode
from xml.etree import ElementTree as Tree  # nosec B405 - elements are made and written; nothing is parsed

from aiohttp import web

from cronring.schema.identity import Principal, grants_text

STYLE_PATH: Final = "/login.css"
STYLE: Final = """\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 24rem; margin: 12vh auto 0; padding: 0 1rem; }
h1 { font-size: 1.25rem; }
a.issuer, button { display: block; box-sizing: border-box; width: 100%; margin: 0.5rem 0 1rem; padding: 0.5rem 1rem;
  border: 1px solid; border-radius: 0.375rem; background: none; color: inherit; font: inherit; text-align: center;
  text-decoration: none; cursor: pointer; }
a.issuer:hover, button:hover { background: color-mix(in srgb, currentColor 10%, transparent); }
input { box-sizing: border-box; width: 100%; padding: 0.5rem; font: inherit; }
[role=alert] { border-left: 4px solid #c00; padding-left: 0.75rem; overflow-wrap: anywhere; }
"""
# same-origin, and not no-referrer: browsers would hide the Origin of our own forms as well.
HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class LoginForm(NamedTuple):
    """`issuers`: URL by name. `refused`: why the last try wasn't let in; "": there was none."""

    issuers: Mapping[str, str]
    token: str
    next_path: str
    refused: str = ""


def login_page(form: LoginForm) -> Tree.Element:
    """For who isn't logged in."""
    parts = [_element("h1", "Log in to cronring")]
    if form.refused:
        parts.append(_element("p", form.refused, role="alert"))
    parts += [
        _element("a", f"Log in with {name}", **{"class": "issuer"}, href=url) for name, url in form.issuers.items()
    ]
    fields = _element(
        "form",
        _element("label", "A token of `cronring token create`", **{"for": "token"}),
        _element(
            "input", id="token", name="token", type="password", required="", autocomplete="off", spellcheck="false"
        ),
        _element("input", type="hidden", name="form", value=form.token),
        _element("input", type="hidden", name="next", value=form.next_path),
        _element("button", "Log in with a token"),
        method="post",
        action="/login",
    )
    return _page("Log in", [*parts, fields])


def session_page(principal: Principal, csrf: str | None) -> Tree.Element:
    """For a person who is logged in already. `csrf` None: the request has a token, so there is no logging out."""
    parts = [
        _element("h1", "You are logged in to cronring"),
        _element("p", f"You are {principal}, and may: {grants_text(principal.grants)}."),
    ]
    if csrf is not None:
        hidden = _element("input", type="hidden", name="csrf", value=csrf)
        parts.append(_element("form", hidden, _element("button", "Log out"), method="post", action="/logout"))
    return _page("Logged in", parts)


def local_page() -> Tree.Element:
    said = "This controller runs with --insecure. Whoever is on this machine may do everything, so nobody logs in."
    return _page("Nobody logs in", [_element("h1", "cronring"), _element("p", said)])


def error_page(title: str, why: str) -> Tree.Element:
    """`why` may have anybody's words in it."""
    back = _element("p", _element("a", "Back to the login", href="/login"))
    return _page(title, [_element("h1", title), _element("p", why, role="alert"), back])


def with_next(url: str, next_path: str) -> str:
    return f"{url}?{urlencode({'next': next_path})}"


def shown(page: Tree.Element, status: int = 200) -> web.Response:
    text = "<!DOCTYPE html>" + Tree.tostring(page, encoding="unicode", method="html")
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=HEADERS)


def _page(title: str, parts: Sequence[Tree.Element]) -> Tree.Element:
    head = _element(
        "head", _element("meta", charset="utf-8"), _element("title", f"{title} - cronring"),
        _element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _element("link", rel="stylesheet", href=STYLE_PATH),
    )  # fmt: skip
    return _element("html", head, _element("body", _element("main", *parts)), lang="en")


def _element(tag: str, *content: "str | Tree.Element", **attributes: str) -> Tree.Element:
    made = Tree.Element(tag, attributes)
    for each in content:
        if isinstance(each, str):
            made.text = each
        else:
            made.append(each)
    return made
