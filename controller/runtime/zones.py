"""Notes which rules of time zones this controller uses, and warns of members that have other rules."""

import asyncio
from typing import Final

from cronring.controller.errors import StoreError, StoreUnavailable
from cronring.controller.ports.store import ControllerInfo, Store
from cronring.controller.runtime.log import Log

INTERVAL_S: Final = 60.0


async def compare_zone_data(store: Store, own: ControllerInfo, log: Log) -> None:
    """For ever. It warns once for each member and version. A look that fails is repeated the next time.

    The controller that decides a tick uses its own rules; all others take the tick from the row. So members that differ
    lose no tick, and run none twice. But a tick may be at another instant than people expect.
    """
    is_noted = False
    told: set[tuple[str, str]] = set()
    while True:
        try:
            if not is_noted:
                await store.note_zone_data(own.zone_data)
                is_noted = True
            peers = await store.find_peers()
        except (StoreError, StoreUnavailable):  # other parts log that
            peers = []
        for peer in peers:
            other = (peer.controller_id, peer.zone_data)
            if peer.zone_data not in {own.zone_data, ""} and other not in told:
                told.add(other)
                log.warning("zone_data_differs", own=own.zone_data, controller=other[0], its=other[1])
        await asyncio.sleep(INTERVAL_S)
