"""The box of what tests are given to send back."""

from typing import Final

from cronring.controller.api.token_box import TokenBox

BOX: Final = TokenBox(b"k" * 32)
