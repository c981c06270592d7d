"""What the Job page is tried on: a payload of records, and a time that the clocks of its zone skip and repeat."""

from dataclasses import dataclass
from typing import Literal

from cronring import cron


@dataclass
class Address:
    """Where to."""

    city: str
    floor: int | None = None


@dataclass
class Order:
    """What to ship."""

    name: str
    amount: int
    to: Address
    speed: Literal["slow", "fast"] = "slow"
    gift: bool = False


@cron("30 2 * * *", timezone="Europe/Berlin", payload={"name": "tea", "amount": 1, "to": {"city": "Ulm"}})
def ships(order: Order) -> None:
    """Says what it ships, and where to."""
    print(f"{order.amount} x {order.name} to {order.to.city}, {order.speed}, gift {order.gift}")
