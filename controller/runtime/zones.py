"""Says by which rules of time zones this controller reckons, and tells of members that have others."""

import asyncio
from typing import Final

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.store import ControllerInfo, Store
from cronring.controller.runtime.log import Log

INTERVAL_S: Final = 60.0


async def compare_zone_data(store: Store, own: ControllerInfo, log: Log) -> None:
    """For ever; told once for each member and version. What fails is tried again the next time.

    Who decides a tick does so by its own rules, and everybody else takes it as it stands in its row. So members that
    differ lose nothing, and run nothing twice; but a tick may be at another instant than people expect.
    """
    is_noted = False
    told: set[tuple[str, str]] = set()
    while True:
        try:
            if not is_noted:
                await store.note_zone_data(own.zone_data)
                is_noted = True
            peers = await store.find_peers()
        except (StoreError, StoreUnavailable):  # which others tell
            peers = []
        for peer in peers:
            other = (peer.controller_id, peer.zone_data)
            if peer.zone_data not in {own.zone_data, ""} and other not in told:
                told.add(other)
                log.warning("zone_data_differs", own=own.zone_data, controller=other[0], its=other[1])
        await asyncio.sleep(INTERVAL_S)
