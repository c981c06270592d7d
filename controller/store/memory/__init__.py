"""The store in memory: the simulator's, virtual time's and tests'. Held to PostgreSQL's by tests/conformance."""
