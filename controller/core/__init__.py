"""A whole controller as a pure machine: events in, effects out. No clock, no I/O, no randomness of its own."""
