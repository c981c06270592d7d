"""The seal of what tests are given to send back."""

from typing import Final

from cronring.controller.api.seal import Seal

SEAL: Final = Seal(b"k" * 32)
