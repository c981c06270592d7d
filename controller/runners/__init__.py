"""The streams of connected runners."""
