"""Tells connected runners when their versions become active, or stop being active.

Welcome says it first. Later another version may take over, or somebody undeploys or rolls back. PostgreSQL then
notifies every controller that jobs have changed, and each controller looks up its runners' deployments.
"""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Final, Protocol

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.runners.streams import RunnerStreams

PAUSE_S: Final = 1.0  # between two looks: each change of any job is notified
WITHOUT_NOTIFY_S: Final = 60.0  # how often to look without a NOTIFY, as one may get lost


class Deployments(Protocol):
    """The store's."""

    async def find_active(self, keys: Collection[str]) -> frozenset[str]: ...


class Standings:
    def __init__(self, deployments: Deployments, streams: RunnerStreams) -> None:
        self._deployments = deployments
        self._streams = streams
        self._changed = asyncio.Event()

    def look_again(self) -> None:
        """Something may have changed."""
        self._changed.set()

    async def tell_changes(self) -> None:
        """For ever."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WITHOUT_NOTIFY_S):
                    await self._changed.wait()
            self._changed.clear()
            try:
                await self._tell()
            except StoreUnavailable:
                self._changed.set()
            except StoreError:  # which others tell of
                pass
            await asyncio.sleep(PAUSE_S)

    async def _tell(self) -> None:
        streams = self._streams.welcomed  # the same list below: the answer says nothing of runners that come meanwhile
        if keys := {key for stream in streams for key in stream.deployments}:
            active = await self._deployments.find_active(keys)
            for stream in streams:
                stream.stand(active)
