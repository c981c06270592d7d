"""What is said of a name that isn't there."""

import pytest

from cronring.cli.conversation import or_nearest
from cronring.cli.failures import Failure
from cronring.client.errors import NotFound


async def missing() -> None:
    raise NotFound("webhook 'pager' has no delivery 7")


async def known() -> list[str]:
    return ["pager"]


async def test_the_nearest_is_named_with_the_command_that_lists_all() -> None:
    with pytest.raises(Failure, match=r"Did you mean 'pager'\? `cronring webhook list` shows all 1"):
        await or_nearest(missing(), "webhook", "pagr", known, "cronring webhook list")


async def test_of_what_is_there_it_is_told_what_it_lacks() -> None:
    with pytest.raises(NotFound, match="has no delivery 7"):
        await or_nearest(missing(), "webhook", "pager", known)
