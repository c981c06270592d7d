"""What is typed arrives, whatever is drawn meanwhile."""

from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Visitor

BEGUN: Final = "job:shop.sel"
ALL: Final = "job:shop.sells"
# Types what is begun. The rest comes just after the address has followed, and before the page is drawn anew.
TYPE: Final = """([begun, all]) => {
  const field = document.querySelector("#search");
  const put = (text) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, text);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const before = history.replaceState;
  history.replaceState = (...told) => {
    history.replaceState = before;
    history.replaceState(...told);
    queueMicrotask(() => put(all));
  };
  put(begun);
}"""


@pytest.mark.parametrize("path", ["/jobs", "/executions"])
def test_no_letter_is_lost_by_what_is_drawn_meanwhile(visit: Callable[..., Visitor], path: str) -> None:
    visitor = visit()
    page = visitor.page(path)
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.evaluate(TYPE, [BEGUN, ALL])
    expect(page).to_have_url(f"{visitor.base}{path}?q={quote_plus(ALL)}")
    expect(page.locator("#search")).to_have_value(ALL)


def test_what_others_change_in_the_address_is_in_the_field(visit: Callable[..., Visitor]) -> None:
    page = visit().page("/jobs?q=verb:sells")
    expect(page.locator("#search")).to_have_value("verb:sells")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.locator("h1")).to_contain_text("Runs")
    page.go_back()
    expect(page.locator("#search")).to_have_value("verb:sells")
    page.locator("#search").fill("verb:fails")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator('tr[data-row="shop.fails"]')).to_be_visible()
