"""Membership: SWIM with Lifeguard, pure. machine.py composes the rest."""
