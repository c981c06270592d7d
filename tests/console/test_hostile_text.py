"""What others wrote stays text, on every page at once: no script, element or request of it, and no unseen sign."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Visitor
from tests.console.hosted import until_hosted
from tests.console.modules.evil import EVIL, MARKUP
from tests.console.receiving import Receiver, receiving
from tests.console.test_lists_doing import do
from tests.support.secured import SecuredCluster

MODULE: Final = Path(__file__).parent / "modules" / "evil.py"
SOON_MS: Final = 60_000
# What an API may refuse is tried with less, down to what is printed on every keyboard.
DOORS: Final = (EVIL, MARKUP, "evil")
# Of all that is in the page, whether it is seen or not: what should not be there, and where.
FOUND: Final = r"""() => {
    for (const each of document.querySelectorAll("details")) each.open = true;
    const hidden = /[\u115f\u1160\u3164\uffa0]|(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
    const found = [];
    const steps = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    while (steps.nextNode()) {
        const { data, parentElement } = steps.currentNode;
        if (hidden.test(data) && !parentElement.closest("bdi"))
            found.push(["text", JSON.stringify(data).slice(0, 200)]);
    }
    for (const each of document.querySelectorAll("*")) {
        for (const { name, value } of each.attributes) {
            if (hidden.test(value)) found.push([name, JSON.stringify(value).slice(0, 200)]);
            if (name.startsWith("on") || /^\s*(javascript|data):/i.test(value)) found.push([name, value]);
        }
    }
    if (window.pwned !== undefined) found.push(["script", String(window.pwned)]);
    for (const each of document.querySelectorAll("#pwned, img, main script")) found.push(["element", each.outerHTML]);
    return found;
}"""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving(500, EVIL.encode()) as found:
        yield found


def plant(cluster: SecuredCluster, *command: str) -> str:
    """Give a command the most hostile text that it takes in place of `{}`; that text."""
    said = ""
    for text in DOORS:
        done = cluster.ask(*(each.replace("{}", text) for each in command), "-o", "json")
        if done.returncode == 0:
            return text
        said = done.stderr
    raise AssertionError(f"{command} takes no text at all: {said}")


@pytest.fixture(scope="module")
def planted(cluster: SecuredCluster, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By each door: the text that it took."""
    cluster.start_runner(MODULE)
    until_hosted(cluster, "evil")
    payload = json.dumps({"text": EVIL})
    file = tmp_path_factory.mktemp("sets") / "evil.yaml"
    file.write_text("set: evil\njobs:\n  - {verb: evil.takes, name: first, cron: '0 2 * * *', payload: {text: x}}\n")
    of_queue = ("jobs", "create", "--queue", "evil", "--every", "1s")
    job = ("jobs", "create", "evil.takes", "--cron", "0 3 * * *")
    return {
        "label": plant(cluster, *job, "--name", "labelled", "--label", "workspace={}", "--payload", payload),
        "note": plant(cluster, *job, "--name", "noted", "--payload", payload, "--note", "{}"),
        "caller": plant(cluster, *job, "--name", "called", "--payload", payload, "--note", "x", "--as", "{}"),
        "run": plant(cluster, "jobs", "trigger", "evil.takes:noted", "--note", "{}"),
        "pause": plant(cluster, "jobs", "pause", "evil.takes:noted", "--note", "{}"),
        "limit": plant(
            cluster, "limits", "set", "evil", "--max-concurrent", "9", "--by", "label:workspace", "--note", "{}"
        ),
        "template": plant(
            cluster, "template", "set", "evil", "--cron", "0 3 * * *", "--description", "{}", "--payload", payload,
            "--note", "{}",
        ),
        "set": plant(cluster, "apply", str(file), "--note", "{}"),
        "token": plant(cluster, "token", "create", "--name", "{}", "--role", "viewer"),
        "webhook": plant(cluster, "webhook", "add", "evil", receiver.url + "/{}"),
        "workspace": plant(cluster, *of_queue, "--workspace", "{}", "--payload", payload),
        "queue": plant(cluster, "queues", "set", "evil", "--max-deliveries", "1", "--note", "{}"),
    }  # fmt: skip


def test_every_page_shows_hostile_text_as_text(
    visit: Callable[..., Visitor], cluster: SecuredCluster, planted: dict[str, str]
) -> None:
    visitor = visit()
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    page = visitor.page("/webhooks?of=evil")
    do(page, "Test", says="It was not delivered: HTTP 500")
    do(page, "Disable", Why=EVIL)
    expect(page.locator("main")).to_contain_text("⟨U+202E⟩")
    work = ("queues", "consume", "evil", "--limit", "1", "--", "sh", "-c", f"echo '{EVIL}' >&2; exit 3")
    cluster.ask(*work[:5], "--controllers", cluster.addresses, *work[5:])
    failed = cluster.cli("executions", "list", "--job", "evil.raises", "--outcome", "failed")[0]["id"]
    version = cluster.cli("deployments", "list", "--module", "evil")[0]["key"]
    told = planted["workspace"]
    faults: dict[str, list[object]] = {}
    for path, text in {
        "/": "evil", "/jobs": "evil.takes", "/jobs/evil.raises": MARKUP, "/jobs/evil.takes:noted": planted["pause"],
        f"/executions/{failed}": MARKUP, "/executions": "evil.raises", "/upcoming": "evil", "/cluster": "Runners",
        "/timeline": "evil", "/checks": "accounted for", "/deployments": "evil@",
        f"/deployments?of={version}": MARKUP[:30],
        "/queues": "evil", "/queues?of=default/evil": told, "/limits": planted["limit"], "/sets": planted["set"],
        "/sets?of=default/evil": "evil.takes", "/templates": planted["template"],
        "/templates?of=default/evil": planted["template"], "/workspaces": planted["label"],
        "/webhooks": "evil", "/webhooks?of=evil": "500", "/access": planted["token"], "/actions": planted["note"],
        "/audit": planted["note"], "/wall": "next", "/jobs/%E2%80%AE%1B%": "%E2%80%AE%1B%",
    }.items():  # fmt: skip
        page.goto(visitor.base + path)
        expect(page.locator("body")).to_contain_text(text[:40], timeout=SOON_MS)
        page.wait_for_timeout(500)  # what panels ask for comes within it
        if found := page.evaluate(FOUND):
            faults[path] = found[:5]
    assert faults == {}
    assert {url.split("/", 3)[2] for url in asked if not url.startswith("about:")} == {visitor.base.split("/")[2]}


def test_what_is_copied_is_what_is_seen(visit: Callable[..., Visitor], planted: dict[str, str]) -> None:
    """A terminal does what it is pasted: a hidden sign in a name may not get there by the clipboard."""
    visitor = visit()
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page: Page = visitor.page("/timeline")
    expect(page.locator("main")).to_contain_text("evil", timeout=SOON_MS)
    page.get_by_role("button", name="Copy as Markdown", exact=True).click()
    expect(page.locator("main")).to_contain_text("copied")
    text = page.evaluate("navigator.clipboard.readText()")
    assert "evil" in text
    assert planted["note"]
    assert not {"\u202e", "\x1b", "\u200b"} & set(text)
