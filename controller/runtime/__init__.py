"""The loop around a node, and what it performs: time, chance, logs, metrics, start and stop."""
