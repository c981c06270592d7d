"""Pages followed until there is enough."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

Item = TypeVar("Item")

PAGE_SIZE_MAX: Final = 1000  # the API's


async def follow(fetch: Callable[[int, str], Awaitable[tuple[list[Item], str]]], limit: int | None) -> list[Item]:
    """Items of `fetch(page_size, page_token)` -> (items, next page's token), up to `limit` (None: all)."""
    items: list[Item] = []
    token = ""
    while limit is None or len(items) < limit:
        wanted = PAGE_SIZE_MAX if limit is None else min(PAGE_SIZE_MAX, limit - len(items))
        page, token = await fetch(wanted, token)
        items += page
        if not token:
            break
    return items if limit is None else items[:limit]
